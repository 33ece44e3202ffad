"""uvicorn's WebSocket protocol, made fit for live audio: `uvicorn.Config(ws=LiveWebSocketProtocol)`.

Two things uvicorn has no setting for. Buffers between a sent frame and the network are small, so that
`send` waits when the client does not read and a barge-in leaves little stale audio under way. And a
connection can be aborted: `close` would wait for a client that never reads to take what is buffered.
"""

import asyncio
import socket
from typing import cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from realtime.transports.websocket import ABORT_EXTENSION

WRITE_BUFFER_BYTES = 16 * 1024
"""Unsent bytes in the process before `send` waits."""
SOCKET_BUFFER_BYTES = 64 * 1024
"""Unsent bytes in the kernel, which takes twice the value: enough for 192 kB/s over a 300 ms round trip."""


class LiveWebSocketProtocol(WebSocketsSansIOProtocol):
    """See the module's docstring."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound the buffers."""
        stream = cast(asyncio.Transport, transport)
        stream.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        sock = stream.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        super().connection_made(transport)

    def handle_connect(self, event: Request) -> None:
        """Offer the application a way to abort the connection."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            # The application's task is made but has not begun: it will see this.
            extensions = cast(dict[str, object], self.scope["extensions"])
            extensions[ABORT_EXTENSION] = self.transport.abort
