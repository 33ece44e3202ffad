"""A native endpoint on the loopback interface, in the test's own event loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket

from realtime.registry import SessionHub
from realtime.transports.uvicorn_protocol import LiveWebSocketProtocol
from realtime.transports.websocket import serve


async def until(condition: Callable[[], bool], within_s: float) -> None:
    """Wait for something that has no event of its own."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - whatever it is, it tells nobody
            await asyncio.sleep(0.005)


@asynccontextmanager
async def listening(hub: SessionHub) -> AsyncIterator[str]:
    """Serve ``hub`` on a free port; gives the WebSocket URL."""

    async def endpoint(websocket: WebSocket) -> None:
        await serve(websocket, hub)

    app = Starlette(routes=[WebSocketRoute("/v1/stream", endpoint)])
    config = uvicorn.Config(
        app,
        port=0,
        ws=LiveWebSocketProtocol,
        ws_per_message_deflate=False,
        ws_max_size=4 * hub.limits.message_bytes,
        log_level="warning",
        lifespan="off",
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started, 10.0)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"ws://127.0.0.1:{port}/v1/stream"
    finally:
        server.should_exit = True
        await serving
