"""The machine's clock."""

import asyncio

import pytest

from realtime.clock import MonotonicClock


async def test_waits_until_the_moment() -> None:
    clock, event = MonotonicClock(), asyncio.Event()
    until = clock.now() + 0.02
    await clock.wait(event, until)
    assert clock.now() >= until - 0.002


@pytest.mark.parametrize("ahead", [None, 30.0, -1.0])
async def test_waits_no_longer_than_for_the_event(ahead: float | None) -> None:
    clock, event = MonotonicClock(), asyncio.Event()
    began = clock.now()
    asyncio.get_running_loop().call_later(0.01, event.set)
    await clock.wait(event, None if ahead is None else began + ahead)
    assert clock.now() - began < 1


async def test_an_outer_timeout_is_not_swallowed() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await MonotonicClock().wait(asyncio.Event(), MonotonicClock().now() + 30)
