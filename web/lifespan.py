"""What one server process consists of, and the order in which it starts and stops."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Literal

from fastapi import FastAPI, Request

from engine.contract import SpeechEngine
from realtime.audio.formats import FormatRequest
from realtime.metering import CALLER_STATE, Caller
from realtime.options import SessionDefaults, SessionOptions, resolve
from realtime.registry import SessionHub
from realtime.transports.webrtc import RtcPeers
from web.access import Access
from web.gate import ConnectionGate
from web.observe import Metrics
from web.settings import Settings, is_loopback, networks
from web.watchdog import LoopWatchdog

logger = logging.getLogger(__name__)


class Runtime:
    """The parts of a running server. Routes find it at ``app.state.runtime``.

    Raises `RealtimeError` when a session that sets nothing could not be opened with these settings, and
    `KeysUnusable`.
    """

    def __init__(self, settings: Settings, engine: SpeechEngine) -> None:
        defaults = SessionDefaults(
            voice=settings.voice,
            format=FormatRequest(settings.encoding),
            ttfp_budget_ms=settings.ttfp_budget_ms,
            on_budget_miss=settings.on_budget_miss,
        )
        resolve(SessionOptions(), engine.info, defaults)
        self.settings = settings
        self.engine = engine
        self.metrics = Metrics(engine)
        self.access = Access(settings.keys_file, settings.edge, log_text=settings.log_text)
        self.gate = ConnectionGate(
            settings.edge.connections,
            settings.edge.connections_per_address,
            networks(settings.trusted_proxies),
        )
        self.hub = SessionHub(
            engine,
            limits=settings.limits,
            defaults=defaults,
            observer=self.metrics,
            encoder_threads=settings.encoder_threads,
        )
        self.metrics.watch_edge(self.gate, (self.gate.refused, self.access.refused, self.hub.refused))
        rtc = settings.rtc
        if rtc.candidates == "auto" and not is_loopback(settings.host):
            rtc = replace(rtc, candidates="host")
        self.peers = RtcPeers(self.hub, rtc, self.metrics)
        self.failure: BaseException | None = None
        """Why the engine could not start."""
        self.settled = asyncio.Event()
        """The engine can speak, or could not start."""

    @property
    def status(self) -> Literal["ready", "starting", "restarting", "stopped", "draining", "failed"]:
        """Whether it can speak now, or why not."""
        if self.failure is not None:
            return "failed"
        if self.hub.draining:
            return "draining"
        return self.engine.health().state

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve at once; the engine starts meanwhile, and `/readyz` tells when it can speak."""
        starting = asyncio.create_task(self.engine.start(), name="engine start")
        starting.add_done_callback(self._started)
        beside = [
            asyncio.create_task(self._watch_loop(), name="loop watchdog"),
            asyncio.create_task(self.access.watch(), name="keys"),
        ]
        try:
            yield
        finally:
            for task in (starting, *beside):
                task.cancel()
            await asyncio.wait([starting, *beside])
            await self.peers.close()
            await self.engine.stop()
            self.hub.close()

    async def _watch_loop(self) -> None:
        # While the engine starts, imports in its thread hold the loop up; nobody is spoken to yet.
        await self.settled.wait()
        await LoopWatchdog(
            self.settings.edge.stall_s, self.metrics.loop_late, self.metrics.loop_stalled
        ).run()

    def _started(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            self.failure = task.exception()
            if self.failure is not None:
                logger.error("the speech engine cannot start", exc_info=self.failure)
        self.settled.set()


def runtime_of(request: Request) -> Runtime:
    """The runtime, for routes: ``Depends(runtime_of)``."""
    runtime = request.app.state.runtime
    assert isinstance(runtime, Runtime)
    return runtime


def caller_of(request: Request) -> Caller | None:
    """Who asks, for routes: ``Depends(caller_of)``."""
    caller: Caller | None = request.scope.get("state", {}).get(CALLER_STATE)
    return caller


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """FastAPI's hook: run the application's runtime."""
    runtime: Runtime = app.state.runtime
    async with runtime.running():
        yield
