"""The pacer under a clock that a test moves."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.rtp.pacer import FRAME_S, FRAME_TICKS, SILENCE, Pacer, Slot


def drain(pacer: Pacer, until: float, now: float) -> list[tuple[float, Slot]]:
    """What leaves up to ``until``, when a loop is never late."""
    left = []
    while pacer.wake_at <= until:
        now = max(now, pacer.wake_at)
        slot = pacer.take(now)
        assert slot is not None
        left.append((now, slot))
    return left


def check_stream(slots: Sequence[Slot]) -> None:
    assert [slot.timestamp for slot in slots] == [n * FRAME_TICKS for n in range(len(slots))]


def test_silence_leaves_on_the_grid() -> None:
    left = drain(Pacer(3, 100.0), 101.0, 100.0)
    assert [moment for moment, _ in left] == pytest.approx([100 + n * FRAME_S for n in range(len(left))])
    assert len(left) in (50, 51)
    assert {slot.payload for _, slot in left} == {SILENCE}
    check_stream([slot for _, slot in left])


def test_no_drift_in_a_day() -> None:
    """The grid is a product, not a sum: after a day of packets it is where it must be."""
    pacer = Pacer(3, 0.0)
    pacer._slots = 4_320_000 - 1
    assert pacer.wake_at == pytest.approx(86_400 - FRAME_S, abs=1e-6)


def test_audio_in_order_and_a_silence_between_utterances() -> None:
    pacer = Pacer(10, 0.0)
    for index in (0, 1):
        for n in range(2):
            pacer.push(index, bytes([index, n]), 0.0)
        pacer.finish(index)
    slots = [slot for _, slot in drain(pacer, 0.1, 0.0)]
    assert [slot.index for slot in slots] == [0, 0, None, 1, 1, None]
    assert pacer.gaps == 0
    check_stream(slots)


def test_a_late_packet_is_waited_for_and_then_caught_up() -> None:
    pacer = Pacer(3, 0.0)
    pacer.push(0, b"a", 0.0)
    assert pacer.take(0.0)
    assert pacer.take(0.02) is None, "its audio goes on: the receiver's buffer hides a late packet"
    pacer.push(0, b"b", 0.05)
    pacer.push(0, b"c", 0.05)
    slot = pacer.take(0.05)
    assert slot
    assert (slot.payload, slot.late_s) == (b"b", 0.0), "it could not leave before it was there"
    assert pacer.wake_at == pytest.approx(0.04), "the grid did not move"
    assert (pacer.stalls, pacer.gaps) == (0, 0)


def test_silence_when_audio_does_not_come() -> None:
    pacer = Pacer(3, 0.0)
    pacer.push(0, b"a", 0.0)
    slots = [slot for _, slot in drain(pacer, 0.5, 0.0)]
    assert slots[1].payload == SILENCE
    assert len(slots) > 18
    assert pacer.gaps == 1
    pacer.push(0, b"b", 0.5)
    assert pacer.take(pacer.wake_at).payload == b"b"  # type: ignore[union-attr]
    check_stream(slots)


def test_no_burst_after_a_stall() -> None:
    pacer = Pacer(10, 0.0)
    for n in range(10):
        pacer.push(0, bytes([n]), 0.0)
    pacer.take(0.0)
    slot = pacer.take(1.0)
    assert slot
    assert slot.timestamp == FRAME_TICKS
    assert slot.late_s == pytest.approx(0.98)
    assert pacer.stalls == 1
    assert pacer.take(1.0) is None
    assert pacer.wake_at == pytest.approx(1.02)


def test_drop_and_heard() -> None:
    pacer = Pacer(5, 0.0)
    for n in range(5):
        pacer.push(7, bytes([n]), 0.0)
    assert pacer.full
    with pytest.raises(ValueError, match="5 packets"):
        pacer.push(7, b"x", 0.0)
    assert pacer.heard_s(7, 0.0) == 0.0
    pacer.take(0.0)
    pacer.take(0.02)
    assert pacer.heard_s(7, 0.03) == pytest.approx(0.03)
    assert pacer.heard_s(7, 9.0) == pytest.approx(0.04), "what has not left is not heard"
    assert pacer.heard_s(6, 0.03) is None
    assert pacer.heard_s(8, 0.03) == 0.0
    pacer.drop(7)
    assert pacer.pending(7) == 0
    slot = pacer.take(0.04)
    assert slot
    assert slot.payload == SILENCE, "at once, not after waiting for the utterance's next packet"


steps = st.lists(
    st.tuples(
        st.sampled_from(["push", "finish", "drop", "wait", "stall"]),
        st.floats(0.0, 0.03),
    ),
    max_size=120,
)


@given(steps)
def test_whatever_happens(script: list[tuple[str, float]]) -> None:
    """No timestamp gap, order kept, nothing lost but what was dropped, no burst beyond the catch-up."""
    pacer, now, index, pushed = Pacer(3, 0.0), 0.0, 0, 0
    sent: list[tuple[int, bytes]] = []
    left: list[tuple[float, Slot]] = []
    for action, amount in script:
        if action == "push" and not pacer.full:
            payload = pushed.to_bytes(4, "big")
            pacer.push(index, payload, now)
            sent.append((index, payload))
            pushed += 1
        elif action in ("finish", "drop"):
            waiting = pacer.pending(index)
            if action == "finish":
                pacer.finish(index)
            else:
                pacer.drop(index)
                del sent[len(sent) - waiting :]
            index += 1
        now += amount * (30 if action == "stall" else 1)
        while (slot := pacer.take(now)) is not None:
            left.append((now, slot))
            assert slot.late_s >= -1e-9
    while pacer.pending(index) or any(pacer.pending(n) for n in range(index)):
        now += FRAME_S
        if (slot := pacer.take(now)) is not None:
            left.append((now, slot))
    check_stream([slot for _, slot in left])
    assert [(slot.index, slot.payload) for _, slot in left if slot.index is not None] == sent
    for (_, before), (_, after) in pairwise(left):
        if before.index is not None and after.index is not None:
            assert before.index == after.index
    for start in range(len(left)):
        burst = [moment for moment, _ in left[start:] if moment < left[start][0] + 0.1]
        assert len(burst) <= 5 + 4, "100 ms hold five packets, and what was caught up"
