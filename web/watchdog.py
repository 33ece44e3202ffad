"""Is the event loop on time? If not, what held it up?

A timer on the loop measures how late it is; a thread looks at the loop's stack while it is late. The CPU time
that the loop's thread had in a stall tells work that was too long from a machine that is too busy.
"""

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

logger = logging.getLogger(__name__)

_BEAT_S = 0.05
_QUIET_S = 10.0
"""A stack is logged at most so often; every stall is counted."""


class LoopWatchdog:
    """Watches the loop on which `run` is awaited.

    ``lag`` is told how late each beat was, in seconds; ``stalled`` is called once for every stall over
    ``stall_s``, both on the loop.
    """

    def __init__(self, stall_s: float, lag: Callable[[float], None], stalled: Callable[[], None]) -> None:
        self._stall_s = stall_s
        self._lag = lag
        self._stalled = stalled
        self._beat_at = time.monotonic()
        self._thread_id = 0
        self._stop = threading.Event()
        self._logged_at = -_QUIET_S

    async def run(self) -> None:
        """Until cancelled."""
        self._beat_at = time.monotonic()
        self._thread_id = threading.get_ident()
        thread = threading.Thread(target=self._look, name="loop watchdog", daemon=True)
        thread.start()
        try:
            while True:
                cpu = time.thread_time()
                await asyncio.sleep(_BEAT_S)
                now = time.monotonic()
                late = max(0.0, now - self._beat_at - _BEAT_S)
                self._beat_at = now
                self._lag(late)
                if late > self._stall_s:
                    self._stalled()
                    worked = time.thread_time() - cpu
                    figures = {"ms": round(late * 1000), "cpu_ms": round(worked * 1000)}
                    logger.warning("event loop was blocked", extra=figures)
        finally:
            self._stop.set()
            with suppress(RuntimeError):  # it never began: the interpreter is going down
                thread.join(1.0)

    def _look(self) -> None:
        seen = 0.0
        while not self._stop.wait(self._stall_s / 2):
            beat, now = self._beat_at, time.monotonic()
            late = now - beat - _BEAT_S
            if late < self._stall_s or beat == seen:
                continue
            seen = beat
            if now - self._logged_at >= _QUIET_S:
                self._logged_at = now
                frame = sys._current_frames().get(self._thread_id)
                stack = traceback.format_stack(frame) if frame is not None else []
                logger.warning(
                    "event loop is blocked", extra={"ms": round(late * 1000), "stack": "".join(stack)}
                )
