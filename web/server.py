"""uvicorn with safe defaults, and a shutdown that lets people finish speaking."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from types import FrameType

import uvicorn
from fastapi import FastAPI

from web import logs
from web.http_protocol import EdgeConfig
from web.lifespan import Runtime

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def serve(
    app: FastAPI, announce: Callable[[str], None], sockets: Sequence[socket.socket] | None = None
) -> int:
    """Run ``app`` until it is told to stop; ``announce`` is told where it listens, once it can speak.

    It listens at ``sockets``, which it closes, or else where the settings say.
    Returns the exit code: 0, or 1 when the engine could not start.
    """
    runtime: Runtime = app.state.runtime
    settings = runtime.settings
    as_text = logs.configure(settings.log_level, settings.log_format)
    # A reader wants what was changed; a machine compares all of it.
    told = settings.changed() if as_text else settings.model_dump(mode="json")
    logger.info("settings", extra={"sha256": settings.fingerprint, "settings": told})
    app.openapi()  # made once and kept; at the first request it would hold up whoever is speaking
    Server(app, announce).run(list(sockets) if sockets is not None else None)
    return 1 if runtime.failure is not None else 0


class Server(uvicorn.Server):
    """Drains before it closes, exits with 0 on SIGTERM, and says where it listens once it can speak."""

    def __init__(self, app: FastAPI, announce: Callable[[str], None]) -> None:
        self._runtime: Runtime = app.state.runtime
        super().__init__(EdgeConfig(app, self._runtime.settings, self._runtime.gate))
        self._announce = announce
        self._announcing: asyncio.Task[None] | None = None
        self._second_signal = asyncio.Event()

    @property
    def port(self) -> int:
        """The TCP port it listens at, once it does."""
        return int(self.servers[0].sockets[0].getsockname()[1])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; the engine may still be starting."""
        await super().startup(sockets=sockets)
        self._announcing = asyncio.create_task(self._until_settled(), name="announce")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running utterances finish, or a second signal come; then close everything."""
        if self._announcing is not None:
            self._announcing.cancel()
        hub = self._runtime.hub
        logger.info("shutting down", extra={"sessions": len(hub.live)})
        drain = asyncio.create_task(hub.drain(self._runtime.settings.drain_s), name="drain")
        hurry = asyncio.create_task(self._second_signal.wait(), name="second signal")
        await asyncio.wait([drain, hurry], return_when=asyncio.FIRST_COMPLETED)
        for task in (drain, hurry):
            task.cancel()
        await asyncio.wait([drain, hurry])
        if hub.live:
            await hub.drain(0.0)
        await super().shutdown(sockets=sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal drains, the second one does not wait for it, the third waits for nothing."""
        if self._second_signal.is_set():
            self.force_exit = True
        elif self.should_exit:
            self._second_signal.set()
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals in the loop, and do not raise them again: a stop that was asked for is a success."""
        loop = asyncio.get_running_loop()
        for sig in _SIGNALS:
            loop.add_signal_handler(sig, self.handle_exit, sig, None)
        try:
            yield
        finally:
            for sig in _SIGNALS:
                loop.remove_signal_handler(sig)

    async def _until_settled(self) -> None:
        settings, info = self._runtime.settings, self._runtime.engine.info
        await self._runtime.settled.wait()
        if self._runtime.failure is not None:
            self.should_exit = True
            return
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self._announce(
            f"voxwire speaks at http://{host}:{self.port} (WebSocket ws://{host}:{self.port}/v1/stream): "
            f"model {info.name}, {len(info.voices)} voices"
        )
