import io
import wave
from itertools import pairwise

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.av_stream import ADTS_RATES, adts_header, flac_header
from realtime.audio.container import CONTAINERS, content_type, make_container
from realtime.audio.formats import PCM_RATES, FormatError
from tests.support.audio import Pcm, chunk_sizes, cut, decode_file, lag, snr_db, speech_like

PACKED = ("mp3", "aac", "flac")
FRAME = {"mp3": 576, "aac": 1_024, "flac": 576}


def written(name: str, chunks: list[Pcm], rate: int = 24_000, **options: int) -> bytes:
    container = make_container(name, rate, **options)
    return b"".join(container.write(chunk) for chunk in chunks) + container.finish()


@given(st.sampled_from(CONTAINERS), st.integers(0, 6_000), chunk_sizes)
@settings(deadline=None)
def test_bytes_do_not_depend_on_the_chunks(name: str, samples: int, sizes: list[int]) -> None:
    speech = speech_like(samples, seed=samples)
    assert written(name, cut(speech, sizes)) == written(name, [speech])


@given(st.sampled_from(["wav", "opus", "flac"]), st.integers(1, 6_000))
@settings(deadline=None, max_examples=50)
def test_exact_containers_play_exactly_what_was_written(name: str, samples: int) -> None:
    speech = speech_like(samples)
    decoded, rate = decode_file(written(name, [speech]))
    assert len(decoded) == samples * rate // 24_000
    if name != "opus":
        assert np.allclose(decoded, speech, atol=1 / 32_768)


@given(st.sampled_from(["mp3", "aac"]), st.integers(1, 6_000))
@settings(deadline=None, max_examples=50)
def test_lossy_containers_play_their_delay_and_then_all(name: str, samples: int) -> None:
    container = make_container(name, 24_000)
    decoded, rate = decode_file(container.write(speech_like(samples)) + container.finish(), name)
    assert rate == 24_000
    padding = len(decoded) - container.delay - samples
    assert 0 <= padding < 2 * FRAME[name]


@pytest.mark.parametrize("name", ["mp3", "aac"])
def test_delay_is_what_is_said(name: str) -> None:
    speech = speech_like(48_000)
    container = make_container(name, 24_000)
    decoded, _ = decode_file(container.write(speech) + container.finish())
    assert abs(lag(speech, decoded) - container.delay) <= 1
    assert snr_db(speech, decoded[container.delay :][: len(speech)]) > 10


@pytest.mark.parametrize("name", PACKED)
def test_times_have_no_gaps(name: str) -> None:
    with av.open(io.BytesIO(written(name, cut(speech_like(30_000), [480])))) as file:
        packets = [p for p in file.demux(audio=0) if p.size]
        times = [(p.pts, p.duration) for p in packets]
        seconds = [
            (float(a * p.time_base), float(b * p.time_base)) for p, (a, b) in zip(packets, times, strict=True)
        ]
    assert all(abs(a + length - b) < 1e-6 for (a, length), (b, _) in pairwise(seconds))


@pytest.mark.parametrize("name", ["mp3", "aac"])
def test_every_chunk_is_whole_frames(name: str) -> None:
    container = make_container(name, 24_000)
    chunks = [container.write(chunk) for chunk in cut(speech_like(9_600), [480])] + [container.finish()]
    for chunk in filter(None, chunks):
        assert chunk[0] == 0xFF
        assert chunk[1] & 0xE0 == 0xE0
    # Any chunk begins a playable stream: no frame needs bytes of one before it.
    decoded, _ = decode_file(b"".join(chunks[10:]))
    assert len(decoded) >= 5_000


@pytest.mark.parametrize(
    ("name", "samples"),
    [("wav", 1), ("pcm", 1), ("opus", 480), ("flac", 576), ("mp3", 1_152), ("aac", 2_048)],
)
def test_audio_leaves_as_early_as_the_codec_allows(name: str, samples: int) -> None:
    assert make_container(name, 24_000).write(np.zeros(samples, np.float32))
    assert not make_container(name, 24_000).write(np.zeros(samples - 1, np.float32))


