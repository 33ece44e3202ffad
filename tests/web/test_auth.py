"""Keys, quotas and what becomes of them in a connection's life, over real sockets."""

import asyncio
import json
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

from engine.fake import FakeEngine, FakeTiming
from realtime.client import connect
from realtime.client_errors import ServerError
from tests.support.keyed import BAD, GOOD, keys_file
from tests.support.running import Running, running, until
from web.logs import JsonFormatter

START = '{"type":"session.start"}'
BEARER = {"authorization": f"Bearer {GOOD}"}


async def told_close(client: ClientConnection) -> tuple[list[Any], int | None]:
    """What is told until the server closes, and the code."""
    told = []
    try:
        async with asyncio.timeout(5):
            while True:
                frame = await client.recv()
                if isinstance(frame, str):
                    told.append(json.loads(frame))
    except ConnectionClosed as closed:
        return told, closed.rcvd.code if closed.rcvd else None


async def post(server: Running, headers: dict[str, str], text: str = "Hello.") -> httpx.Response:
    async with server.client() as client:
        return await client.post("/v1/audio/speech", json={"input": text}, headers=headers)


async def test_without_a_key_nothing_is_accepted(tmp_path: Path) -> None:
    engine = FakeEngine()
    async with running(engine, {"keys_file": keys_file(tmp_path)}) as server:
        for headers in ({}, {"authorization": f"Bearer {BAD}"}, {"authorization": f"Basic {GOOD}"}):
            with pytest.raises(InvalidStatus) as refused:
                await open_socket(server.ws_url, additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == 401
            spoken = await post(server, headers)
            assert spoken.status_code == 401
            assert spoken.headers["www-authenticate"] == "Bearer"
            assert spoken.json()["error"]["code"] == "unauthorized"
        async with server.client() as client:
            for path, status in (("/healthz", 200), ("/readyz", 200), ("/", 200), ("/docs", 200)):
                assert (await client.get(path)).status_code == status
            for path in ("/v1/voices", "/v1/models", "/metrics", "/v1/nowhere", "/healthz/"):
                assert (await client.get(path, follow_redirects=False)).status_code == 401
        with pytest.raises(ServerError, match="unauthorized"):
            async with connect(server.ws_url, api_key=BAD):
                pass
        assert not engine.requests
        assert not server.runtime.hub.live
        assert server.runtime.access.refused["unauthorized"] > 5  # type: ignore[index]


async def test_a_key_may_come_in_four_ways(tmp_path: Path) -> None:
    async with running(FakeEngine(), {"keys_file": keys_file(tmp_path)}) as server:
        assert (await post(server, BEARER)).status_code == 200
        assert (await post(server, {"x-api-key": GOOD})).status_code == 200
        ways: list[dict[str, Any]] = [
            {"additional_headers": BEARER},
            {"additional_headers": {"x-api-key": GOOD}},
            {"subprotocols": ["voxwire.v1", f"voxwire.key.{GOOD}"]},
        ]
        for way in ways:
            async with open_socket(server.ws_url, proxy=None, **way) as client:
                assert client.subprotocol in (None, "voxwire.v1")
        async with open_socket(f"{server.ws_url}?api_key={GOOD}", proxy=None):
            pass
        async with connect(server.ws_url, api_key=GOOD) as session:
            utterance = session.utterance()
            await utterance.send("Hello.")
            await utterance.end()
            await utterance.read()


async def test_a_page_is_told_in_words_a_browser_shows(tmp_path: Path) -> None:
    async with running(FakeEngine(), {"keys_file": keys_file(tmp_path)}) as server:
        client = await open_socket(server.ws_url, origin=server.url, proxy=None)  # type: ignore[arg-type]
        told, code = await told_close(client)
        assert [body["code"] for body in told] == ["unauthorized"]
        assert code == 4401
        assert not server.runtime.hub.live


async def test_a_key_is_in_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.INFO, logger="uvicorn.error")
    async with running(FakeEngine(), {"keys_file": keys_file(tmp_path)}) as server:
        async with open_socket(f"{server.ws_url}?a=1&api_key={GOOD}", proxy=None) as client:
            await client.send(START)
            await client.recv()
        for spelled in ("api_key", "api%5Fkey"):
            with pytest.raises(InvalidStatus):
                await open_socket(f"{server.ws_url}?{spelled}={BAD}", proxy=None)
        await post(server, BEARER)
        await post(server, {"authorization": f"Bearer {BAD}"})
        async with open_socket(server.ws_url, proxy=None, subprotocols=[f"voxwire.key.{GOOD}"]):  # type: ignore[list-item]
            pass
    lines = [
        JsonFormatter().format(item) for item in caplog.records if not item.name.startswith("websockets")
    ]
    shown = "\n".join(lines)
    assert "/v1/stream?a=1&api_key=..." in shown
    assert GOOD not in shown
    assert BAD not in shown
    opened = next(json.loads(line) for line in lines if "session opened" in line)
    assert opened["key"] == "alice"
    assert opened["address"] == "127.0.0.1"
    refused = next(json.loads(line) for line in lines if '"refused"' in line)
    assert (refused["code"], refused["address"]) == ("unauthorized", "127.0.0.1")


