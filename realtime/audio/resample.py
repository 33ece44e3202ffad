"""Streaming resampler: windowed-sinc polyphase filter with state.

Why not a library: FFT resamplers with a streaming interface (soxr) give nothing before 40 to 80 ms of input
and then bursts, which is several times what the rest of the path needs for a first packet. This one looks
ahead by 40 samples of the slower rate (5 ms for 8 kHz, 1.7 ms from 24 to 48 kHz), and the output does not
depend on where the chunks were cut. It takes 20 to 40 us for 20 ms of audio, 115 us to 44.1 kHz.

Delay is compensated: output sample n is the input at time n / out_rate, and N samples in are
round(N * out_rate / in_rate) samples out. Before its start and after its end the signal is silent.
"""

from functools import lru_cache
from math import gcd

import numpy as np
import numpy.typing as npt

from engine.contract import Samples

Float64 = npt.NDArray[np.float64]

_HALF_WIDTH = 40
"""Half of the filter, in samples of the slower rate."""
_KAISER_BETA = 7.86
"""80 dB of stop band."""
_PASS_BAND = 0.937
"""Middle of the transition, as a part of the slower rate's Nyquist frequency, where 80 dB are reached."""
_GATHER_PHASES = 8
"""With more phases than this, gathering windows is quicker than a strided pass for each phase."""
_GATHER_ROWS = 64
"""Windows gathered at a time, so that they stay in the cache."""


@lru_cache(maxsize=32)
def _filter_bank(up: int, down: int) -> Float64:
    """One filter for each of ``up`` positions between input samples. Shape [up, taps]; rows sum to 1."""
    cutoff = _PASS_BAND * min(1.0, up / down)
    half = _half_taps(up, down)
    distance = np.arange(-half, half + 1)[None, :] - np.arange(up)[:, None] / up
    window = np.i0(_KAISER_BETA * np.sqrt(np.clip(1 - (distance / (half + 1)) ** 2, 0, None)))
    bank = np.sinc(cutoff * distance) * window
    bank /= bank.sum(axis=1, keepdims=True)
    bank.setflags(write=False)
    return bank


def _half_taps(up: int, down: int) -> int:
    return -(-_HALF_WIDTH * max(up, down) // up)


class Resampler:
    """One mono stream from ``in_rate`` to ``out_rate`` (Hz)."""

    def __init__(self, in_rate: int, out_rate: int) -> None:
        if in_rate < 1 or out_rate < 1:
            raise ValueError(f"rates must be positive, not {in_rate} and {out_rate}")
        common = gcd(in_rate, out_rate)
        self._up, self._down = out_rate // common, in_rate // common
        self._same = in_rate == out_rate
        self.lookahead = 0 if self._same else _half_taps(self._up, self._down)
        """Input samples after a point that must be there before its output comes."""
        self._bank = np.ones((1, 1)) if self._same else _filter_bank(self._up, self._down)
        self._window = np.zeros(self.lookahead)
        # The input sample that _window[0] is; it begins with the silence before the start.
        self._window_start = -self.lookahead
        self._taken = 0
        self._given = 0

    def push(self, samples: Samples) -> Samples:
        """Output that ``samples`` (shape [N]) makes certain."""
        self._taken += len(samples)
        if self._same:
            self._given += len(samples)
            return samples
        self._window = np.concatenate((self._window, samples))
        # Output n is certain when the input reaches past n * down / up + lookahead.
        return self._give(-(-max(0, self._taken - self.lookahead) * self._up // self._down))

    def finish(self) -> Samples:
        """The rest of the output; in all there are round(N * out_rate / in_rate) samples (half rounds up)."""
        total = (2 * self._taken * self._up + self._down) // (2 * self._down)
        if not self._same:
            self._window = np.concatenate((self._window, np.zeros(self.lookahead + 1)))
        return self._give(total)

    def _give(self, until: int) -> Samples:
        count = until - self._given
        if count <= 0:
            return np.empty(0, np.float32)
        position = self._given * self._down
        first, phase = divmod(position, self._up)
        views = np.lib.stride_tricks.sliding_window_view(self._window, self._bank.shape[1])
        views = views[first - self.lookahead - self._window_start :]
        out = self._filter(views, phase, count)
        self._given = until
        keep = self._given * self._down // self._up - self.lookahead
        self._window = self._window[keep - self._window_start :].copy()
        self._window_start = keep
        # Summed in float64, so that the order of summing cannot show in the float32 result.
        return out.astype(np.float32)

    def _filter(self, views: Float64, phase: int, count: int) -> Float64:
        up, down = self._up, self._down
        many = up > _GATHER_PHASES
        rows, phases = np.divmod(phase + np.arange(count if many else min(count, up)) * down, up)
        out = np.empty(count)
        if many:
            for at in range(0, count, _GATHER_ROWS):
                part = slice(at, at + _GATHER_ROWS)
                np.einsum("nk,nk->n", views[rows[part]], self._bank[phases[part]], out=out[part])
            return out
        # einsum, not matmul: no BLAS threads for a few thousand products.
        for i, (row, filter_index) in enumerate(zip(rows.tolist(), phases.tolist(), strict=True)):
            of_phase = len(out[i::up])
            np.einsum("nk,k->n", views[row::down][:of_phase], self._bank[filter_index], out=out[i::up])
        return out
