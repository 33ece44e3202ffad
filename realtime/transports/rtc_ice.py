"""Which addresses a peer is told, and which servers help to find one."""

from pathlib import Path

import ifaddr
from aioice import Candidate
from aiortc import RTCBundlePolicy, RTCConfiguration, RTCIceServer, RTCPeerConnection

from realtime.transports.rtc_options import RtcOptions

_LOOPBACK = ("127.0.0.1",)


def configuration(options: RtcOptions) -> RTCConfiguration:
    """For a peer. Reads the password's file; raises OSError."""
    credential = None
    if options.ice_credential_file:
        credential = Path(options.ice_credential_file).read_text().strip()
    servers = [RTCIceServer(url, options.ice_username or None, credential) for url in options.urls]
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
