"""Signals, ways to cut them, and decoders for the tests of encoders."""

import ctypes
import io
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from realtime.audio.libopus import load_libopus
from realtime.audio.packets import AudioPacket, PacketEncoder

Pcm = npt.NDArray[np.float32]


def speech_like(samples: int, rate: int = 24_000, seed: int = 0) -> Pcm:
    """Harmonics of a moving pitch under syllables, with some breath: as hard to code as a voice. Peak 0.5."""
    rng = np.random.default_rng(seed)
    time = np.arange(samples) / rate
    pitch = 130 + 30 * np.sin(2 * np.pi * 0.7 * time + rng.uniform(0, 6))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = np.zeros(samples)
    for harmonic in range(1, 20):
        formants = sum(np.exp(-(((harmonic * pitch - f) / 250) ** 2)) for f in (500, 1_500, 2_500))
        voice += (0.05 + formants) * np.sin(harmonic * phase) / harmonic**0.5
    syllables = np.clip(np.sin(2 * np.pi * 2 * time), 0, 1)
    noise = 0.02 * rng.standard_normal(samples)
    out = voice * syllables + noise
    return (0.5 * out / max(1e-9, np.abs(out).max(initial=0))).astype(np.float32)


def cut(pcm: Pcm, sizes: Sequence[int]) -> list[Pcm]:
    """``pcm`` in chunks of ``sizes``, repeated as needed."""
    chunks, start, turn = [], 0, 0
    while start < len(pcm):
        size = sizes[turn % len(sizes)] if any(sizes) else len(pcm)
        chunks.append(pcm[start : start + size])
        start, turn = start + size, turn + 1
    return chunks


chunk_sizes = st.lists(st.integers(0, 3_000), min_size=1, max_size=8)
"""Sizes for `cut`, empty chunks among them."""


def encode_all(encoder: PacketEncoder, chunks: Sequence[Pcm]) -> list[AudioPacket]:
    """All packets of one utterance."""
    return [packet for chunk in chunks for packet in encoder.encode(chunk)] + encoder.finish()


def whole(step: Callable[[Pcm], Pcm], chunks: Sequence[Pcm], last: Callable[[], Pcm]) -> Pcm:
    """Everything that a streaming filter gives for ``chunks``."""
    return np.concatenate([*(step(chunk) for chunk in chunks), last()])


def decode_opus(packets: Sequence[AudioPacket]) -> Pcm:
    """All that libopus decodes from the packets, at 48 kHz, pre-skip and padding included."""
    decoder = av.CodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.layout = 48_000, "mono"
    frames = [f.to_ndarray()[0] for p in packets for f in decoder.decode(av.Packet(p.payload))]
    return np.concatenate(frames).astype(np.float32) / 32_768 if frames else np.empty(0, np.float32)


class LossyDecoder:
    """libopus's decoder at ``rate``, with what a lost packet's follower knows of it."""

    def __init__(self, rate: int) -> None:
        self._library = load_libopus()
        self._library.opus_decoder_create.restype = ctypes.c_void_p
        self._state = ctypes.c_void_p(self._library.opus_decoder_create(rate, 1, None))

    def __del__(self) -> None:
        self._library.opus_decoder_destroy(self._state)

    def decode(self, payload: bytes, samples: int, *, lost: bool = False) -> Pcm:
        """A packet's samples; with ``lost``, those of the packet before it from its in-band FEC."""
        out = np.empty(samples, np.float32)
        target = ctypes.c_void_p(out.ctypes.data)
        got = self._library.opus_decode_float(self._state, payload, len(payload), target, samples, int(lost))
        assert got == samples
        return out


def decode_file(data: bytes, name: str | None = None) -> tuple[Pcm, int]:
    """Samples and rate of a file, as a player that believes its headers hears it.

    ``name`` of its format is for files too short to tell.
    """
    with av.open(io.BytesIO(data), format=name) as container:
        stream = container.streams.audio[0]
        frames = [frame.to_ndarray().reshape(-1) for frame in container.decode(audio=0)]
        rate = stream.rate
    if not frames:
        return np.empty(0, np.float32), rate
    pcm = np.concatenate(frames)
    return (pcm / 32_768 if pcm.dtype == np.int16 else pcm).astype(np.float32), rate


def snr_db(reference: Pcm, decoded: Pcm) -> float:
    """Signal-to-noise ratio of ``decoded`` against ``reference``, same length."""
    noise = float(np.square(reference - decoded, dtype=np.float64).sum())
    return 10 * float(np.log10(float(np.square(reference, dtype=np.float64).sum()) / max(noise, 1e-20)))


def lag(reference: Pcm, decoded: Pcm, limit: int = 4_000) -> int:
    """How many samples ``decoded`` is late."""
    size = 1 << (len(reference) + len(decoded) - 1).bit_length()
    spectrum = np.fft.rfft(decoded, size) * np.conj(np.fft.rfft(reference, size))
    return int(np.argmax(np.fft.irfft(spectrum, size)[:limit]))


def run_tool(name: str, *arguments: str | Path) -> str | None:
    """Output of a command-line tool, or `None` where it is not installed."""
    path = shutil.which(name)
    if path is None:
        return None
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
