"""Uvicorn's protocols with what it has no setting for.

- Small buffers, and a way to drop a connection whose client does not read.
- A connection must send the head of its request in time, and may not hold on to a request that was answered
  by sending the rest of its body for ever.
- Connections are counted, and refused before anything they send is read.
"""

import asyncio
import json
import logging
import socket
import sys
from typing import Final

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from realtime.errors import ErrorCode, RateLimited, RealtimeError, ServerOverloaded, fault_of
from realtime.transports.http_stream import ABORT_STATE, error_body, error_headers
from realtime.transports.uvicorn_protocol import LiveWebSocketProtocol
from web.gate import ConnectionGate
from web.settings import Settings

logger = logging.getLogger(__name__)

WRITE_BUFFER_BYTES = 64 * 1024
"""Unsent bytes in the process before a response waits: 1.3 s of PCM."""
SOCKET_BUFFER_BYTES = 128 * 1024
"""Unsent bytes in the kernel, which takes twice the value, instead of megabytes."""
HEADER_BYTES = 16 << 10
PING_S = 20.0
_CLOSE_S = 5
_LEFTOVER_S = 5.0
"""For the rest of a body whose request was answered before its end."""
_RETRY_S = 5.0
_BAD_HEAD: Final = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_REASONS: Final = {429: "Too Many Requests", 503: "Service Unavailable"}


class EdgeConfig(uvicorn.Config):
    """No compression of audio, small messages, keep-alive pings, bounded heads; what our protocols go by."""

    def __init__(self, app: FastAPI, settings: Settings, gate: ConnectionGate) -> None:
        super().__init__(
            app,
            host=settings.host,
            port=settings.port,
            loop="uvloop" if sys.platform != "win32" else "asyncio",
            ws=EdgeWebSocketProtocol,
            # Up to here the session itself says what is too large; beyond it the socket closes with 1009.
            ws_max_size=4 * settings.limits.message_bytes,
            ws_per_message_deflate=False,
            ws_ping_interval=PING_S,
            ws_ping_timeout=PING_S,
            http=EdgeHttpProtocol,
            h11_max_incomplete_event_size=HEADER_BYTES,
            timeout_keep_alive=settings.edge.keep_alive_s,  # type: ignore[arg-type]  # fractions work
            backlog=settings.backlog,
            timeout_graceful_shutdown=_CLOSE_S,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
        )
        self.limits = settings.edge
        self.gate = gate


class EdgeWebSocketProtocol(LiveWebSocketProtocol):
    """A `LiveWebSocketProtocol` that is counted out when it is over."""

    config: EdgeConfig

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self.config.gate.leave(self.transport)
        super().connection_lost(exc)


class EdgeHttpProtocol(H11Protocol):
    """See the module's docstring."""

    config: EdgeConfig
    _head_timer: asyncio.TimerHandle | None = None
    _leftover_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, bound the buffer, and offer the application the abort as part of the request's state."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        self.app_state = {**self.app_state, ABORT_STATE: transport.abort}
        refusal = self.config.gate.enter(transport, self.client[0] if self.client else "")
        if refusal is not None:
            self._turn_away(refusal)
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self.config.gate.leave(self.transport)
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the time for a head begins with its first one."""
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.IDLE and self._head_timer is None:
            self._await_head()
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE and self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over; uvicorn has no answer to a head that websockets does not take."""
        super().handle_websocket_upgrade(event)
        protocol = self.transport.get_protocol()
        if isinstance(protocol, EdgeWebSocketProtocol) and not protocol.handshake_initiated:
            self.transport.write(b"".join(protocol.conn.data_to_send()) or _BAD_HEAD)
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, unless an answer has begun; the application's own goes nowhere then."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """The request was answered; its body may not have come to its end."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._leftover_timer = self.loop.call_later(_LEFTOVER_S, self._drop_leftover, self.cycle)

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self.config.limits.head_s, self._too_slow)

    def _too_slow(self) -> None:
        self._head_timer = None
        logger.info("slow head", extra={"address": self.client[0] if self.client else None})
        self.transport.abort()

    def _drop_leftover(self, cycle: object) -> None:
        self._leftover_timer = None
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self.transport.abort()

    def _disarm(self) -> None:
        for timer in (self._head_timer, self._leftover_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._leftover_timer = None

    def _turn_away(self, code: ErrorCode) -> None:
        error: RealtimeError
        if code is ErrorCode.RATE_LIMITED:
            error = RateLimited("too many connections from this address", _RETRY_S)
        else:
            error = ServerOverloaded("too many connections", _RETRY_S)
        fault = fault_of(error)
        body = json.dumps(error_body(fault)).encode()
        headers = {
            **error_headers(fault),
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
        }
        lines = [f"HTTP/1.1 {fault.http} {_REASONS[fault.http]}", *(f"{k}: {v}" for k, v in headers.items())]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()
