"""Which web pages may use the server. Browsers name a page's origin; programs name none and may."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from realtime.errors import Unauthorized, fault_of
from web.faults import answer
from web.settings import is_loopback

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def origin_allowed(
    origin: str | None, host: str | None, allowed: tuple[str, ...], *, only_loopback: bool
) -> bool:
    """Whether a page of ``origin`` may talk to a server that it calls ``host``.

    Its own pages may, and those ``allowed`` by name. With ``only_loopback``, its own name must be one of this
    machine: any name can be made to resolve to 127.0.0.1, and would then pass for the same origin. Pure.
    """
    if origin is None or origin in allowed:
        return True
    own = urlsplit(origin)
    return own.netloc == host and (not only_loopback or is_loopback(own.hostname or ""))


class OriginGuard:
    """Refuses WebSockets and requests that cost something to pages of other origins (CSWSH, CSRF)."""

    def __init__(self, app: ASGIApp, allowed: tuple[str, ...], only_loopback: bool) -> None:
        self._app = app
        self._allowed = allowed
        self._only_loopback = only_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it: an ASGI application."""
        asks = scope["type"] == "websocket" or (scope["type"] == "http" and scope["method"] not in _SAFE)
        if not asks or self._may(Headers(scope=scope)):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await WebSocketClose(1008, "origin not allowed")(scope, receive, send)  # not accepted: HTTP 403
        else:
            fault = fault_of(Unauthorized("pages of this origin are not allowed: setting origins"))
            await answer(fault, 403)(scope, receive, send)

    def _may(self, headers: Headers) -> bool:
        return origin_allowed(
            headers.get("origin"), headers.get("host"), self._allowed, only_loopback=self._only_loopback
        )
