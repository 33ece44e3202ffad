import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from realtime.audio.pcm import count_clipped, f32le, s16le, to_int16


def test_int16_survives_a_round_trip() -> None:
    every = np.arange(-32_768, 32_768).astype(np.int16)
    assert np.array_equal(to_int16(every.astype(np.float32) / np.float32(32_768)), every)


@given(nps.arrays(np.float32, st.integers(0, 50), elements=st.floats(-4, 4, width=32)))
@settings(deadline=None)
def test_rounds_and_clips(samples: np.ndarray) -> None:
    exact = np.clip(np.rint(samples.astype(np.float64) * 32_768), -32_768, 32_767)
    assert np.array_equal(to_int16(samples), exact)


def test_clipping_is_counted_at_the_edges_of_full_scale() -> None:
    samples = np.array([-1.0, 1.0, 1.01, -2.0, 0.0], np.float32)
    assert count_clipped(samples) == 2
    assert to_int16(samples).tolist() == [-32_768, 32_767, 32_767, -32_768, 0]


def test_bytes_are_little_endian() -> None:
    assert s16le(np.array([1 / 32_768, -0.5], np.float32)) == b"\x01\x00\x00\xc0"
    assert f32le(np.array([1.0], np.float32)) == b"\x00\x00\x80\x3f"