def test_a_header_never_goes_alone() -> None:
    for name in ("wav", "opus", "flac"):
        assert make_container(name, 24_000).write(np.empty(0, np.float32)) == b""


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("mp3", "audio/mpeg"),
        ("opus", "audio/opus"),
        ("aac", "audio/aac"),
        ("flac", "audio/flac"),
        ("wav", "audio/wav"),
        ("pcm", "audio/pcm"),
    ],
)
def test_content_types(name: str, mime: str) -> None:
    assert make_container(name, 24_000).content_type == content_type(name) == mime


@pytest.mark.parametrize("name", ["mp3", "aac", "flac", "wav"])
@pytest.mark.parametrize("rate", PCM_RATES)
def test_every_rate_works(name: str, rate: int) -> None:
    container = make_container(name, 24_000, sample_rate=rate)
    decoded, decoded_rate = decode_file(container.write(speech_like(12_000)) + container.finish())
    assert decoded_rate == container.sample_rate == rate
    assert container.length == rate // 2
    assert rate // 2 <= len(decoded) - container.delay < rate // 2 + 2 * 1_152


def test_rate_is_the_models_where_it_can_be() -> None:
    assert make_container("wav", 16_000).sample_rate == 16_000
    assert make_container("opus", 22_050).sample_rate == 24_000
    assert make_container("pcm", 16_000).sample_rate == 24_000
    assert len(written("pcm", [np.zeros(160, np.float32)], 16_000)) == 480


def test_wav_of_known_length_and_the_promise_kept() -> None:
    speech = speech_like(1_000)
    with wave.open(io.BytesIO(written("wav", [speech], samples=1_000))) as file:
        assert file.getnframes() == 1_000
    with pytest.raises(ValueError, match="1000 samples"):
        written("wav", [speech[:-1]], samples=1_000)


@pytest.mark.parametrize("name", CONTAINERS)
def test_nothing_said_is_nothing_played(name: str) -> None:
    data = written(name, [])
    if name in ("wav", "flac"):
        assert not len(decode_file(data)[0])
    assert len(data) < 200


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("ogg", {}, "response_format"),
        ("mp3", {"sample_rate": 11}, "sample_rate"),
        ("opus", {"sample_rate": 44_100}, "sample_rate"),
        ("mp3", {"bitrate": 1}, "bitrate"),
        ("opus", {"bitrate": 500_000}, "bitrate"),
        ("wav", {"bitrate": 64_000}, "bitrate"),
    ],
)
def test_what_cannot_be_made_is_refused(name: str, options: dict[str, int], field: str) -> None:
    with pytest.raises(FormatError) as caught:
        make_container(name, 24_000, **options)
    assert caught.value.field == field


def test_bitrate_reaches_the_codec() -> None:
    speech = [speech_like(48_000)]
    for name in ("mp3", "aac", "opus"):
        assert len(written(name, speech, bitrate=96_000)) > 1.5 * len(written(name, speech, bitrate=32_000))


def test_finished_is_finished() -> None:
    container = make_container("mp3", 24_000)
    container.finish()
    with pytest.raises(RuntimeError):
        container.write(np.zeros(1, np.float32))


@pytest.mark.parametrize("rate", ADTS_RATES)
def test_adts_header_fields(rate: int) -> None:
    bits = int.from_bytes(adts_header(rate, 300), "big")
    assert bits >> 44 == 0xFFF
    assert bits >> 34 & 0xF == ADTS_RATES.index(rate)
    assert bits >> 30 & 0x7 == 1
    assert bits >> 13 & 0x1FFF == 307


def test_flac_header_is_marker_and_one_last_block() -> None:
    assert flac_header(bytes(34))[:8] == b"fLaC\x80\x00\x00\x22"
