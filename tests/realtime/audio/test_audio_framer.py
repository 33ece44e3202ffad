import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.audio.framer import Framer
from tests.support.audio import Pcm, chunk_sizes, cut


def ramp(samples: int) -> Pcm:
    return np.arange(samples, dtype=np.float32)


@given(st.integers(0, 5_000), st.integers(1, 1_200), chunk_sizes)
@settings(deadline=None)
def test_frames_and_rest_are_the_input_at_any_chunking(samples: int, size: int, sizes: list[int]) -> None:
    framer = Framer(size)
    frames = [frame for chunk in cut(ramp(samples), sizes) for frame in framer.push(chunk)]
    assert all(len(frame) == size for frame in frames)
    assert len(frames) == samples // size
    assert np.array_equal(np.concatenate([*frames, framer.finish()]), ramp(samples))
    assert not len(framer.finish())


@given(st.integers(0, 100), st.integers(0, 300))
@settings(deadline=None)
def test_padding_is_zeros_up_to_the_fewest_frames(samples: int, wanted: int) -> None:
    framer = Framer(60)
    framer.push(ramp(samples))
    rest = samples % 60
    frames = framer.finish_padded(wanted)
    assert len(frames) == -(-max(wanted, rest) // 60)
    tail = np.concatenate([*frames, ramp(0)])
    assert np.array_equal(tail[:rest], ramp(samples)[samples - rest :])
    assert not tail[rest:].any()


def test_rest_does_not_change_with_the_callers_array() -> None:
    framer = Framer(4)
    chunk = ramp(3)
    framer.push(chunk)
    chunk[:] = 9
    assert framer.finish().tolist() == [0, 1, 2]


def test_no_frames_of_no_samples() -> None:
    with pytest.raises(ValueError, match="frame_samples"):
        Framer(0)
