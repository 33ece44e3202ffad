import asyncio
import logging
import time
from collections.abc import Callable

import pytest

from web.watchdog import LoopWatchdog


def hold_up_the_loop() -> None:
    """Works for 0.4 s of CPU time, however busy the machine is."""
    until = time.thread_time() + 0.4
    while time.thread_time() < until:
        pass


def wait_for_the_machine() -> None:
    time.sleep(0.4)


@pytest.mark.parametrize(
    ("stall", "level"), [(hold_up_the_loop, logging.WARNING), (wait_for_the_machine, logging.DEBUG)]
)
async def test_what_blocks_the_loop_is_found(
    caplog: pytest.LogCaptureFixture, stall: Callable[[], None], level: int
) -> None:
    caplog.set_level(logging.DEBUG)
    lags: list[float] = []
    stalls: list[None] = []
    watchdog = LoopWatchdog(0.1, lags.append, lambda: stalls.append(None))
    task = asyncio.create_task(watchdog.run())
    await asyncio.sleep(0.12)
    stall()
    await asyncio.sleep(0.12)
    task.cancel()
    await asyncio.wait([task])
    assert max(lags) > 0.25
    assert stalls
    # A busy machine may add stalls of its own.
    stacks = [item for item in caplog.records if item.getMessage() == "event loop is blocked"]
    assert [item.levelno for item in stacks if stall.__name__ in vars(item)["stack"]] == [level]
    assert level in [item.levelno for item in caplog.records if item.getMessage() == "event loop was blocked"]


async def test_a_loop_on_time_is_not_complained_about() -> None:
    stalls: list[None] = []
    watchdog = LoopWatchdog(5.0, lambda _: None, lambda: stalls.append(None))
    task = asyncio.create_task(watchdog.run())
    await asyncio.sleep(0.12)
    task.cancel()
    await asyncio.wait([task])
    assert not stalls
