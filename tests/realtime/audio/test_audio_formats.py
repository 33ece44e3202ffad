import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.formats import (
    ENCODINGS,
    OPUS_FRAMES_MS,
    OPUS_RATES,
    AudioFormat,
    FormatError,
    FormatRequest,
)


def test_defaults_are_opus_24k_20ms() -> None:
    fmt = AudioFormat()
    assert (fmt.encoding, fmt.sample_rate, fmt.frame_ms, fmt.frame_samples) == ("opus", 24_000, 20.0, 480)
    assert fmt.bitrate == 32_000


def test_opus_bitrate_is_always_concrete_and_others_have_none() -> None:
    assert all(AudioFormat("opus", rate).bitrate for rate in OPUS_RATES)
    assert AudioFormat("pcm_s16le").bitrate is None


@pytest.mark.parametrize(
    ("given_values", "field"),
    [
        ({"encoding": "mp3"}, "encoding"),
        ({"sample_rate": 44_100}, "sample_rate"),
        ({"sample_rate": 24_000.0}, "sample_rate"),
        ({"sample_rate": -1}, "sample_rate"),
        ({"sample_rate": True}, "sample_rate"),
        ({"encoding": "mulaw", "sample_rate": 16_000}, "sample_rate"),
        ({"frame_ms": 30}, "frame_ms"),
        ({"frame_ms": "20"}, "frame_ms"),
        ({"frame_ms": float("nan")}, "frame_ms"),
        ({"encoding": "pcm_s16le", "frame_ms": 2.5}, "frame_ms"),
        ({"encoding": "pcm_s16le", "frame_ms": 101}, "frame_ms"),
        ({"encoding": "pcm_s16le", "frame_ms": float("nan")}, "frame_ms"),
        ({"encoding": "pcm_s16le", "sample_rate": 22_050, "frame_ms": 5}, "frame_ms"),
        ({"bitrate": 500}, "bitrate"),
        ({"bitrate": 24_000.5}, "bitrate"),
        ({"encoding": "alaw", "sample_rate": 8_000, "bitrate": 64_000}, "bitrate"),
        ({"complexity": 11}, "complexity"),
        ({"packet_loss": -1}, "packet_loss"),
        ({"vbr": 1}, "vbr"),
        ({"application": "music"}, "application"),
        ({"fec": True, "frame_ms": 5}, "fec"),
        ({"fec": True, "application": "lowdelay"}, "fec"),
    ],
)
def test_errors_name_the_field_what_was_given_and_what_is_allowed(
    given_values: dict[str, object], field: str
) -> None:
    with pytest.raises(FormatError) as caught:
        AudioFormat(**given_values)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert repr(given_values[field]) in str(caught.value)
    assert caught.value.allowed


def test_allowed_values_are_listed() -> None:
    with pytest.raises(FormatError, match=r"8000, 12000, 16000, 24000, 48000 Hz for opus"):
        AudioFormat(sample_rate=11_025)
    with pytest.raises(FormatError, match=r"2\.5, 5, 10, 20, 40, 60 for opus"):
        AudioFormat(frame_ms=15)


@pytest.mark.parametrize(
    ("encoding", "model_rate", "rate"),
    [
        ("opus", 24_000, 24_000),
        ("opus", 22_050, 24_000),
        ("opus", 44_100, 48_000),
        ("opus", 96_000, 48_000),
        ("pcm_s16le", 22_050, 22_050),
        ("mulaw", 24_000, 8_000),
        ("alaw", 24_000, 8_000),
    ],
)
def test_open_sample_rate_follows_model(encoding: str, model_rate: int, rate: int) -> None:
    assert FormatRequest(encoding).resolve(model_rate).sample_rate == rate


def test_explicit_is_what_was_set() -> None:
    request = FormatRequest(sample_rate=48_000, vbr=False)
    assert request.explicit == {"sample_rate", "vbr"}
    assert request.resolve() == AudioFormat(sample_rate=48_000, vbr=False)


def test_wishes_go_over_defaults() -> None:
    defaults = FormatRequest("opus", 16_000, bitrate=20_000)
    assert FormatRequest(frame_ms=10).over(defaults).resolve() == AudioFormat(
        "opus", 16_000, 10, bitrate=20_000
    )
    assert FormatRequest("opus", 48_000).over(defaults).resolve() == AudioFormat(
        "opus", 48_000, bitrate=20_000
    )


def test_defaults_of_another_encoding_do_not_apply() -> None:
    defaults = FormatRequest(sample_rate=48_000, bitrate=20_000)
    assert FormatRequest("mulaw").over(defaults).resolve() == AudioFormat("mulaw", 8_000)
    assert FormatRequest("opus").over(defaults).resolve() == AudioFormat("opus", 48_000, bitrate=20_000)


@pytest.mark.parametrize("option", [{"dtx": True}, {"complexity": 3}, {"bitrate": 64_000}])
def test_opus_options_do_not_pass_silently_elsewhere(option: dict[str, int]) -> None:
    with pytest.raises(FormatError, match="option of opus"):
        FormatRequest("pcm_s16le", **option).resolve()  # type: ignore[arg-type]


def test_unknown_encoding_lists_the_known() -> None:
    with pytest.raises(FormatError, match=", ".join(ENCODINGS)):
        FormatRequest("flac").resolve()


@given(
    st.sampled_from(ENCODINGS),
    st.one_of(st.none(), st.integers(-1, 100_000)),
    st.one_of(st.none(), st.floats(), st.sampled_from(OPUS_FRAMES_MS)),
    st.one_of(st.none(), st.integers()),
)
@settings(deadline=None)
def test_any_request_is_a_sound_format_or_a_format_error(
    encoding: str, rate: int | None, frame_ms: float | None, bitrate: int | None
) -> None:
    try:
        fmt = FormatRequest(encoding, rate, frame_ms, bitrate).resolve()
    except FormatError:
        return
    assert fmt.frame_samples * 1000 == fmt.sample_rate * fmt.frame_ms
