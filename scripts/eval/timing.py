"""Words as the model marks them: how many, and when, against the teacher's durations."""

from __future__ import annotations

from collections.abc import Sequence

import librosa
import numpy as np
from numpy.typing import NDArray

from engine.models.ember import layout
from scripts.eval.audio import SAMPLE_RATE_HZ, Wave

_ALIGN_HOP = SAMPLE_RATE_HZ // 100
_WINDOW = 1024


def _features(wave: Wave) -> NDArray[np.float32]:
    mfcc = librosa.feature.mfcc(
        y=wave, sr=SAMPLE_RATE_HZ, n_mfcc=13, n_fft=_WINDOW, win_length=600, hop_length=_ALIGN_HOP
    )
    mfcc = mfcc - mfcc.mean(1, keepdims=True)
    scaled: NDArray[np.float32] = mfcc / (mfcc.std(1, keepdims=True) + 1e-3)
    return scaled


def align(starts: NDArray[np.int32], teacher: Wave, wave: Wave) -> NDArray[np.float64]:
    """Carries word starts from the teacher's wave to another wave of the same sentence.

    Dynamic time warping over cepstra in 10 ms steps. Between two identical waves it is exact; its own
    error, between two takes of one sentence, is about a frame.

    Args:
        starts: word starts in the teacher's wave, in samples.
        teacher: the teacher's wave.
        wave: the other one, best in the same voice.

    Returns:
        Word starts in `wave`, in samples.
    """
    _, path = librosa.sequence.dtw(_features(teacher), _features(wave), metric="euclidean")
    steps = path[::-1]
    frames = starts / _ALIGN_HOP
    first = np.searchsorted(steps[:, 0], np.floor(frames), side="left").clip(0, len(steps) - 1)
    last = np.searchsorted(steps[:, 0], np.floor(frames), side="right").clip(1, len(steps)) - 1
    middle = (steps[first, 1] + steps[last, 1]) / 2
    carried: NDArray[np.float64] = (middle + frames % 1) * _ALIGN_HOP
    return carried


def word_times(tokens: Sequence[int]) -> list[int]:
    """Start samples that the model itself gives for its words: the codes before each `WORD`."""
    times, codes = [], 0
    for token in tokens:
        if token == layout.WORD:
            times.append(codes * layout.SAMPLES_PER_CODE)
        elif token >= layout.CODE_BASE:
            codes += 1
    return times


def word_time_errors(
    tokens: Sequence[int], wave: Wave, teacher: Wave, starts: NDArray[np.int32]
) -> list[float]:
    """Distance in ms between the model's word boundaries and the aligned truth.

    Empty when the model did not speak as many words as the teacher: then the word count is wrong, and
    that is counted on its own.
    """
    said = word_times(tokens)
    if len(said) != len(starts) or len(wave) < _WINDOW:
        return []
    truth = align(starts, teacher, wave)
    return [float(x) for x in np.abs(np.asarray(said) - truth) * 1000 / SAMPLE_RATE_HZ]


def words_missing(tokens: Sequence[int], text: str) -> int:
    """Words asked for minus words begun; negative when the model says too many."""
    return len(layout.spoken_words(text)) - sum(token == layout.WORD for token in tokens)
