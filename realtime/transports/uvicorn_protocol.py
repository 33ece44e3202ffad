"""uvicorn's WebSocket protocol, made fit for live audio: `uvicorn.Config(ws=LiveWebSocketProtocol)`.

What uvicorn has no setting for:

- Buffers between a sent frame and the network are small, so that `send` waits when the client does not read,
  and a barge-in leaves little stale audio under way.
- A connection can be aborted: `close` would wait for a client that never reads to take what is buffered.
- A client whose message is over ``ws_max_size`` is told so in the application's own words. Closing while it
  still sends would reset the connection and lose them, so what it sends is read and thrown away for a while.
- What costs a client nothing costs us nothing: pings of one that does not read are not answered, and a
  message has a bounded number of fragments, which may be empty and so never reach the bound in bytes.
"""

import asyncio
import socket
from typing import cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import PayloadTooBig
from websockets.frames import Frame, Opcode
from websockets.http11 import Request

from realtime.transports.websocket import ABORT_EXTENSION, TOO_BIG_EXTENSION

WRITE_BUFFER_BYTES = 16 * 1024
"""Unsent bytes in the process before `send` waits."""
SOCKET_BUFFER_BYTES = 64 * 1024
"""Unsent bytes in the kernel, which takes twice the value: enough for 192 kB/s over a 300 ms round trip."""
FRAGMENTS = 16_384
"""Of one message; the longest one allowed, in pieces of 16 bytes."""
DISCARD_S = 5.0
"""How long the rest of a message that is too big is read, at most."""
QUIET_S = 0.25
"""It is over when nothing came for so long."""


class LiveWebSocketProtocol(WebSocketsSansIOProtocol):
    """See the module's docstring."""

    _too_big: str | None = None
    _discarding = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound the buffers."""
        stream = cast(asyncio.Transport, transport)
        stream.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        sock = stream.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        super().connection_made(transport)

    def handle_connect(self, event: Request) -> None:
        """Offer the application what the module's docstring names."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            # The application's task is made but has not begun: it will see these.
            extensions = cast(dict[str, object], self.scope["extensions"])
            extensions[ABORT_EXTENSION] = self.transport.abort
            extensions[TOO_BIG_EXTENSION] = self._say_when_too_big

    def data_received(self, data: bytes) -> None:
        """Take bytes, or throw them away after a message that was too big."""
        if self._discarding:
            self._close_when_quiet()
        else:
            super().data_received(data)

    def handle_ping(self) -> None:
        """Answer; but a client that takes nothing is owed nothing, and its answers would pile up."""
        answers = b"".join(self.conn.data_to_send())
        if self.writable.is_set():
            self.transport.write(answers)

    def handle_cont(self, event: Frame) -> None:
        """Take a fragment."""
        if len(self.frames) >= FRAGMENTS:
            if not self.close_sent:
                self.conn.fail(1009, "too many fragments")
                super().handle_parser_exception()
            return
        super().handle_cont(event)

    def handle_parser_exception(self) -> None:
        """Close; not at once if the client is in the middle of a message that is too big."""
        if not isinstance(self.conn.parser_exc, PayloadTooBig) or self._too_big is None:
            super().handle_parser_exception()
            return
        words = Frame(Opcode.TEXT, self._too_big.encode()).serialize(mask=False)
        self.transport.write(b"".join((words, *self.conn.data_to_send())))
        self.close_sent = self._discarding = True
        self.queue.put_nowait({"type": "websocket.disconnect", "code": 1009})
        self.loop.call_later(DISCARD_S, self.transport.close)
        self._close_when_quiet()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def _say_when_too_big(self, text: str) -> None:
        self._too_big = text

    def _close_when_quiet(self) -> None:
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(QUIET_S, self.transport.close)
