from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.encoder import make_encoder
from realtime.audio.formats import AudioFormat
from realtime.audio.g711 import decode_alaw, decode_mulaw
from realtime.audio.packets import AudioPacket, NotFinite
from tests.support.audio import Pcm, chunk_sizes, cut, decode_opus, encode_all, snr_db, speech_like

FORMATS = [
    AudioFormat(),
    AudioFormat("opus", 48_000, 2.5),
    AudioFormat("opus", 16_000, 60),
    AudioFormat("opus", 8_000, 10, application="lowdelay"),
    AudioFormat("pcm_s16le"),
    AudioFormat("pcm_s16le", 44_100),
    AudioFormat("pcm_f32le", 16_000, 100),
    AudioFormat("mulaw", 8_000),
    AudioFormat("alaw", 8_000, 30),
]
every_format = pytest.mark.parametrize(
    "fmt", FORMATS, ids=lambda f: f"{f.encoding}-{f.sample_rate}-{f.frame_ms:g}"
)


def decoded(fmt: AudioFormat, packets: list[AudioPacket]) -> Pcm:
    """Decoded audio of a format with its own rate (not Opus)."""
    data = b"".join(packet.payload for packet in packets)
    match fmt.encoding:
        case "pcm_f32le":
            return np.frombuffer(data, "<f4")
        case "pcm_s16le":
            pcm = np.frombuffer(data, "<i2")
        case "mulaw":
            pcm = decode_mulaw(data)
        case _:
            pcm = decode_alaw(data)
    return pcm.astype(np.float32) / 32_768


@given(st.sampled_from(FORMATS), st.integers(0, 6_000), chunk_sizes)
@settings(deadline=None)
def test_packets_do_not_depend_on_the_chunks(fmt: AudioFormat, samples: int, sizes: list[int]) -> None:
    speech = speech_like(samples, seed=samples)
    assert encode_all(make_encoder(fmt, 24_000), cut(speech, sizes)) == encode_all(
        make_encoder(fmt, 24_000), [speech]
    )


@given(st.sampled_from(FORMATS), st.integers(0, 6_000), st.sampled_from([16_000, 22_050, 24_000]))
@settings(deadline=None)
def test_decoded_length_is_pre_skip_and_audio(fmt: AudioFormat, samples: int, model_rate: int) -> None:
    encoder = make_encoder(fmt, model_rate)
    packets = encode_all(encoder, cut(speech_like(samples), [700]))
    assert encoder.length == int(np.floor(samples * fmt.sample_rate / model_rate + 0.5))
    if not encoder.length:
        assert not packets
        return
    assert packets[0].pts == 0
    assert all(a.pts + a.samples == b.pts for a, b in pairwise(packets))
    assert packets[-1].pts + packets[-1].samples == encoder.pre_skip + encoder.length
    assert all(0 < packet.samples <= fmt.frame_samples for packet in packets)
    if fmt.encoding == "opus":
        heard = len(decode_opus(packets)) * fmt.sample_rate // 48_000
        assert heard == len(packets) * fmt.frame_samples
        assert 0 <= heard - encoder.pre_skip - encoder.length < fmt.frame_samples
    else:
        assert encoder.pre_skip == 0
        assert len(decoded(fmt, packets)) == encoder.length


@every_format
def test_first_packet_leaves_after_the_first_frame(fmt: AudioFormat) -> None:
    # Other rates need the resampler's look-ahead too, at most 5 ms.
    needed = int(np.ceil(fmt.frame_ms * 24)) + (121 if fmt.sample_rate != 24_000 else 0)
    encoder = make_encoder(fmt, 24_000)
    assert encoder.encode(np.zeros(needed, np.float32))
    assert not make_encoder(fmt, 24_000).encode(
        np.zeros(fmt.frame_samples * 24_000 // fmt.sample_rate - 1, np.float32)
    )


def test_opus_frame_of_the_model_is_a_packet_at_once() -> None:
    encoder = make_encoder(AudioFormat(), 24_000)
    frames = cut(speech_like(4_800), [480])
    assert [len(encoder.encode(frame)) for frame in frames] == [1] * 10
    # The encoder's look-ahead is still inside: one more packet brings it out.
    (last,) = encoder.finish()
    assert (last.pts, last.samples) == (4_800, 156)


@pytest.mark.parametrize("fmt", [f for f in FORMATS if f.encoding != "opus"], ids=lambda f: f.encoding)
def test_samples_come_out_as_they_went_in(fmt: AudioFormat) -> None:
    # Low-passed first, so that resampling loses nothing.
    speech = np.convolve(speech_like(24_000), np.hanning(33) / 16, "same").astype(np.float32)
    got = decoded(fmt, encode_all(make_encoder(fmt, 24_000), cut(speech, [480])))
    at = np.arange(len(got)) * 24_000 / fmt.sample_rate
    want = np.interp(at, np.arange(len(speech)), speech).astype(np.float32)
    assert snr_db(want, got) > 28


def test_clipping_is_counted_not_wrapped() -> None:
    encoder = make_encoder(AudioFormat("pcm_s16le"), 24_000)
    loud = np.array([0.5, 1.5, -1.5, 1.0], np.float32)
    packets = encode_all(encoder, [loud, loud])
    assert encoder.clipped == 4
    assert np.frombuffer(packets[0].payload, "<i2")[:4].tolist() == [16_384, 32_767, -32_768, 32_767]


@every_format
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_never_sent(fmt: AudioFormat, bad: float) -> None:
    encoder = make_encoder(fmt, 24_000)
    encoder.encode(np.zeros(10, np.float32))
    with pytest.raises(NotFinite) as caught:
        encoder.encode(np.array([0, bad], np.float32))
    assert caught.value.start == 10


@every_format
def test_finished_is_finished(fmt: AudioFormat) -> None:
    encoder = make_encoder(fmt, 24_000)
    assert encoder.finish() == []
    with pytest.raises(RuntimeError):
        encoder.finish()
    with pytest.raises(RuntimeError):
        encoder.encode(np.zeros(1, np.float32))


@every_format
def test_callers_array_may_be_reused(fmt: AudioFormat) -> None:
    speech = speech_like(5_000)
    buffer = np.empty(777, np.float32)
    encoder, packets = make_encoder(fmt, 24_000), []
    for chunk in cut(speech, [777]):
        buffer[: len(chunk)] = chunk
        packets += encoder.encode(buffer[: len(chunk)])
        buffer[:] = 0.25
    assert packets + encoder.finish() == encode_all(make_encoder(fmt, 24_000), [speech])
