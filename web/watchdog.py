"""Is the event loop on time? If not, what held it up?

A timer on the loop measures how late it is; a thread looks at the loop's stack while it is late. The CPU time
that the loop's thread had in a stall tells work that was too long, which is a warning, from a machine that is
too busy, which is for the debug log. Both are counted.
"""

import asyncio
import logging
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress

logger = logging.getLogger(__name__)

_BEAT_S = 0.05
_QUIET_S = 10.0
"""A stack is a warning at most so often; every stall is counted."""
_OUR_SHARE = 0.1
"""Of a stall that is ours, the loop's thread worked at least this share: it may have to share its core."""


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
        self._cpu_at = 0.0
        self._thread_id = 0
        self._stop = threading.Event()
        self._logged_at = -_QUIET_S

    async def run(self) -> None:
        """Until cancelled."""
        self._beat_at = time.monotonic()
        self._cpu_at = time.thread_time()
        self._thread_id = threading.get_ident()
        thread = threading.Thread(target=self._look, name="loop watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._cpu_at = time.thread_time()
                await asyncio.sleep(_BEAT_S)
                now = time.monotonic()
                late = max(0.0, now - self._beat_at - _BEAT_S)
                self._beat_at = now
                self._lag(late)
                if late > self._stall_s:
                    self._stalled()
                    worked = time.thread_time() - self._cpu_at
                    figures = {"ms": round(late * 1000), "cpu_ms": round(worked * 1000)}
                    logger.log(_level(worked, late), "event loop was blocked", extra=figures)
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
            level = _level(_thread_time(self._thread_id) - self._cpu_at, late)
            if level == logging.WARNING:
                if now - self._logged_at < _QUIET_S:
                    continue
                self._logged_at = now
            if logger.isEnabledFor(level):
                frame = sys._current_frames().get(self._thread_id)
                stack = traceback.format_stack(frame) if frame is not None else []
                figures = {"ms": round(late * 1000), "stack": "".join(stack)}
                logger.log(level, "event loop is blocked", extra=figures)


def _level(worked_s: float, late_s: float) -> int:
    return logging.WARNING if worked_s >= _OUR_SHARE * late_s else logging.DEBUG


def _thread_time(thread_id: int) -> float:
    """Seconds of CPU that a running thread has had; without end where the system does not tell."""
    if sys.platform == "win32" or sys.platform == "darwin":
        return math.inf
    return time.clock_gettime(time.pthread_getcpuclockid(thread_id))
