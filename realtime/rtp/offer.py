"""What a client's SDP offer must hold, and what of it is believed. Pure."""

from dataclasses import dataclass
from typing import Final

from realtime.errors import InvalidRequest, TooLarge

OFFER_BYTES: Final = 64 << 10
_FIELD: Final = "sdp"
_CANDIDATES: Final = ("a=candidate:", "a=end-of-candidates")
_FINGERPRINTS: Final = ("a=fingerprint:sha-256 ", "a=fingerprint:sha-384 ", "a=fingerprint:sha-512 ")
_RECEIVES: Final = ("a=recvonly", "a=sendrecv")
_DIRECTIONS: Final = ("a=sendonly", "a=recvonly", "a=sendrecv", "a=inactive")


@dataclass(frozen=True, slots=True)
class Offer:
    """A checked offer: ``sdp`` as it is used, and the ICE user fragment it is known by."""

    sdp: str
    ufrag: str


def read_offer(sdp: str, *, trust_candidates: bool) -> Offer:
    """Check an offer: one audio line that takes Opus, one data channel line, bundled.

    Its candidates are left out unless ``trust_candidates``: a server that others can reach learns a client's
    address from the client's own checks, and sends nothing to addresses that somebody only named. Names
    (``.local``) are always left out, and so is the end of candidates: the checks may come from yet another.

    Raises `InvalidRequest`, `TooLarge`.
    """
    size = len(sdp.encode("utf-8", "surrogatepass"))
    if size > OFFER_BYTES:
        raise TooLarge(_FIELD, size, OFFER_BYTES)
    lines = sdp.splitlines()
    if not lines or lines[0] != "v=0":
        raise InvalidRequest("this is no SDP: it must begin with v=0", _FIELD)
    starts = [number for number, line in enumerate(lines) if line.startswith("m=")]
    ends = [*starts, len(lines)][1:]
    head = lines[: starts[0]] if starts else lines
    media = [lines[start:end] for start, end in zip(starts, ends, strict=True)]
    _check_lines(media)
    if not any(line.startswith("a=group:BUNDLE ") for line in head):
        raise InvalidRequest("audio and data channel must share one transport (a=group:BUNDLE)", _FIELD)
    ufrags = {line.partition(":")[2] for line in lines if line.startswith("a=ice-ufrag:")}
    if len(ufrags) != 1:
        raise InvalidRequest("there must be one a=ice-ufrag", _FIELD)
    if not any(line.startswith(_FINGERPRINTS) for line in lines):
        raise InvalidRequest("there must be an a=fingerprint of SHA-256, SHA-384 or SHA-512", _FIELD)
    if not any(line.startswith("a=setup:") for line in lines):
        raise InvalidRequest("there must be an a=setup", _FIELD)
    kept = [line for line in lines if _kept(line, trust_candidates)]
    return Offer("\r\n".join(kept) + "\r\n", ufrags.pop())


def read_candidates(fragment: str, offer: Offer) -> list[str]:
    """The candidates of a trickle-ICE fragment (RFC 8840), as SDP attribute values.

    Raises `InvalidRequest` when it is about other credentials than the offer's: that would be an ICE restart.
    """
    if len(fragment) > OFFER_BYTES:
        raise TooLarge("fragment", len(fragment), OFFER_BYTES)
    lines = fragment.splitlines()
    if f"a=ice-ufrag:{offer.ufrag}" not in lines:
        raise InvalidRequest("ICE cannot be restarted here: open a new session with a new offer", "ice-ufrag")
    found = [line.removeprefix("a=") for line in lines if line.startswith("a=candidate:")]
    return [candidate for candidate in found if not _is_name(candidate)]


def _check_lines(media: list[list[str]]) -> None:
    kinds = [lines[0].removeprefix("m=").partition(" ")[0] for lines in media]
    for kind in kinds:
        if kind not in ("audio", "application"):
            raise InvalidRequest(f"m={kind[:32]}: only audio and a data channel are served", _FIELD)
    if kinds.count("application") != 1:
        raise InvalidRequest(
            "there must be one m=application: create the data channel 'voxwire' before the offer", _FIELD
        )
    if kinds.count("audio") != 1:
        raise InvalidRequest("there must be one m=audio: add one audio transceiver before the offer", _FIELD)
    audio = media[kinds.index("audio")]
    if not any(line.startswith("a=rtpmap:") and " opus/48000" in line.lower() for line in audio):
        raise InvalidRequest("m=audio must offer opus/48000/2; nothing else is sent", _FIELD)
    directions = [line for line in audio if line in _DIRECTIONS] or ["a=sendrecv"]
    if directions[-1] not in _RECEIVES:
        raise InvalidRequest(f"m=audio must be recvonly or sendrecv, not {directions[-1][2:]}", _FIELD)


def _kept(line: str, trust_candidates: bool) -> bool:
    if line.startswith("a=candidate:"):
        return trust_candidates and not _is_name(line)
    return not line.startswith(_CANDIDATES)


def _is_name(candidate: str) -> bool:
    """Whether a candidate has a host name for an address (mDNS), which would have to be looked up."""
    parts = candidate.split()
    return len(parts) > 4 and not all(char in "0123456789abcdefABCDEF.:" for char in parts[4])
