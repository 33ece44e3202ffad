from hypothesis import given
from hypothesis import strategies as st

from engine.outbox import Outbox, SegmentEnd, Word

END = SegmentEnd(1, 1, 0)


def test_words_come_with_the_code_they_precede():
    box = Outbox()
    for item in (Word(0), 5, 6, Word(1), 7):
        box.put(item)
    assert box.ready(12) == (3, False)
    batch = box.take(2, to_end=False)
    assert (batch.codes, batch.words, batch.end) == ((5, 6), ((0, 0),), None)
    batch = box.take(1, to_end=False)
    assert (batch.codes, batch.words) == ((7,), ((0, 1),))


def test_words_without_codes_do_not_block_the_end():
    box = Outbox()
    for item in (5, Word(0), Word(1)):
        box.put(item)
    box.end_segment(END)
    assert box.ready(12) == (1, True)
    batch = box.take(1, to_end=True)
    assert batch.words == ((1, 0), (1, 1))
    assert batch.end == END
    assert not len(box)


def test_only_an_untouched_segment_is_retracted():
    box = Outbox()
    box.put(1)
    box.end_segment(END)
    box.put(2)
    box.put(3)
    assert not box.waits_for_check()
    assert box.retract()
    assert box.codes_put == 1
    assert box.take(1, to_end=True).end == END
    assert box.waits_for_check()
    box.put(4)
    box.take(1, to_end=False)
    box.put(5)
    assert not box.retract()
    assert box.codes_put == 3
    assert len(box) == 1


@given(st.data())
def test_nothing_is_lost_or_reordered(data):
    box = Outbox()
    put: list[object] = []
    got: list[object] = []
    for code in range(40):
        put.append(code)
        box.put(code)
        if data.draw(st.booleans()):
            put.append(END)
            box.end_segment(END)
        if data.draw(st.booleans()):
            count, at_end = box.ready(12)
            size = data.draw(st.integers(0, count))
            batch = box.take(size, to_end=at_end and size == count)
            got += batch.codes
            got += [batch.end] if batch.end else []
    while len(box):
        count, at_end = box.ready(12)
        batch = box.take(count, to_end=at_end)
        got += batch.codes
        got += [batch.end] if batch.end else []
    assert got == put
