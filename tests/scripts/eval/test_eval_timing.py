"""Word boundaries: counted, timed, and compared with the teacher."""

import numpy as np
import pytest

from engine.models.ember import layout

pytest.importorskip("librosa")

from scripts.eval.audio import SAMPLE_RATE_HZ
from scripts.eval.timing import align, word_time_errors, word_times, words_missing

CODE = layout.CODE_BASE


def chirps(gap_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Three different sounds with silence between, and where they start."""
    time = np.arange(int(0.2 * SAMPLE_RATE_HZ)) / SAMPLE_RATE_HZ
    silence = np.zeros(int(gap_s * SAMPLE_RATE_HZ), np.float32)
    parts, starts, at = [silence], [], len(silence)
    for pitch in (300, 900, 2500):
        starts.append(at)
        parts += [(0.3 * np.sin(2 * np.pi * pitch * time)).astype(np.float32), silence]
        at += len(time) + len(silence)
    wave = np.concatenate(parts)
    return wave + np.random.default_rng(0).normal(0, 1e-3, len(wave)).astype(np.float32), np.array(
        starts, np.int32
    )


def test_word_times_count_codes_only() -> None:
    assert word_times([layout.WORD, CODE, CODE, layout.WORD, CODE, layout.EOS]) == [0, 2 * 480]


def test_words_missing_is_signed() -> None:
    one = [layout.WORD, CODE]
    assert words_missing(one * 3, "yes - it is.") == 0
    assert words_missing(one, "yes it is.") == 2
    assert words_missing(one * 4, "yes it is.") == -1


def test_alignment_is_exact_on_itself_and_close_when_stretched() -> None:
    slow, slow_starts = chirps(0.15)
    fast, fast_starts = chirps(0.08)
    assert align(slow_starts, slow, slow) == pytest.approx(slow_starts, abs=240)
    assert align(slow_starts, slow, fast) == pytest.approx(fast_starts, abs=2 * 240)


def test_word_time_errors_in_ms() -> None:
    wave, starts = chirps(0.1)
    tokens, codes = [], 0
    for start in starts:
        first = round(start / 480) + 2
        tokens += [CODE] * (first - codes) + [layout.WORD]
        codes = first
    errors = word_time_errors(tokens, wave, wave, starts)
    assert errors == pytest.approx([40] * 3, abs=11)
    assert word_time_errors(tokens[:-1], wave, wave, starts) == []
