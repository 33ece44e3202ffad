"""Listening with numbers."""

from pathlib import Path

import numpy as np
import pytest

from scripts.eval.audio import SAMPLE_RATE_HZ, listen, read_wave, to_16k, write_wave


def tone(seconds: float, level: float = 0.3) -> np.ndarray:
    time = np.arange(int(seconds * SAMPLE_RATE_HZ)) / SAMPLE_RATE_HZ
    return (level * np.sin(2 * np.pi * 220 * time)).astype(np.float32)


def silence(seconds: float) -> np.ndarray:
    return np.zeros(int(seconds * SAMPLE_RATE_HZ), np.float32)


def test_silences_and_levels() -> None:
    heard = listen(np.concatenate([silence(0.1), tone(0.5), silence(0.3), tone(0.5), silence(0.2)]))
    assert heard.leading_ms == pytest.approx(100, abs=20)
    assert heard.trailing_ms == pytest.approx(200, abs=20)
    assert heard.longest_gap_ms == pytest.approx(300, abs=20)
    assert heard.peak_db == pytest.approx(20 * np.log10(0.3), abs=0.1)
    assert heard.faults == []


def test_faults() -> None:
    assert "empty" in listen(silence(1)).faults
    assert "empty" in listen(silence(0)).faults
    assert "clipped" in listen(np.clip(tone(1, 2.0), -1, 1)).faults
    assert "long gap" in listen(np.concatenate([tone(0.5), silence(1.2), tone(0.5)])).faults
    assert "late start" in listen(np.concatenate([silence(0.6), tone(0.5)])).faults
    assert "long tail" in listen(np.concatenate([tone(0.5), silence(0.9)])).faults
    assert "quiet" in listen(tone(1, 0.005)).faults


def test_files_round_trip(tmp_path: Path) -> None:
    write_wave(tmp_path / "deep" / "a.wav", tone(0.2))
    assert read_wave(tmp_path / "deep" / "a.wav") == pytest.approx(tone(0.2), abs=1e-4)


def test_resampling_keeps_the_duration() -> None:
    assert len(to_16k(tone(0.3))) == 4800
