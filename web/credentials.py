"""Where a caller may put its key, and taking it out of what the application and its logs see."""

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers

SUBPROTOCOL = "voxwire.key."
"""A browser offers ``voxwire.v1`` and this with the key behind it."""
PARAMETER = "api_key"
"""Of a WebSocket's URL, for clients that can set nothing else."""

_SECRET_HEADERS = frozenset({b"authorization", b"x-api-key", b"sec-websocket-protocol"})


def take(scope: MutableMapping[str, Any]) -> str | None:
    """The key that a connection came with, if any. The scope is changed: it has no key any more.

    In this order: ``Authorization: Bearer``, ``X-API-Key``; for a WebSocket a subprotocol, the URL.
    """
    headers = Headers(scope=scope)
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    found = [bearer.strip()] if scheme.lower() == "bearer" else []
    found.append(headers.get("x-api-key", "").strip())
    if scope["type"] == "websocket":
        offered: list[str] = scope.get("subprotocols") or []
        found += [name.removeprefix(SUBPROTOCOL) for name in offered if name.startswith(SUBPROTOCOL)]
        query = scope.get("query_string", b"").decode("latin-1")
        found += [value for name, value in parse_qsl(query) if name == PARAMETER]
    _clean(scope)
    return next(filter(None, found), None)


def _clean(scope: MutableMapping[str, Any]) -> None:
    # In place: the server logs from the same object.
    scope["headers"] = [
        (name, value) for name, value in scope["headers"] if name.lower() not in _SECRET_HEADERS
    ]
    if scope["type"] == "websocket":
        offered: list[str] = scope.get("subprotocols") or []
        scope["subprotocols"] = [name for name in offered if not name.startswith(SUBPROTOCOL)]
    pieces = scope.get("query_string", b"").split(b"&")
    mark = PARAMETER.encode() + b"="
    kept = [piece if not _names_key(piece) else mark + b"..." for piece in pieces]
    scope["query_string"] = b"&".join(kept)


def _names_key(piece: bytes) -> bool:
    parsed = parse_qsl(piece.decode("latin-1"), keep_blank_values=True)
    return any(name == PARAMETER for name, _ in parsed)
