import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import RateLimited
from realtime.messages import AppendText, End, Reject
from realtime.metering import MeteredAdapter, TokenBucket
from realtime.protocols.native import NativeAdapter


def test_a_bucket_says_how_long_to_wait() -> None:
    bucket = TokenBucket(60, 60.0, now=0.0)
    assert bucket.take(60, 0.0) == 0.0
    assert bucket.take(10, 0.0) == 10.0
    assert bucket.take(10, 9.0) == pytest.approx(1.0)
    assert bucket.take(10, 10.0) == 0.0


def test_what_is_larger_than_the_bucket_makes_the_next_wait() -> None:
    bucket = TokenBucket(60, 60.0, now=0.0)
    assert bucket.take(120, 0.0) == 0.0
    assert bucket.take(1, 0.0) == pytest.approx(61.0)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 30)), max_size=50))
def test_no_more_is_given_than_was_filled_in(asks: list[tuple[float, float]]) -> None:
    bucket, now, had = TokenBucket(100, 10.0, now=0.0), 0.0, 0.0
    for amount, later in asks:
        now += later
        if (wait_s := bucket.take(amount, now)) == 0.0:
            had += amount
        else:
            assert wait_s > 0
    assert had <= 100 + now * 10 + 1e-6


def test_a_text_that_is_too_much_is_rejected_and_what_follows_it_with_it() -> None:
    def take(piece: AppendText) -> None:
        if "no" in piece.text:
            raise RateLimited("too much", 3.0)

    adapter = MeteredAdapter(NativeAdapter(1000), take)
    assert adapter.receive('{"type":"text","text":"yes"}') == [AppendText("yes")]
    assert adapter.receive('{"type":"end"}') == [End()]
    (rejected,) = adapter.receive('{"type":"text","text":"no"}')
    assert isinstance(rejected, Reject)
    assert isinstance(rejected.error, RateLimited)
