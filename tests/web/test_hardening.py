"""The security checklist: what hostile clients do, line by line, over real sockets."""

import asyncio
import json
import re
import resource
from pathlib import Path

import pytest
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import InvalidStatus

from engine.fake import FakeEngine
from tests.support.keyed import GOOD, keys_file
from tests.support.raw import BINARY, CONTINUATION, PING, TEXT, Raw, frame, raw
from tests.support.running import Running, running, until

START = b'{"type":"session.start","format":{"encoding":"pcm_s16le","sample_rate":24000}}'
HEAD = b"GET /healthz HTTP/1.1\r\nX-A: "
POST = (
    b"POST /v1/audio/speech HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    b"Content-Length: 900\r\n\r\n"
)
ROOT = Path(__file__).parents[2]


async def healthy(server: Running) -> None:
    """It still serves, and nothing of the attack is left."""
    async with server.client() as client:
        spoken = await client.post("/v1/audio/speech", json={"input": "Hello."})
        assert spoken.status_code == 200
    await until(lambda: not server.runtime.hub.live)
    await until(lambda: not server.runtime.gate.open, 6)


# --- transport security and origins ---


async def test_what_came_in_the_clear_to_a_trusted_proxy_is_refused() -> None:
    async with running(FakeEngine(), {"trusted_proxies": "127.0.0.1"}) as server, server.client() as client:
        for scheme, status in (("http", 400), ("https", 200)):
            answer = await client.get("/v1/voices", headers={"x-forwarded-proto": scheme})
            assert answer.status_code == status
        assert (await client.get("/healthz")).status_code == 200
        headers = {"x-forwarded-proto": "ws"}
        with pytest.raises(InvalidStatus, match="400"):
            await open_socket(server.ws_url, additional_headers=headers, proxy=None)


async def test_nobody_else_is_believed_what_they_forward(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running(FakeEngine()) as server:
        forwarded = {"x-forwarded-proto": "http", "x-forwarded-for": "192.0.2.1"}
        async with open_socket(server.ws_url, additional_headers=forwarded, proxy=None):
            pass
    opened = next(item for item in caplog.records if item.getMessage() == "session opened")
    assert vars(opened)["address"] == "127.0.0.1"


async def test_a_key_does_not_make_up_for_a_wrong_origin(tmp_path: Path) -> None:
    async with running(FakeEngine(), {"keys_file": keys_file(tmp_path)}) as server:
        headers = {"origin": "https://evil.example", "authorization": f"Bearer {GOOD}"}
        with pytest.raises(InvalidStatus, match="403"):
            await open_socket(server.ws_url, additional_headers=headers, proxy=None)
        async with server.client() as client:
            spoken = await client.post("/v1/audio/speech", json={"input": "Hello."}, headers=headers)
            assert spoken.status_code == 403


async def test_no_page_of_elsewhere_may_read() -> None:
    async with running(FakeEngine()) as server, server.client() as client:
        for path in ("/v1/voices", "/openapi.json", "/metrics"):
            answer = await client.get(path, headers={"origin": "https://evil.example"})
            assert not [name for name in answer.headers if name.startswith("access-control")]
        page = await client.get("/")
        assert "'unsafe-inline'" not in page.headers["content-security-policy"]
        assert not re.search(r"<script(?![^>]*\bsrc=)", page.text)
        assert "set-cookie" not in page.headers


# --- sizes ---


async def test_compression_is_off() -> None:
    async with running(FakeEngine()) as server, raw(server.server.port) as client:
        head = await client.upgrade(more="Sec-WebSocket-Extensions: permessage-deflate\r\n")
        assert head.startswith(b"HTTP/1.1 101")
        assert b"extensions" not in head.lower()


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([frame(TEXT, b"[" * 60_000)], 1008),
        ([frame(TEXT, b'{"a":' * 10_000)], 1008),
        ([frame(TEXT, b'{"type":"keepalive","' + b"k" * 60_000 + b'":1}')], 1008),
        ([frame(TEXT, b'{"type":"keepalive","x":1}')], 1008),
        ([frame(TEXT, b"\xff\xfe")], 1007),
        ([frame(TEXT, b"a" * 70_000)], 1009),
        ([frame(TEXT, b"a" * 300_000)], 1009),
        ([frame(BINARY, bytes(100))], 1008),
        ([frame(CONTINUATION, b"a")], 1002),
        ([frame(PING, bytes(126))], 1002),
        ([frame(3)], 1002),
        ([bytes([0x81, 0x01, 0x41])], 1002),
    ],
    ids=[
        "deep list", "deep object", "long key", "unknown key", "no UTF-8", "over the limit", "far over it",
        "binary", "continues nothing", "long ping", "unknown opcode", "not masked",
    ],
)  # fmt: skip
async def test_malformed_frames_and_messages(messages: list[bytes], code: int) -> None:
    async with running(FakeEngine()) as server:
        async with raw(server.server.port) as client:
            await client.upgrade()
            for message in messages:
                client.write(message)
            assert await client.close_code() == code
        await healthy(server)


