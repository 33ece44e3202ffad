"""`/v1/stream`: the native protocol over a WebSocket."""

from urllib.parse import urlsplit

from fastapi import APIRouter, WebSocket
from realtime.transports.websocket import serve

from web.lifespan import Runtime

router = APIRouter()


@router.websocket("/v1/stream")
async def stream(websocket: WebSocket) -> None:
    """Speak the native protocol, unless the page that asks comes from elsewhere."""
    runtime: Runtime = websocket.app.state.runtime
    if not _same_origin(websocket, runtime.settings.origins):
        await websocket.close(1008, "origin not allowed")  # before accepting: HTTP 403
        return
    await serve(websocket, runtime.hub)


def _same_origin(websocket: WebSocket, allowed: tuple[str, ...]) -> bool:
    """Browsers name the page's origin and let any page open a socket; programs name none."""
    origin = websocket.headers.get("origin")
    if origin is None or origin in allowed:
        return True
    return urlsplit(origin).netloc == websocket.headers.get("host")
