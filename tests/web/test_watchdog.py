import asyncio
import logging
import time

import pytest

from web.watchdog import LoopWatchdog


def hold_up_the_loop() -> None:
    time.sleep(0.4)


async def test_what_blocks_the_loop_is_found(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    lags: list[float] = []
    stalls: list[None] = []
    watchdog = LoopWatchdog(0.1, lags.append, lambda: stalls.append(None))
    task = asyncio.create_task(watchdog.run())
    await asyncio.sleep(0.12)
    hold_up_the_loop()
    await asyncio.sleep(0.12)
    task.cancel()
    await asyncio.wait([task])
    assert max(lags) > 0.25
    assert stalls
    blocked = [item for item in caplog.records if item.getMessage() == "event loop is blocked"]
    assert len(blocked) == 1
    assert "hold_up_the_loop" in vars(blocked[0])["stack"]


async def test_a_loop_on_time_is_not_complained_about() -> None:
    stalls: list[None] = []
    watchdog = LoopWatchdog(5.0, lambda _: None, lambda: stalls.append(None))
    task = asyncio.create_task(watchdog.run())
    await asyncio.sleep(0.12)
    task.cancel()
    await asyncio.wait([task])
    assert not stalls
