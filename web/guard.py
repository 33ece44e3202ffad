"""Nobody gets to a route without a key where keys are asked for; and no connection is without a caller."""

import asyncio
import logging

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from realtime.errors import Fault, InvalidRequest, RateLimited, RealtimeError, Unauthorized, fault_of
from realtime.metering import CALLER_STATE
from realtime.protocols.native import error_frame
from realtime.transports.websocket import ABORT_EXTENSION, refuse
from web import credentials
from web.access import Access, Account
from web.faults import answer

logger = logging.getLogger(__name__)

_OPEN = frozenset({"/", "/healthz", "/readyz", "/docs", "/openapi.json"})
_OPEN_FOLDERS = ("/static/",)
_END_S = 2.0
"""For the last words to a client whose connection is ended."""


class KeyGuard:
    """Checks keys before anything is accepted or read, and counts what runs with them.

    The health of the process, the demo page and the API's description are open to all. ``tls`` refuses what
    a trusted proxy says came to it in the clear.
    """

    def __init__(self, app: ASGIApp, access: Access, *, tls: bool = False) -> None:
        self._app = app
        self._access = access
        self._tls = tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it: an ASGI application."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        secret = credentials.take(scope)
        try:
            self._check_tls(scope)
            account = None if _is_open(scope) else self._access.identify(secret)
        except (InvalidRequest, Unauthorized) as error:
            await self._refuse(error, scope, receive, send)
            return
        if account is None:
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})[CALLER_STATE] = account
        if scope["type"] == "websocket":
            await self._socket(account, scope, receive, send)
        elif scope["method"] == "POST":
            await self._request(account, scope, receive, send)
        else:  # whoever has all its sessions may still look, and end one
            await self._app(scope, receive, send)

    async def _request(self, account: Account, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            account.check_sessions()
        except RateLimited as error:
            await self._refuse(error, scope, receive, send)
            return
        with self._access.session(account):
            await self._app(scope, receive, send)

    async def _socket(self, account: Account, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            account.check_sessions()
        except RateLimited as error:
            await self._refuse(error, scope, receive, send, accept=True)
            return
        socket = _Socket(scope, send)
        with self._access.session(account, socket):
            await self._app(scope, receive, socket.send)

    async def _refuse(
        self, error: RealtimeError, scope: Scope, receive: Receive, send: Send, *, accept: bool = False
    ) -> None:
        fault = fault_of(error)
        self._access.refused[fault.code] += 1
        logger.warning("refused", extra={**_who(scope, None), "code": str(fault.code)})
        # A page is not told why a handshake was refused: it is accepted, and closed with the reason.
        if scope["type"] == "websocket" and (accept or "origin" in Headers(scope=scope)):
            await refuse(WebSocket(scope, receive, send), error)
        else:
            await _answer(fault, scope, receive, send)

    def _check_tls(self, scope: Scope) -> None:
        forwarded = "x-forwarded-proto" in Headers(scope=scope)
        if self._tls and forwarded and scope["scheme"] in ("http", "ws"):
            raise InvalidRequest("only https and wss are served here")


class _Socket:
    """The sending side of a WebSocket; it can be ended while the application uses it."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope = scope
        self._send = send
        self._ending: asyncio.Task[None] | None = None
        self._accepted = False

    async def send(self, message: Message) -> None:
        """An ASGI ``send``. Once the connection is ended it raises `OSError`, as for a client that left."""
        if self._ending is not None:
            raise OSError("the connection was ended")
        self._accepted = self._accepted or message["type"] == "websocket.accept"
        await self._send(message)

    def end(self, error: RealtimeError) -> None:
        """See `web.access.Ending`."""
        if self._ending is None:
            logger.info("socket ended", extra={"code": str(error.code)})
            self._ending = asyncio.create_task(self._end(error), name="end socket")

    async def _end(self, error: RealtimeError) -> None:
        text, code, reason = error_frame(error)
        try:
            async with asyncio.timeout(_END_S):
                if self._accepted:
                    await self._send({"type": "websocket.send", "text": text})
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except (OSError, RuntimeError):  # gone by itself, or closed by the application meanwhile
            return
        except TimeoutError:
            drop = self._scope.get("extensions", {}).get(ABORT_EXTENSION)
            if drop is not None:
                drop()


async def _answer(fault: Fault, scope: Scope, receive: Receive, send: Send) -> None:
    response = answer(fault)
    if fault.http == 401:
        response.headers["www-authenticate"] = "Bearer"
    await response(scope, receive, send)


def _is_open(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["type"] == "http" and (path in _OPEN or path.startswith(_OPEN_FOLDERS))


def _who(scope: Scope, account: Account | None) -> dict[str, object]:
    client = scope.get("client")
    return {
        "address": client[0] if client else None,
        "origin": Headers(scope=scope).get("origin"),
        "path": scope["path"],
        "key": account.name if account is not None else None,
    }
