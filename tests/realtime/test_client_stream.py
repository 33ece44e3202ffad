from contextlib import suppress

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.client_decoder import Decoder
from realtime.client_errors import ProtocolViolation
from realtime.client_stream import EOS, Frame, Packet, StreamCheck, StreamFormat, opus_samples, parse_frame


def opus_packets(pcm: np.ndarray, rate: int, frame_ms: float) -> tuple[list[bytes], int]:
    """Packets that decode to at least pre-skip + len(pcm) samples at ``rate``, and the pre-skip."""
    encoder = av.CodecContext.create("libopus", "w")
    encoder.sample_rate, encoder.layout, encoder.format = rate, "mono", "flt"
    encoder.options = {"frame_duration": f"{frame_ms:g}"}
    encoder.open()
    size = int(rate * frame_ms / 1000)
    skip = int.from_bytes(encoder.extradata[10:12], "little") * rate // 48000
    padded = np.concatenate([pcm, np.zeros(-(len(pcm) + skip) % size + skip, np.float32)])
    packets = []
    for start in range(0, len(padded), size):
        frame = av.AudioFrame.from_ndarray(padded[start : start + size][None], format="flt", layout="mono")
        frame.sample_rate = rate
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets, skip


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 48000])
@pytest.mark.parametrize("frame_ms", [2.5, 10, 20, 60])
def test_opus_is_exact_and_aligned(rate: int, frame_ms: float) -> None:
    pcm = (0.5 * np.sin(2 * np.pi * 300 * np.arange(rate // 2 + 77) / rate)).astype(np.float32)
    packets, skip = opus_packets(pcm, rate, frame_ms)
    fmt = StreamFormat("opus", rate, frame_ms, pre_skip=skip)
    check, decoder, out = StreamCheck(fmt), Decoder(fmt), []
    for sequence, payload in enumerate(packets):
        packet = check.frame(Frame(0, 0, sequence, check.position, payload))
        assert packet is not None
        assert packet.samples == rate * frame_ms / 1000
        out.append(decoder.decode(packet))
    assert check.frame(Frame(EOS, 0, len(packets), len(pcm), b"")) is None
    heard = np.concatenate([*out, decoder.finish(len(pcm))])
    assert len(heard) == len(pcm) * 48000 // rate
    expected = np.interp(np.arange(len(heard)) * rate / 48000, np.arange(len(pcm)), pcm)
    inside = slice(2000, -2000)
    assert np.abs(heard[inside] - expected[inside]).mean() < 0.05


def test_opus_durations() -> None:
    assert opus_samples(bytes([0b00001_000])) == 960  # SILK 20 ms
    assert opus_samples(bytes([0b10000_000])) == 120  # CELT 2.5 ms
    assert opus_samples(bytes([0b01101_001])) == 1920  # two hybrid frames of 20 ms
    assert opus_samples(bytes([0b11111_011, 3])) == 2880  # three CELT frames of 20 ms


@pytest.mark.parametrize("encoding", ["mulaw", "alaw"])
def test_g711_agrees_with_ffmpeg(encoding: str) -> None:
    every = bytes(range(256))
    codec = av.CodecContext.create(f"pcm_{encoding}", "r")
    codec.sample_rate, codec.layout = 8000, "mono"
    expected = codec.decode(av.Packet(every))[0].to_ndarray().reshape(-1) / 32768
    decoder = Decoder(StreamFormat(encoding, 8000))
    decoder.decode(Packet(every, 0, 0, 256))
    assert np.array_equal(decoder.finish(256), expected.astype(np.float32))


def test_garbage_is_not_opus() -> None:
    decoder = Decoder(StreamFormat("opus", 24000))
    with pytest.raises(ProtocolViolation):
        decoder.decode(Packet(bytes([0b00000_011, 63, 255, 255]), 0, 0, 480))


@given(st.binary(max_size=64))
def test_any_bytes_are_a_frame_or_a_violation(message: bytes) -> None:
    check = StreamCheck(StreamFormat("opus", 24000))
    with suppress(ProtocolViolation):
        check.frame(parse_frame(message))
