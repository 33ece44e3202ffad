"""Uvicorn's HTTP protocol with small buffers and a way to drop a connection whose client does not read."""

import asyncio
import socket

from uvicorn.protocols.http.h11_impl import H11Protocol

from realtime.transports.http_stream import ABORT_STATE

WRITE_BUFFER_BYTES = 64 * 1024
"""Unsent bytes in the process before a response waits: 1.3 s of PCM."""
SOCKET_BUFFER_BYTES = 128 * 1024
"""Unsent bytes in the kernel, which takes twice the value, instead of megabytes."""


class LiveHttpProtocol(H11Protocol):
    """See the module's docstring."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bound the buffer, and offer the application the abort as part of the request's state."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        self.app_state = {**self.app_state, ABORT_STATE: transport.abort}
