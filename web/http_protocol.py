"""Uvicorn's HTTP protocol with small buffers and a way to drop a connection whose client does not read."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from realtime.transports.http_stream import ABORT_STATE

WRITE_BUFFER_BYTES = 64 * 1024
"""Unsent bytes in the process before a response waits: 1.3 s of PCM."""


class LiveHttpProtocol(H11Protocol):
    """See the module's docstring."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bound the buffer, and offer the application the abort as part of the request's state."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self.app_state = {**self.app_state, ABORT_STATE: transport.abort}
