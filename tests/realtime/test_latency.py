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


def test_the_clock_runs_from_the_words_that_made_speech_possible() -> None:
    marks = TtfpMarks(text_at=1.0, opened_at=1.0)
    for at in (1.0, 1.5, 2.0, 2.2):
        marks.called(at)
    marks.begun(calls=3, now=2.3)
    marks.called(2.5)
    marks.sent_at = 2.75
    assert marks.text_at == 2.0
    assert marks.ttfp_ms == pytest.approx(750)


def test_a_wait_for_the_utterance_before_is_not_counted() -> None:
    marks = TtfpMarks(text_at=5.0)
    marks.called(1.0)
    marks.begun(calls=1, now=5.1)
    assert marks.text_at == 5.0
