"""Any chunk sizes in, frames of one size out."""

import numpy as np

from engine.contract import Samples


class Framer:
    """Cuts a stream into frames of ``frame_samples``; holds less than one frame."""

    def __init__(self, frame_samples: int) -> None:
        if frame_samples < 1:
            raise ValueError(f"frame_samples: {frame_samples}, must be at least 1")
        self.frame_samples = frame_samples
        self._rest: Samples = np.empty(0, np.float32)

    def push(self, samples: Samples) -> list[Samples]:
        """Frames that ``samples`` (shape [N]) completes; they may be views of it."""
        size = self.frame_samples
        if len(self._rest):
            samples = np.concatenate((self._rest, samples))
        whole = len(samples) - len(samples) % size
        self._rest = samples[whole:].copy()
        return [samples[start : start + size] for start in range(0, whole, size)]

    def finish(self) -> Samples:
        """What is left, fewer than ``frame_samples``; the framer is empty afterwards."""
        rest, self._rest = self._rest, np.empty(0, np.float32)
        return rest

    def finish_padded(self, samples: int) -> list[Samples]:
        """What is left and zeros after it: the fewest whole frames that hold at least ``samples``."""
        rest = self.finish()
        frames = -(-max(samples, len(rest)) // self.frame_samples)
        padded = np.zeros(frames * self.frame_samples, np.float32)
        padded[: len(rest)] = rest
        return [padded[i * self.frame_samples : (i + 1) * self.frame_samples] for i in range(frames)]