async def test_a_message_in_endless_fragments() -> None:
    async with running(FakeEngine()) as server:
        for piece in (b"", b"a"):
            async with raw(server.server.port) as client:
                await client.upgrade()
                client.write(frame(TEXT, piece, fin=False))
                client.write(frame(CONTINUATION, piece, fin=False) * 20_000)
                assert await client.close_code() == 1009
        await healthy(server)


async def test_ten_thousand_tiny_messages() -> None:
    async with running(FakeEngine()) as server:
        async with raw(server.server.port) as client:
            await client.upgrade()
            client.write(frame(TEXT, START))
            client.write(frame(TEXT, b'{"type":"keepalive"}') * 10_000)
            client.write(frame(TEXT, b'{"type":"close"}'))
            assert await client.close_code(30) == 1000
        await healthy(server)


async def test_pings_of_a_client_that_reads_nothing_cost_no_memory() -> None:
    async with running(FakeEngine(), {"limits.idle_s": 3, "limits.start_s": 3}) as server:
        async with raw(server.server.port) as client:
            await client.upgrade()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            pings = frame(PING, bytes(125)) * 1000
            for _ in range(300):
                client.write(pings)
                try:
                    async with asyncio.timeout(0.5):
                        await client.writer.drain()
                except (TimeoutError, ConnectionError):
                    break
            # Both ends live in this process: 38 MB are sent, and the answers would be as much.
            grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            assert grown_kb < 20_000
        await healthy(server)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ("X: y\r\n" * 200, b" 431 "),
        ("X: " + "y" * 10_000 + "\r\n", b" 431 "),
        ("X: " + "y" * 20_000, b" 400 "),
    ],
    ids=["many headers", "a long header", "a longer one"],
)
async def test_large_heads(more: str, status: bytes) -> None:
    async with running(FakeEngine()) as server:
        async with raw(server.server.port) as client:
            assert status in await client.upgrade(more=more)
            await client.rest()
        await healthy(server)


# --- time ---


async def test_a_head_that_comes_byte_by_byte() -> None:
    async with running(FakeEngine(), {"edge.head_s": 0.5}) as server:
        async with raw(server.server.port) as client:
            began = asyncio.get_running_loop().time()
            dripping = asyncio.create_task(_drip(client, HEAD + b"b" * 1000))
            assert await client.rest() == b""
            assert 0.4 < asyncio.get_running_loop().time() - began < 3
            dripping.cancel()
        await healthy(server)


async def test_the_head_of_a_second_request_has_its_time_too() -> None:
    async with running(FakeEngine(), {"edge.head_s": 0.5}) as server:
        async with raw(server.server.port) as client:
            client.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            await client.head()
            dripping = asyncio.create_task(_drip(client, HEAD + b"b" * 1000))
            await client.rest(5)
            dripping.cancel()
        await healthy(server)


async def test_a_connection_that_says_nothing() -> None:
    async with running(FakeEngine(), {"edge.head_s": 0.2}) as server:
        async with raw(server.server.port) as client:
            assert await client.rest(5) == b""
        await healthy(server)


async def test_a_body_that_comes_byte_by_byte() -> None:
    async with running(FakeEngine(), {"edge.body_s": 0.3}) as server:
        async with raw(server.server.port) as client:
            client.write(POST)
            dripping = asyncio.create_task(_drip(client, b" " * 900))
            assert b" 408 " in await client.head()
            await client.rest(8)
            dripping.cancel()
        await healthy(server)


async def test_a_body_that_nobody_waits_for(tmp_path: Path) -> None:
    async with running(FakeEngine(), {"keys_file": keys_file(tmp_path)}) as server:
        async with raw(server.server.port) as client:
            client.write(POST)
            dripping = asyncio.create_task(_drip(client, b" " * 900))
            assert b" 401 " in await client.head()
            await client.rest(8)
            dripping.cancel()
        await until(lambda: not server.runtime.gate.open)


async def test_a_session_that_is_never_started_or_falls_silent() -> None:
    async with running(FakeEngine(), {"limits.start_s": 0.2, "limits.idle_s": 0.2}) as server:
        for first in (b"", frame(TEXT, START)):
            async with raw(server.server.port) as client:
                await client.upgrade()
                client.write(first)
                assert await client.close_code(5) == 4408
        await healthy(server)


async def test_a_client_that_has_vanished() -> None:
    async with running(FakeEngine()) as server:
        server.server.config.ws_ping_interval = server.server.config.ws_ping_timeout = 0.2
        async with raw(server.server.port) as client:
            await client.upgrade()
            client.write(frame(TEXT, START))
            assert await client.close_code(5) == 1011
        await healthy(server)


