"""G.711 mu-law and A-law, by table."""

from functools import cache

import numpy as np
import numpy.typing as npt

from realtime.audio.pcm import Int16

Codes = npt.NDArray[np.uint8]

_MU_BIAS = 33
"""Added to the 14-bit magnitude so that every segment begins at a power of two."""
_MU_MAX = 8_191
_A_TOGGLE = 0x55
"""A-law inverts every other bit on the line."""


def _all_int16() -> npt.NDArray[np.int32]:
    # In the order of their bit patterns, so that a sample's uint16 view is its index.
    return np.arange(65_536, dtype=np.uint16).view(np.int16).astype(np.int32)


def _magnitude(samples: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    # G.711 codes both signs alike in one's complement: -1 has the magnitude of 0.
    return np.where(samples < 0, ~samples, samples)


def _exponent(values: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    return np.frexp(values.astype(np.float64))[1].astype(np.int32) - 1


@cache
def mulaw_table() -> Codes:
    """Mu-law code of every int16, indexed by its bit pattern. Shape [65536]."""
    samples = _all_int16()
    biased = np.minimum((_magnitude(samples) >> 2) + _MU_BIAS, _MU_MAX)
    segment = _exponent(biased) - 5
    code = np.where(samples < 0, 0x80, 0) | segment << 4 | biased >> segment + 1 & 0x0F
    return _frozen(~code)


@cache
def alaw_table() -> Codes:
    """A-law code of every int16, indexed by its bit pattern. Shape [65536]."""
    samples = _all_int16()
    magnitude = _magnitude(samples) >> 4
    segment = np.maximum(_exponent(np.maximum(magnitude, 1)) - 3, 0)
    step = magnitude >> np.maximum(segment - 1, 0) & 0x0F
    code = np.where(samples < 0, 0, 0x80) | segment << 4 | step
    return _frozen(code ^ _A_TOGGLE)


def _frozen(code: npt.NDArray[np.int32]) -> Codes:
    table = (code & 0xFF).astype(np.uint8)
    table.setflags(write=False)
    return table


def encode_mulaw(samples: Int16) -> bytes:
    """One byte a sample, ITU-T G.711 mu-law."""
    return mulaw_table()[samples.view(np.uint16)].tobytes()


def encode_alaw(samples: Int16) -> bytes:
    """One byte a sample, ITU-T G.711 A-law."""
    return alaw_table()[samples.view(np.uint16)].tobytes()


def decode_mulaw(payload: bytes) -> Int16:
    """Samples of mu-law bytes. Shape [len(payload)]."""
    code = ~np.frombuffer(payload, np.uint8).astype(np.int32)
    magnitude = (((code & 0x0F) << 1) + _MU_BIAS << (code >> 4 & 7)) - _MU_BIAS << 2
    return np.where(code & 0x80, -magnitude, magnitude).astype(np.int16)


def decode_alaw(payload: bytes) -> Int16:
    """Samples of A-law bytes. Shape [len(payload)]."""
    code = np.frombuffer(payload, np.uint8).astype(np.int32) ^ _A_TOGGLE
    segment = code >> 4 & 7
    magnitude = ((code & 0x0F) << 4) + np.where(segment > 0, 0x108, 8) << np.maximum(segment - 1, 0)
    return np.where(code & 0x80, magnitude, -magnitude).astype(np.int16)
