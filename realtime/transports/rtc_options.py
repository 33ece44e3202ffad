"""WebRTC settings. Whoever only reads them does not wait for aiortc, which takes a second to import."""

from dataclasses import dataclass
from typing import Literal

CandidatePolicy = Literal["auto", "loopback", "host", "public"]


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
        if self.urls:
            from aiortc.rtcicetransport import parse_stun_turn_uri

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
