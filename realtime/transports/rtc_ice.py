"""Which addresses a peer is told, and which servers help to find one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import ifaddr
from aioice import Candidate
from aiortc import RTCBundlePolicy, RTCConfiguration, RTCIceServer, RTCPeerConnection
from aiortc.rtcicetransport import parse_stun_turn_uri

CandidatePolicy = Literal["auto", "loopback", "host", "public"]

_LOOPBACK = ("127.0.0.1",)


@dataclass(frozen=True, slots=True)
class RtcOptions:
    """WebRTC settings. Raises ValueError for what cannot work.

    Attributes:
        candidates: addresses that peers are told: this machine's loopback, its interfaces, or ``advertise``
            in their place; ``auto`` is loopback where the server listens at loopback only, else host.
        advertise: the public address that leads to this machine, one to one; for ``public``.
        ice_servers: STUN and TURN URLs, with commas. With them, candidates that a client names are tried too.
        ice_username: for the TURN server.
        ice_credential_file: file with the TURN server's password.
        handshake_s: seconds from the answer to the open data channel.
    """

    candidates: CandidatePolicy = "auto"
    advertise: str = ""
    ice_servers: str = ""
    ice_username: str = ""
    ice_credential_file: str = ""
    handshake_s: float = 10.0

    def __post_init__(self) -> None:
        if (self.candidates == "public") != bool(self.advertise):
            raise ValueError("rtc.candidates=public and rtc.advertise need each other")
        if not self.handshake_s > 0:
            raise ValueError("rtc.handshake_s must be positive")
        for url in self.urls:
            parse_stun_turn_uri(url)

    @property
    def urls(self) -> list[str]:
        """Of the ICE servers."""
        return [url.strip() for url in self.ice_servers.split(",") if url.strip()]

    @property
    def trusts_candidates(self) -> bool:
        """Whether packets may be sent to addresses that a client names: behind STUN or TURN they must."""
        return bool(self.urls)

    def configuration(self) -> RTCConfiguration:
        """For a peer. Reads the password's file; raises OSError."""
        credential = None
        if self.ice_credential_file:
            credential = Path(self.ice_credential_file).read_text().strip()
        servers = [RTCIceServer(url, self.ice_username or None, credential) for url in self.urls]
        # Without a list, aiortc would ask a public STUN server.
        return RTCConfiguration(iceServers=servers, bundlePolicy=RTCBundlePolicy.MAX_BUNDLE)


async def gather(peer: RTCPeerConnection, options: RtcOptions) -> None:
    """Gather ``peer``'s candidates as ``options`` say; for after its remote description is set.

    aiortc would take every interface but loopback, and knows no public address. Its own gathering finds the
    work done.
    """
    assert peer.sctp is not None
    connection = peer.sctp.transport.transport.iceGatherer._connection
    loopback = options.candidates in ("auto", "loopback")
    addresses = list(_LOOPBACK) if loopback else _interfaces()
    connection._local_candidates_start = True
    found = await connection.get_component_candidates(component=1, addresses=addresses)
    if options.candidates == "public":
        found = [_moved(item, options.advertise) for item in found if _same_family(item, options.advertise)]
    connection._local_candidates += found
    connection._local_candidates_end = True


def _interfaces() -> list[str]:
    """Addresses of this machine that others may reach; no link-local ones."""
    found = []
    for adapter in ifaddr.get_adapters():
        for ip in adapter.ips:
            address = ip.ip if isinstance(ip.ip, str) else ip.ip[0]
            scope = 0 if isinstance(ip.ip, str) else ip.ip[2]
            if address not in ("127.0.0.1", "::1") and scope == 0:
                found.append(address)
    return found or list(_LOOPBACK)


def _moved(candidate: Candidate, address: str) -> Candidate:
    if candidate.type != "host":
        return candidate
    return Candidate(
        foundation=candidate.foundation,
        component=candidate.component,
        transport=candidate.transport,
        priority=candidate.priority,
        host=address,
        port=candidate.port,
        type="host",
    )


def _same_family(candidate: Candidate, address: str) -> bool:
    return candidate.type != "host" or (":" in candidate.host) == (":" in address)
