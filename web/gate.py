"""How many connections there may be, of the process and of one client address."""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Sequence

from realtime.errors import ErrorCode

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_IPV6_SITE = 64
"""Prefix of the addresses that one IPv6 site has at will: they count as one."""


class ConnectionGate:
    """Counts connections by what they are, transports, so that an upgrade changes nothing.

    ``exempt`` are networks whose addresses stand for many clients: trusted proxies.

    Attributes:
        refused: connections turned away, by code.
    """

    def __init__(self, total: int, per_address: int, exempt: Sequence[Network] = ()) -> None:
        self.refused: Counter[ErrorCode] = Counter()
        self._total = total
        self._per_address = per_address
        self._exempt = exempt
        self._sources: dict[asyncio.BaseTransport, str] = {}
        self._count: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Connections there are."""
        return len(self._sources)

    def enter(self, transport: asyncio.BaseTransport, address: str) -> ErrorCode | None:
        """Count a connection in. Returns why it may not be, if so; then it is not counted."""
        source = self._source(address)
        refusal = None
        if len(self._sources) >= self._total:
            refusal = ErrorCode.OVERLOADED
        elif source and self._count[source] >= self._per_address:
            refusal = ErrorCode.RATE_LIMITED
        if refusal is not None:
            self.refused[refusal] += 1
            return refusal
        self._sources[transport] = source
        self._count[source] += 1
        return None

    def leave(self, transport: asyncio.BaseTransport) -> None:
        """Count it out; as often as one likes."""
        source = self._sources.pop(transport, None)
        if source is None:
            return
        self._count[source] -= 1
        if not self._count[source]:
            del self._count[source]

    def _source(self, address: str) -> str:
        """What is counted for ``address``; nothing ("") for those exempt and for no address at all."""
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return ""
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        if any(parsed in network for network in self._exempt):
            return ""
        if isinstance(parsed, ipaddress.IPv6Address) and not parsed.is_loopback:
            return str(ipaddress.ip_network((parsed, _IPV6_SITE), strict=False))
        return str(parsed)