async def test_sessions_of_a_key_have_a_quota(tmp_path: Path) -> None:
    engine = FakeEngine(timing=FakeTiming(frame_s=0.01))
    async with running(engine, {"keys_file": keys_file(tmp_path, "sessions = 1")}) as server:
        async with open_socket(server.ws_url, additional_headers=BEARER, proxy=None):
            await until(lambda: server.runtime.hub.live)
            second = await open_socket(server.ws_url, additional_headers=BEARER, proxy=None)
            told, code = await told_close(second)
            assert ([body["code"] for body in told], code) == (["rate_limited"], 4429)
            assert told[0]["retry_after_s"] > 0
            spoken = await post(server, BEARER)
            assert (spoken.status_code, spoken.json()["error"]["code"]) == (429, "rate_limited")
            assert int(spoken.headers["retry-after"]) >= 1
            async with server.client() as client:
                assert (await client.get("/v1/voices", headers=BEARER)).status_code == 200
                assert (await client.delete("/v1/rtc/none", headers=BEARER)).status_code == 404
        await until(lambda: not server.runtime.hub.live)
        assert (await post(server, BEARER)).status_code == 200


async def test_characters_of_a_key_have_a_quota(tmp_path: Path) -> None:
    async with running(FakeEngine(), {"keys_file": keys_file(tmp_path, "chars_per_minute = 30")}) as server:
        assert (await post(server, BEARER, "Twenty-two characters.")).status_code == 200
        spoken = await post(server, BEARER, "Twenty-two characters.")
        assert spoken.status_code == 429
        assert 20 <= int(spoken.headers["retry-after"]) <= 60
        async with open_socket(server.ws_url, additional_headers=BEARER, proxy=None) as client:
            await client.send(START)
            await client.send(json.dumps({"type": "text", "text": "Twenty-two characters."}))
            told, code = await told_close(client)
            assert (told[-1]["code"], code) == ("rate_limited", 4429)
            assert told[-1]["retryable"]


async def test_a_key_that_is_withdrawn_ends_its_sessions(tmp_path: Path) -> None:
    file = keys_file(tmp_path)
    async with running(FakeEngine(), {"keys_file": file, "edge.recheck_s": 0.02}) as server:
        async with open_socket(server.ws_url, additional_headers=BEARER, proxy=None) as client:
            await client.send(START)
            await client.recv()
            keys_file(tmp_path, "sessions = 5")
            await asyncio.sleep(0.1)
            assert server.runtime.hub.live
            file.write_text("nonsense")
            await asyncio.sleep(0.1)
            assert server.runtime.hub.live, "a broken file withdraws nothing"
            keys_file(tmp_path, name="bob", secret="vw_other")
            told, code = await told_close(client)
            assert ([body["code"] for body in told], code) == (["unauthorized"], 4401)
        await until(lambda: not server.runtime.hub.live)
        assert (await post(server, BEARER)).status_code == 401


async def test_a_key_that_expires_ends_its_sessions(tmp_path: Path) -> None:
    file = keys_file(tmp_path, "expires = 2100-01-01T00:00:00Z")
    async with (
        running(FakeEngine(), {"keys_file": file}) as server,
        open_socket(server.ws_url, additional_headers=BEARER, proxy=None) as client,
    ):
        await client.send(START)
        await client.recv()
        server.runtime.access.recheck(datetime(2099, 12, 31, tzinfo=UTC))
        assert server.runtime.hub.live
        server.runtime.access.recheck(datetime(2100, 1, 1, tzinfo=UTC))
        told, code = await told_close(client)
        assert ([body["code"] for body in told], code) == (["unauthorized"], 4401)


async def test_no_session_lasts_for_ever() -> None:
    async with running(FakeEngine(), {"edge.session_s": 0.2, "edge.recheck_s": 0.05}) as server:
        async with open_socket(server.ws_url, proxy=None) as client:
            await client.send(START)
            told, code = await told_close(client)
            assert (told[-1]["code"], code) == ("draining", 1012)
        await until(lambda: not server.runtime.hub.live)
