"""Where `voxwire say` puts what it hears: a sound device or a WAV file."""

import asyncio
import wave
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from realtime.client import Pcm


class Sink(Protocol):
    """Takes mono float32 samples in [-1, 1]."""

    async def write(self, pcm: Pcm) -> None:
        """Take samples; waits while it has enough."""

    async def finish(self) -> None:
        """The last sample was written; returns when it is heard, or on disk."""

    def discard(self) -> None:
        """Nothing was written: leave no trace, and what was there before as it is."""


class WavFile:
    """A 16-bit WAV file of exactly what was written. It gets its name when it is complete."""

    def __init__(self, path: Path, sample_rate: int) -> None:
        self._path = path
        self._partial = path.with_name(path.name + ".part")
        self._handle = self._partial.open("wb")
        self._file = wave.open(self._handle, "wb")  # noqa: SIM115 (closed by `abandon`)
        self._file.setnchannels(1)
        self._file.setsampwidth(2)
        self._file.setframerate(sample_rate)

    async def write(self, pcm: Pcm) -> None:
        """See `Sink`."""
        self._file.writeframesraw((np.clip(pcm, -1.0, 1.0) * 32767).round().astype("<i2").tobytes())

    async def finish(self) -> None:
        """See `Sink`."""
        self.abandon()
        self._partial.replace(self._path)

    def discard(self) -> None:
        """See `Sink`."""
        self.abandon()
        self._partial.unlink()

    def abandon(self) -> None:
        """Close it; what is not complete keeps the name ``….part``."""
        self._file.close()
        self._handle.close()


class Player:
    """The default sound device."""

    def __init__(self, sounddevice: Any, sample_rate: int) -> None:
        self._stream = sounddevice.OutputStream(samplerate=sample_rate, channels=1, dtype="float32")
        self._stream.start()

    async def write(self, pcm: Pcm) -> None:
        """See `Sink`."""
        await asyncio.to_thread(self._stream.write, np.ascontiguousarray(pcm.reshape(-1, 1)))

    async def finish(self) -> None:
        """See `Sink`."""
        await asyncio.to_thread(self._stream.stop)

    def discard(self) -> None:
        """See `Sink`."""

    def abandon(self) -> None:
        """Be silent now."""
        self._stream.abort()
        self._stream.close()


def sound_module() -> Any | None:
    """The ``sounddevice`` module if this machine can play, else None."""
    try:
        import sounddevice
    except (ImportError, OSError):  # OSError: installed, but there is no PortAudio library
        return None
    try:
        sounddevice.query_devices(kind="output")
    except (ValueError, sounddevice.PortAudioError):
        return None
    return sounddevice


@contextmanager
def open_sink(out: Path | None, sounddevice: Any | None, sample_rate: int) -> Iterator[Sink]:
    """A WAV file at ``out``, else the sound device."""
    sink = Player(sounddevice, sample_rate) if out is None else WavFile(out, sample_rate)
    try:
        yield sink
    finally:
        sink.abandon()
