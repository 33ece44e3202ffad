"""`/v1/stream`: the native protocol over a WebSocket."""

from fastapi import APIRouter, WebSocket

from realtime.transports.websocket import serve
from web.lifespan import Runtime

router = APIRouter()


@router.websocket("/v1/stream")
async def stream(websocket: WebSocket) -> None:
    """Speak the native protocol."""
    runtime: Runtime = websocket.app.state.runtime
    await serve(websocket, runtime.hub)