async def test_five_hundred_idle_connections() -> None:
    flags = {"edge.connections_per_address": 1000, "edge.head_s": 1.0}
    async with running(FakeEngine(), flags) as server:
        idle = [await asyncio.open_connection("127.0.0.1", server.server.port) for _ in range(500)]
        async with server.client() as client:
            assert (await client.post("/v1/audio/speech", json={"input": "Hello."})).status_code == 200
        await until(lambda: not server.runtime.gate.open, 10)
        for _, writer in idle:
            writer.close()


# --- how many ---


async def test_connections_of_an_address_are_limited() -> None:
    async with running(FakeEngine(), {"edge.connections_per_address": 2}) as server:
        async with raw(server.server.port) as one, raw(server.server.port) as two:
            await one.upgrade()
            await until(lambda: server.runtime.gate.open == 2)
            async with raw(server.server.port) as three:
                told = await three.rest()
                assert told.startswith(b"HTTP/1.1 429 ")
                assert b"retry-after: 5\r\n" in told
                assert json.loads(told.partition(b"\r\n\r\n")[2])["error"]["code"] == "rate_limited"
            two.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b" 200 " in await two.head()
        await healthy(server)


async def test_connections_of_the_process_are_limited() -> None:
    async with running(FakeEngine(), {"edge.connections": 1}) as server:
        async with raw(server.server.port), raw(server.server.port) as two:
            told = await two.rest()
            assert told.startswith(b"HTTP/1.1 503 ")
        await until(lambda: not server.runtime.gate.open)
        async with server.client() as client:
            figures = (await client.get("/metrics")).text
        assert 'voxwire_refused_total{code="overloaded"} 1.0' in figures
        assert "voxwire_connections 1.0" in figures
        assert "voxwire_loop_lag_seconds_count" in figures


async def test_sessions_of_the_process_are_limited() -> None:
    async with running(FakeEngine(), {"limits.sessions": 1}) as server:
        async with raw(server.server.port) as one:
            await one.upgrade()
            await until(lambda: server.runtime.hub.live)
            async with raw(server.server.port) as two:
                await two.upgrade()
                assert await two.close_code() == 1013
        await healthy(server)


async def test_a_client_that_does_not_read_is_dropped_alone() -> None:
    engine = FakeEngine()
    async with running(engine, {"limits.send_timeout_s": 0.5}) as server:
        async with raw(server.server.port) as client:
            await client.upgrade()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.write(frame(TEXT, START))
            text = json.dumps({"type": "text", "text": "Hello there. " * 1000}).encode()
            client.write(frame(TEXT, text) + frame(TEXT, b'{"type":"end"}'))
            await until(lambda: server.runtime.hub.live)
            # It hears 4 s ahead at most; a listener that plays would be granted more. Pings find it as well.
            server.server.config.ws_ping_timeout = 1.0
            async with server.client() as other:
                assert (await other.post("/v1/audio/speech", json={"input": "Hello."})).status_code == 200
        await until(lambda: not server.runtime.hub.live, 5)
        assert not engine.live


# --- content ---


async def test_nothing_is_fetched_and_nothing_unpickled() -> None:
    async with running(FakeEngine()) as server, server.client() as client:
        for extra in ({"ref_audio": "http://169.254.169.254/"}, {"voice": "file:///etc/passwd"}):
            spoken = await client.post("/v1/audio/speech", json={"input": "Hello.", **extra})
            assert spoken.status_code in (404, 422)
    for folder in ("engine", "realtime", "web"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not re.search(r"\b(pickle|torch\.load)\b|weights_only=False", path.read_text()), path


async def test_a_fault_of_ours_is_told_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine()
    async with running(engine) as server, server.client() as client:

        def broken(*_: object) -> None:
            raise ValueError("secret at 0x7f")

        engine.open = broken  # type: ignore[method-assign, assignment]
        spoken = await client.post("/v1/audio/speech", json={"input": "Hello."})
        assert (spoken.status_code, spoken.json()["error"]["code"]) == (500, "engine_failure")
        assert "secret" not in spoken.text
        assert "Traceback" not in spoken.text
    assert "secret at 0x7f" in caplog.text


@pytest.mark.parametrize("text", ["Hi\x00\x1b[31m there.", "Hi\r\n\r\nHTTP/1.1 200 OK\x07"])
async def test_control_characters_are_not_spoken(text: str) -> None:
    engine = FakeEngine()
    async with running(engine) as server, server.client() as client:
        spoken = await client.post("/v1/audio/speech", json={"input": text})
        assert spoken.status_code == 200
        missing = await client.post("/v1/audio/speech", json={"input": "Hi.", "voice": text})
        assert missing.status_code == 404
        assert not re.search(r"[\x00-\x1f]", missing.json()["error"]["message"].replace("\\", ""))


async def _drip(client: Raw, data: bytes) -> None:
    for byte in data:
        client.write(bytes([byte]))
        await asyncio.sleep(0.05)
