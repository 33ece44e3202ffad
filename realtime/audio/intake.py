"""The common front of everything that encodes: check samples, count clipping, resample, count the length."""

import numpy as np

from engine.contract import Samples
from realtime.audio.packets import NotFinite
from realtime.audio.pcm import count_clipped
from realtime.audio.resample import Resampler


class Intake:
    """Samples of one utterance at ``model_rate`` Hz in, checked samples at ``rate`` Hz out."""

    def __init__(self, model_rate: int, rate: int) -> None:
        self.length = 0
        """Samples given so far, at ``rate``."""
        self.clipped = 0
        """Samples outside [-1, 1] so far, at ``model_rate``."""
        self._resampler = Resampler(model_rate, rate)
        self._taken = 0
        self._closed = False

    def take(self, pcm: Samples) -> Samples:
        """Raises `NotFinite`, and ``RuntimeError`` once closed."""
        self._check_open()
        if len(pcm):
            peak = float(np.abs(pcm).max())
            if not np.isfinite(peak):
                raise NotFinite(self._taken)
            if peak > 1.0:
                self.clipped += count_clipped(pcm)
        self._taken += len(pcm)
        return self._counted(self._resampler.push(pcm))

    def close(self) -> Samples:
        """What the resampler still holds. Raises ``RuntimeError`` once closed."""
        self._check_open()
        self._closed = True
        return self._counted(self._resampler.finish())

    def _counted(self, samples: Samples) -> Samples:
        self.length += len(samples)
        return samples

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("finished: every utterance needs an encoder of its own")
