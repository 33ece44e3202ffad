"""A clock that stands still until a test moves it."""

import asyncio


class ManualClock:
    """See `realtime.clock.Clock`. `advance` wakes whoever waits for a moment that has come."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now
        self._timers: set[tuple[float, asyncio.Future[None]]] = set()

    def now(self) -> float:
        return self._now

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        if event.is_set() or (until is not None and until <= self._now):
            await asyncio.sleep(0)
            return
        waiting = asyncio.ensure_future(event.wait())
        timer = asyncio.get_running_loop().create_future()
        entry = (until if until is not None else float("inf"), timer)
        self._timers.add(entry)
        try:
            await asyncio.wait({waiting, timer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            timer.cancel()
            self._timers.discard(entry)

    async def advance(self, seconds: float, step_s: float = 0.02) -> None:
        """Let ``seconds`` pass in steps, and everybody who waits do their work in each."""
        end = self._now + seconds
        while self._now < end:
            self._now = min(end, self._now + step_s)
            for until, timer in list(self._timers):
                if until <= self._now and not timer.done():
                    timer.set_result(None)
            await settle()


async def settle(rounds: int = 20) -> None:
    """Let ready tasks run, without time passing."""
    for _ in range(rounds):
        await asyncio.sleep(0)
