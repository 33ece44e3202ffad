"""A real server in the test's own event loop, on a free port of the loopback interface."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
from fastapi import FastAPI

from engine.fake import FakeEngine
from web.app import create_app
from web.lifespan import Runtime
from web.server import Server
from web.settings import load


@dataclass
class Running:
    """What a test needs of a running server."""

    server: Server
    runtime: Runtime
    engine: FakeEngine
    announced: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.server.port}/v1/stream"

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=10)


async def until(condition: Callable[[], object], within_s: float = 2.0) -> None:
    """Wait for something that has no event of its own."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@asynccontextmanager
async def running(
    engine: FakeEngine,
    flags: dict[str, Any] | None = None,
    *,
    ready: bool = True,
    prepare: Callable[[FastAPI], None] = lambda app: None,
) -> AsyncIterator[Running]:
    """Serve ``engine``; stop at the end of the block. ``prepare`` may add to the application."""
    app = create_app(load({"port": 0, "drain_s": 1, **(flags or {})}), engine)
    prepare(app)
    announced: list[str] = []
    server = Server(app, announced.append)
    serving = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started or serving.done())
        if ready:
            await app.state.runtime.settled.wait()
        yield Running(server, app.state.runtime, engine, announced)
    finally:
        server.should_exit = True
        await serving
