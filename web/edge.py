"""Bounds of the process edge: what one connection, address or key can take up before a session begins."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class EdgeLimits:
    """All positive.

    Attributes:
        head_s: seconds from the connection (or the first byte of its next request) to the end of the head.
        body_s: seconds from there to the end of the request's body.
        keep_alive_s: seconds an HTTP connection may wait for its next request.
        connections: connections of the process, upgraded ones included.
        connections_per_address: of one client address; trusted proxies are not counted.
        session_s: longest life of a WebSocket.
        recheck_s: how often keys are looked at again, and with them the sockets opened with them.
        stall_s: how late the event loop may be before the stack that blocks it is logged.
    """

    head_s: float = 10.0
    body_s: float = 30.0
    keep_alive_s: float = 5.0
    connections: int = 1024
    connections_per_address: int = 256
    session_s: float = 14_400.0
    recheck_s: float = 5.0
    stall_s: float = 0.25

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not value > 0:
                raise ValueError(f"edge limit {item.name} is {value}; it must be positive")
