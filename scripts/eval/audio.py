"""Waves: reading, resampling, and listening with numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray
from scipy.signal import resample_poly

Wave = NDArray[np.float32]

SAMPLE_RATE_HZ = 24_000
_FRAME = SAMPLE_RATE_HZ // 100
_SILENCE_DB = -45.0
"""A frame this far below the loudest one counts as silent."""
_CLIPPED = 0.999


def read_wave(path: Path) -> Wave:
    """A mono 24 kHz file as float32; other rates are refused."""
    wave, rate = soundfile.read(path, dtype="float32")
    if rate != SAMPLE_RATE_HZ or wave.ndim != 1:
        raise ValueError(f"{path.name}: expected mono {SAMPLE_RATE_HZ} Hz, found {rate} Hz, {wave.ndim} axes")
    return np.asarray(wave, np.float32)


def write_wave(path: Path, wave: Wave) -> None:
    """Writes 16-bit PCM."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.clip(wave, -1, 1), SAMPLE_RATE_HZ, subtype="PCM_16")


def to_16k(wave: Wave) -> Wave:
    """24 kHz to 16 kHz, the rate of the recogniser and of the quality models."""
    return np.asarray(resample_poly(wave, 2, 3), np.float32)


@dataclass(frozen=True, slots=True)
class Listening:
    """What a wave looks like; times in milliseconds, levels in dB of full scale."""

    seconds: float
    rms_db: float
    peak_db: float
    clipped: int
    leading_ms: float
    trailing_ms: float
    longest_gap_ms: float

    @property
    def faults(self) -> list[str]:
        """What a listener would complain about."""
        checks = {
            "empty": self.seconds < 0.1 or self.rms_db < -60,
            "quiet": self.rms_db < -40,
            "clipped": self.clipped > 8,
            "late start": self.leading_ms > 300,
            "long tail": self.trailing_ms > 600,
            "long gap": self.longest_gap_ms > 900,
        }
        return [name for name, wrong in checks.items() if wrong]


def _decibels(value: float) -> float:
    return float(20 * np.log10(max(value, 1e-6)))


def listen(wave: Wave) -> Listening:
    """Measures level, clipping and silences in 10 ms frames."""
    count = len(wave) // _FRAME
    if count == 0:
        return Listening(len(wave) / SAMPLE_RATE_HZ, -120.0, -120.0, 0, 0.0, 0.0, 0.0)
    frames = wave[: count * _FRAME].reshape(count, _FRAME)
    level = 20 * np.log10(np.sqrt((frames.astype(np.float64) ** 2).mean(1)) + 1e-6)
    sounding = np.flatnonzero(level > max(level.max() + _SILENCE_DB, -70.0))
    first, last = (sounding[0], sounding[-1]) if len(sounding) else (count, -1)
    gaps = np.diff(sounding) - 1 if len(sounding) > 1 else np.zeros(1)
    return Listening(
        seconds=len(wave) / SAMPLE_RATE_HZ,
        rms_db=_decibels(float(np.sqrt((wave.astype(np.float64) ** 2).mean()))),
        peak_db=_decibels(float(np.abs(wave).max())),
        clipped=int((np.abs(wave) >= _CLIPPED).sum()),
        leading_ms=float(first * 10),
        trailing_ms=float((count - 1 - last) * 10),
        longest_gap_ms=float(gaps.max() * 10),
    )
