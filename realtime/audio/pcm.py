"""Float samples to PCM."""

import numpy as np
import numpy.typing as npt

from engine.contract import Samples

Int16 = npt.NDArray[np.int16]

_FULL_SCALE = 32_768
"""Power of two: a sample that came from int16 goes back to itself exactly."""


def to_int16(samples: Samples) -> Int16:
    """Round [-1, 1) to int16, half to even; what is outside is clipped. Shape [N] to [N]."""
    scaled = np.rint(samples * np.float32(_FULL_SCALE))
    clipped: Samples = np.clip(scaled, -_FULL_SCALE, _FULL_SCALE - 1)
    return clipped.astype(np.int16)


def count_clipped(samples: Samples) -> int:
    """Samples that no PCM encoding can hold: outside [-1, 1]."""
    return int(np.count_nonzero(np.abs(samples) > 1.0))


def s16le(samples: Samples) -> bytes:
    """16-bit little-endian PCM."""
    return to_int16(samples).astype("<i2", copy=False).tobytes()


def f32le(samples: Samples) -> bytes:
    """32-bit little-endian float PCM, values unchanged."""
    return samples.astype("<f4", copy=False).tobytes()
