"""What is taken for an offer."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realtime.errors import InvalidRequest, TooLarge
from realtime.rtp.offer import OFFER_BYTES, read_candidates, read_offer

OFFER = """v=0
o=- 1 2 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0 1
m=audio 9 UDP/TLS/RTP/SAVPF 111 0
a=mid:0
a=ice-ufrag:abcd
a=ice-pwd:secretsecretsecretsecret
a=fingerprint:sha-256 00:11
a=setup:actpass
a=recvonly
a=rtpmap:111 opus/48000/2
a=rtpmap:0 PCMU/8000
a=candidate:1 1 udp 2130706431 192.0.2.7 5000 typ host
a=candidate:2 1 udp 2130706431 6d1c5a6e-0000-4000-8000-0123456789ab.local 5001 typ host
a=end-of-candidates
m=application 9 UDP/DTLS/SCTP webrtc-datachannel
a=mid:1
a=ice-ufrag:abcd
a=sctp-port:5000
"""


def test_a_good_offer() -> None:
    offer = read_offer(OFFER, trust_candidates=False)
    assert offer.ufrag == "abcd"
    assert offer.sdp.splitlines() == [line for line in OFFER.splitlines() if "candidate" not in line], (
        "nothing is sent to an address that was only named"
    )
    assert read_offer(OFFER.replace("\n", "\r\n"), trust_candidates=False) == offer


def test_candidates_where_they_are_needed() -> None:
    kept = read_offer(OFFER, trust_candidates=True).sdp
    assert "192.0.2.7" in kept
    assert ".local" not in kept
    assert "end-of-candidates" not in kept


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("v=0", "v=1", "no SDP"),
        (OFFER, "", "no SDP"),
        (OFFER, "\0\x01garbage", "no SDP"),
        (OFFER, "v=0\n", "m=application"),
        ("opus/48000/2", "G722/8000", "opus/48000/2"),
        ("a=recvonly", "a=sendonly", "not sendonly"),
        ("a=recvonly", "a=inactive", "not inactive"),
        ("m=audio", "m=video", "m=video"),
        ("m=application", "m=audio", "m=application"),
        ("a=group:BUNDLE 0 1\n", "", "BUNDLE"),
        ("a=ice-ufrag:abcd\na=ice-pwd", "a=ice-ufrag:other\na=ice-pwd", "ice-ufrag"),
        ("sha-256", "md5", "fingerprint"),
        ("a=setup:actpass\n", "", "a=setup"),
    ],
)
def test_what_is_refused(old: str, new: str, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told) as caught:
        read_offer(OFFER.replace(old, new, 1), trust_candidates=False)
    assert caught.value.field == "sdp"


def test_two_audio_lines_and_none() -> None:
    audio = OFFER[OFFER.index("m=audio") : OFFER.index("m=application")]
    for sdp in (OFFER + audio, OFFER.replace(audio, "")):
        with pytest.raises(InvalidRequest, match="one m=audio"):
            read_offer(sdp, trust_candidates=False)


def test_too_large() -> None:
    with pytest.raises(TooLarge):
        read_offer(OFFER + "a=x\n" * OFFER_BYTES, trust_candidates=False)


@given(st.text(max_size=300), st.integers(0, len(OFFER)), st.integers(0, 80))
def test_never_anything_else(text: str, at: int, length: int) -> None:
    for sdp in (text, OFFER[:at] + text + OFFER[at + length :]):
        with contextlib.suppress(InvalidRequest):
            read_offer(sdp, trust_candidates=True)


def test_trickled_candidates() -> None:
    offer = read_offer(OFFER, trust_candidates=True)
    fragment = "a=ice-ufrag:abcd\r\na=ice-pwd:x\r\nm=audio 9 RTP/AVP 0\r\na=mid:0\r\n"
    candidate = "candidate:1 1 udp 1 192.0.2.7 5000 typ host"
    named = "candidate:1 1 udp 1 x.local 5000 typ host"
    assert read_candidates(f"{fragment}a={candidate}\r\na={named}\r\na=end-of-candidates\r\n", offer) == [
        candidate
    ]
    with pytest.raises(InvalidRequest, match="restarted"):
        read_candidates(fragment.replace("abcd", "efgh"), offer)
    with pytest.raises(TooLarge):
        read_candidates(fragment * 2000, offer)
