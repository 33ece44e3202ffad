"""The parts of the time to the first packet."""

from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.contract import Timings
from realtime.latency import TtfpMarks

times = st.floats(0, 10)


@given(st.lists(times, min_size=5, max_size=5).map(sorted), times, times, times, times)
def test_parts_add_up(marks: list[float], queue: float, prefill: float, decode: float, vocode: float) -> None:
    ttfp = TtfpMarks(*marks)
    parts = ttfp.parts(Timings(queue * 1000, prefill * 1000, decode * 1000, vocode * 1000))
    assert parts is not None
    assert sum(asdict(parts).values()) == pytest.approx(ttfp.ttfp_ms, abs=1e-6)
    assert all(part >= -1e-6 for part in asdict(parts).values())


def test_nothing_before_the_first_packet() -> None:
    marks = TtfpMarks(text_at=1.0, opened_at=1.0)
    assert marks.ttfp_ms is None
    assert marks.parts(Timings()) is None
