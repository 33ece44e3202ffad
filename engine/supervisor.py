"""Notices that the engine has died and brings it back, with growing pauses between attempts."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from engine.errors import EngineDead, EngineError
from engine.lm import LmState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """All in seconds.

    Attributes:
        check_s: between cheap checks; a stream that waits for text learns of a death this soon.
        probe_s: between probes, which let the engine really do something.
        probe_timeout_s: a probe that takes longer finds a hung engine.
        first_delay_s: before the first attempt to restart; doubles with each failure.
        max_delay_s: longest pause between attempts.
        steady_s: a life longer than this makes the next delay the first again.
    """

    check_s: float = 0.25
    probe_s: float = 5.0
    probe_timeout_s: float = 15.0
    first_delay_s: float = 0.2
    max_delay_s: float = 30.0
    steady_s: float = 60.0


class Supervisor:
    """Keeps something alive.

    Args:
        policy: see `RestartPolicy`.
        check: raises `EngineDead` when it is dead; cheap.
        probe: lets it work; raises or hangs when it cannot.
        restart: ends what is left and starts anew; raises `EngineDead` when that fails.
        lost: told once a death, before the restart.
    """

    def __init__(
        self,
        policy: RestartPolicy,
        *,
        check: Callable[[], Awaitable[None]],
        probe: Callable[[], Awaitable[None]],
        restart: Callable[[], Awaitable[None]],
        lost: Callable[[EngineDead], None],
    ) -> None:
        self._policy, self._check, self._probe = policy, check, probe
        self._restart, self._lost = restart, lost
        self._task: asyncio.Task[None] | None = None
        self.state: LmState = "stopped"
        self.restarts = 0

    def start(self) -> None:
        """Begin to watch what has just been started."""
        self.state = "ready"
        self._task = asyncio.create_task(self._watch(), name="engine-supervisor")

    async def stop(self) -> None:
        """Watch no longer. Idempotent."""
        task, self._task = self._task, None
        self.state = "stopped"
        if task is not None:
            task.cancel()
            await asyncio.wait({task}, timeout=self._policy.probe_timeout_s)

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        delay_s = self._policy.first_delay_s
        while True:
            began = clock()
            error = await self._until_dead()
            if clock() - began > self._policy.steady_s:
                delay_s = self._policy.first_delay_s
            self.state = "restarting"
            _log.error("engine lost: %s", error)
            self._lost(error)
            delay_s = await self._revive(delay_s)
            self.state = "ready"
            self.restarts += 1
            _log.warning("engine restarted")

    async def _until_dead(self) -> EngineDead:
        clock = asyncio.get_running_loop().time
        probe_at = clock() + self._policy.probe_s
        while True:
            await asyncio.sleep(self._policy.check_s)
            try:
                await self._check()
                if clock() >= probe_at:
                    async with asyncio.timeout(self._policy.probe_timeout_s):
                        await self._probe()
                    probe_at = clock() + self._policy.probe_s
            except TimeoutError:
                return EngineDead(f"no answer within {self._policy.probe_timeout_s:.0f} s")
            except EngineDead as error:
                return error
            except EngineError as error:
                return EngineDead(f"probe failed: {error}")

    async def _revive(self, delay_s: float) -> float:
        """Try until it lives; gives the delay for the next time."""
        while True:
            await asyncio.sleep(delay_s)
            delay_s = min(2 * delay_s, self._policy.max_delay_s)
            try:
                await self._restart()
            except EngineError as error:
                _log.error("engine restart failed, next attempt in %.1f s: %s", delay_s, error)
            else:
                return delay_s
