"""The only place of `realtime` that reads time. Everything else takes ``now``, in seconds, as an argument."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """A monotonic clock and the one way to wait on it."""

    def now(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        """Return when ``event`` is set or the clock has reached ``until`` (None: only the event)."""
        ...


class MonotonicClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    async def wait(self, event: asyncio.Event, until: float | None) -> None:
        if until is None:
            await event.wait()
            return
        try:
            async with asyncio.timeout(max(0.0, until - self.now())):
                await event.wait()
        except TimeoutError:
            return
