"""`/v1/rtc` over HTTP, on a running server."""

import json

import pytest

from engine.fake import FakeEngine
from realtime.transports.rtc_options import RtcOptions
from tests.support.rtc import RtcClient
from tests.support.running import Running, running, until
from web.settings import SettingsError, load

SDP = {"content-type": "application/sdp"}


async def test_a_session_from_offer_to_delete() -> None:
    async with running(FakeEngine()) as server, server.client() as http:
        where = ""

        async def negotiate(sdp: str) -> str:
            nonlocal where
            response = await http.post("/v1/rtc", content=sdp, headers=SDP)
            assert response.status_code == 201
            assert response.headers["content-type"] == "application/sdp"
            where = response.headers["location"]
            return response.text

        client = await RtcClient().connect(negotiate)
        client.say({"type": "session.start"}, {"type": "text", "text": "Hello."}, {"type": "end"})
        done = await client.until("utterance.done")
        assert len(client.voice()) == done["frames"]
        assert where == f"/v1/rtc/{client.messages('session.ready')[0]['session']}"
        assert (await http.delete(where)).status_code == 204
        await until(lambda: not server.runtime.peers.live and not server.runtime.hub.live, 5.0)
        gone = await http.delete(where)
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "not_found")
        await client.close()
        figures = (await http.get("/metrics")).text
        assert 'voxwire_rtp_late_seconds_bucket{le="+Inf"}' in figures
        assert "voxwire_rtp_gaps_total 0.0" in figures


async def test_json_for_pages() -> None:
    async with running(FakeEngine()) as server, server.client() as http:

        async def negotiate(sdp: str) -> str:
            response = await http.post("/v1/rtc", json={"type": "offer", "sdp": sdp})
            assert response.status_code == 201
            told = response.json()
            assert told["type"] == "answer"
            assert told["location"] == response.headers["location"] == f"/v1/rtc/{told['session']}"
            return str(told["sdp"])

        client = await RtcClient().connect(negotiate)
        client.say({"type": "session.start"}, {"type": "close"})
        await client.until("session.ready")
        await client.close()


async def test_shutdown_with_a_peer() -> None:
    async with running(FakeEngine()) as server, server.client() as http:

        async def negotiate(sdp: str) -> str:
            return (await http.post("/v1/rtc", content=sdp, headers=SDP)).text

        client = await RtcClient().connect(negotiate)
        client.say({"type": "session.start"})
        await client.until("session.ready")
        waiting = RtcClient()
        await negotiate(await waiting.offer())
        server.server.should_exit = True
        assert (await client.until("error"))["code"] == "draining"
    assert not server.runtime.peers.live
    await client.close()
    await waiting.close()


@pytest.mark.parametrize(
    ("content", "kind", "status", "param"),
    [
        ("v=0\r\n", "application/sdp", 422, "sdp"),
        ("", "application/sdp", 422, "sdp"),
        (b"\xff\xfe", "application/sdp", 400, None),
        ("v=0\r\n" + "a=x\r\n" * 20_000, "application/sdp", 413, "sdp"),
        ("{", "application/json", 400, None),
        ("[]", "application/json", 400, None),
        ('{"type": "answer", "sdp": "v=0"}', "application/json", 422, "type"),
        ('{"type": "offer"}', "application/json", 422, "sdp"),
        ('{"type": "offer", "sdp": "v=0", "x": 1}', "application/json", 422, "x"),
        ("v=0", "text/plain", 415, "content-type"),
    ],
)
async def test_offers_that_are_refused(
    content: str | bytes, kind: str, status: int, param: str | None
) -> None:
    async with running(FakeEngine()) as server, server.client() as http:
        response = await http.post("/v1/rtc", content=content, headers={"content-type": kind})
        assert (response.status_code, response.json()["error"]["param"]) == (status, param)
        assert not server.runtime.peers.live


async def patch(server: Running, where: str, body: str, kind: str) -> int:
    async with server.client() as http:
        return (await http.patch(where, content=body, headers={"content-type": kind})).status_code


async def test_patch() -> None:
    async with running(FakeEngine()) as server, server.client() as http:
        client = RtcClient()
        sdp = await client.offer()
        where = (await http.post("/v1/rtc", content=sdp, headers=SDP)).headers["location"]
        ufrag = next(line for line in sdp.splitlines() if line.startswith("a=ice-ufrag:"))
        fragment = "application/trickle-ice-sdpfrag"
        candidate = "a=candidate:1 1 udp 1 192.0.2.7 5000 typ host"
        assert await patch(server, where, f"{ufrag}\r\n{candidate}\r\n", fragment) == 204
        assert await patch(server, where, "a=ice-ufrag:new\r\na=ice-pwd:new\r\n", fragment) == 422
        assert await patch(server, where, sdp, "application/sdp") == 422, "no renegotiation"
        assert await patch(server, where, json.dumps({}), "application/json") == 415
        assert await patch(server, "/v1/rtc/s_other", ufrag, fragment) == 404
        await http.delete(where)
        await client.close()


def test_settings() -> None:
    assert load().rtc == RtcOptions()
    chosen = load({"rtc.candidates": "public", "rtc.advertise": "198.51.100.7"}).rtc
    assert (chosen.candidates, chosen.advertise) == ("public", "198.51.100.7")
    for wrong in (
        {"rtc.candidates": "public"},
        {"rtc.candidates": "any"},
        {"rtc.ice_servers": "stun:stun.example.net,http://x"},
        {"rtc.handshake_s": "0"},
    ):
        with pytest.raises(SettingsError):
            load(wrong)
