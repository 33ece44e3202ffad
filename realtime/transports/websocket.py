"""The native protocol on a WebSocket, on any ASGI server. Moves messages; holds no logic."""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from realtime.driver import ChannelClosed, SessionDriver
from realtime.errors import TooLarge, fault_of
from realtime.messages import AppendText, Failed
from realtime.metering import CALLER_STATE, Caller, MeteredAdapter
from realtime.protocols.base import Adapter, Frame
from realtime.protocols.native import PROTOCOL, NativeAdapter, error_frame
from realtime.registry import SessionHub

logger = logging.getLogger(__name__)

ABORT_EXTENSION = "voxwire.abort"
"""ASGI extension: a callable that drops the connection at once. `uvicorn_protocol` provides both."""
TOO_BIG_EXTENSION = "voxwire.too_big"
"""ASGI extension: a callable that takes what a client is told whose message is too big to be read."""


class WebSocketChannel:
    """An accepted WebSocket as a `Channel`."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def receive(self) -> Frame:
        """See `Channel`."""
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise ChannelClosed(f"closed by the client with code {message.get('code')}")
        text: str | None = message.get("text")
        if text is not None:
            return text
        data: bytes = message["bytes"]
        return data

    async def send(self, frame: Frame) -> None:
        """See `Channel`."""
        if WebSocketState.DISCONNECTED in (self._websocket.client_state, self._websocket.application_state):
            raise ChannelClosed("the client is gone")
        try:
            if isinstance(frame, str):
                await self._websocket.send_text(frame)
            else:
                await self._websocket.send_bytes(frame)
        except WebSocketDisconnect as error:
            raise ChannelClosed("the client went away while it was sent to") from error

    async def close(self, code: int, reason: str) -> None:
        """See `Channel`."""
        if WebSocketState.DISCONNECTED in (self._websocket.client_state, self._websocket.application_state):
            return
        try:
            await self._websocket.close(code, reason)
        except WebSocketDisconnect as error:
            raise ChannelClosed("the client went away while it was closed") from error

    def abort(self) -> None:
        """See `Channel`. Without the server's help the connection lives until its peer reads or leaves."""
        drop: Callable[[], None] | None = _extensions(self._websocket).get(ABORT_EXTENSION)
        if drop is not None:
            drop()
        else:
            logger.warning("connection left to the server: it cannot be aborted")


async def serve(
    websocket: WebSocket,
    hub: SessionHub,
    *,
    adapter: Adapter | None = None,
    subprotocol: str | None = PROTOCOL,
    session_id: str | None = None,
) -> None:
    """Serve one session on a WebSocket that is not accepted yet, until it is closed.

    Args:
        websocket: the connection; who may use it was checked before.
        hub: what sessions share.
        adapter: the dialect; the native protocol by default.
        subprotocol: chosen if the client offers it.
        session_id: an id given out before, else a new one.
    """
    await accept(websocket, subprotocol)
    channel = WebSocketChannel(websocket)
    limit = hub.limits.message_bytes
    dialect = adapter or NativeAdapter(limit)
    _prepare_too_big(websocket, dialect, limit)
    session_id = session_id or hub.new_id()
    caller: Caller | None = websocket.scope.get("state", {}).get(CALLER_STATE)
    if caller is not None:
        dialect = MeteredAdapter(dialect, partial(_take, caller, session_id))
    client = websocket.client
    logger.info(
        "session opened",
        extra={
            "session": session_id,
            "address": client.host if client else None,
            "origin": websocket.headers.get("origin"),
            "key": caller.name if caller else None,
        },
    )
    await SessionDriver(hub, channel, dialect, session_id).run()


def _take(caller: Caller, session_id: str, piece: AppendText) -> None:
    caller.take_text(session_id, piece.utterance, piece.text)


def _prepare_too_big(websocket: WebSocket, adapter: Adapter, limit: int) -> None:
    """A message far over the limit never gets here: the server must know what to answer."""
    prepare: Callable[[str], None] | None = _extensions(websocket).get(TOO_BIG_EXTENSION)
    if prepare is None:
        return
    fault = fault_of(TooLarge("message_bytes", None, limit))
    for frame in adapter.render(Failed(fault)):
        if isinstance(frame, str):
            prepare(frame)


def _extensions(websocket: WebSocket) -> dict[str, Any]:
    extensions: dict[str, Any] | None = websocket.scope.get("extensions")
    return extensions or {}


async def refuse(websocket: WebSocket, error: Exception) -> None:
    """Accept, say why not, and close: a browser sees no reason of a handshake that was refused."""
    await accept(websocket, PROTOCOL)
    text, code, reason = error_frame(error)
    channel = WebSocketChannel(websocket)
    try:
        await channel.send(text)
        await channel.close(code, reason)
    except ChannelClosed:
        return


async def accept(websocket: WebSocket, subprotocol: str | None) -> None:
    """Accept with ``subprotocol`` if the client offers it, else without one."""
    offered = websocket.scope.get("subprotocols") or []
    await websocket.accept(subprotocol if subprotocol in offered else None)
