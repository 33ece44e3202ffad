"""The native WebSocket over a real socket."""

import asyncio
import json
import socket
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from engine.fake import FakeEngine, FakeTiming
from realtime.errors import ErrorCode, Unauthorized
from realtime.limits import Limits, Tuning
from realtime.protocols.frames import AudioFrame, Flags
from realtime.registry import SessionHub
from realtime.transports import websocket as transport
from tests.support.loopback import listening, until
from tests.support.observer import RecordingObserver

PCM = {"encoding": "pcm_s16le", "sample_rate": 24000}
START = {"type": "session.start", "format": PCM}


@asynccontextmanager
async def served(
    engine: FakeEngine | None = None, limits: Limits | None = None
) -> AsyncIterator[tuple[str, SessionHub]]:
    """A hub behind a socket; at the end no session, stream or task is left."""
    engine = engine or FakeEngine()
    await engine.start()
    limits = limits or Limits(send_buffer_ms=600_000)
    tuning = Tuning(lead_ms=600_000, close_s=0.2)
    hub = SessionHub(engine, limits=limits, tuning=tuning, observer=RecordingObserver())
    before = asyncio.all_tasks()
    async with listening(hub) as url:
        yield url, hub
        await until_gone(hub, engine)
    assert asyncio.all_tasks() == before
    hub.close()


async def until_gone(hub: SessionHub, engine: FakeEngine) -> None:
    await until(lambda: not hub.live and not engine.live, 5.0)


async def say(client: ClientConnection, *messages: dict[str, Any] | str | bytes) -> None:
    for message in messages:
        await client.send(json.dumps(message) if isinstance(message, dict) else message)


async def everything(client: ClientConnection) -> tuple[list[Any], list[AudioFrame], int | None]:
    """All messages until the close: JSON, audio, close code."""
    told, audio = [], []
    try:
        while True:
            frame = await client.recv()
            if isinstance(frame, str):
                told.append(json.loads(frame))
            else:
                audio.append(AudioFrame.parse(frame))
    except ConnectionClosed as closed:
        return told, audio, closed.rcvd.code if closed.rcvd else None


async def test_a_whole_session() -> None:
    async with served() as (url, _), connect(url, subprotocols=["voxwire.v1"]) as client:  # type: ignore[list-item]
        assert client.subprotocol == "voxwire.v1"
        await say(client, START, {"type": "text", "text": "Your table for fo"})
        await say(client, {"type": "text", "text": "ur is booked."}, {"type": "close"})
        told, audio, code = await everything(client)
    assert [body["type"] for body in told] == ["session.ready", "utterance.start", "utterance.done"]
    assert code == 1000
    assert audio[-1].flags == Flags.EOS
    assert audio[-1].pts == told[-1]["samples"]
    assert told[-1]["crc32"] == zlib.crc32(b"".join(frame.payload for frame in audio))
    assert told[-1]["ttfp_ms"] > 0


async def test_without_a_subprotocol() -> None:
    async with served() as (url, _), connect(url) as client:
        assert client.subprotocol is None
        await say(client, START, {"type": "close"})
        assert (await everything(client))[2] == 1000


@pytest.mark.parametrize(
    ("messages", "code", "close", "told"),
    [
        (["{nope"], "invalid_request", 1008, "JSON"),
        ([{"type": "sing"}], "invalid_request", 1008, "allowed"),
        ([{"type": "text", "text": "Hi"}], "invalid_request", 1008, "session.start"),
        ([START, START], "invalid_request", 1008, "session.update"),
        ([START, b"\x00\x01"], "invalid_request", 1008, "text frames"),
        ([{"type": "session.start", "voice": "nobody"}], "not_found", 4404, "ada, bob"),
        ([START, {"type": "text", "text": "a" * 10_000_000}], "too_large", 1009, "message_bytes"),
        ([START, {"type": "text", "text": "a" * 30_000}], "too_large", 1009, "utterance_chars"),
        (
            [{"type": "session.start", "format": {"encoding": "opus", "sample_rate": 44100}}],
            "invalid_request",
            1008,
            "48000",
        ),
        ([{"type": "session.start", "speed": -2}], "invalid_request", 1008, "speed"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, list) else "",
)
async def test_bad_input(messages: list[Any], code: str, close: int, told: str) -> None:
    async with served() as (url, _):
        async with connect(url) as client:
            await say(client, *messages)
            bodies, audio, closed = await everything(client)
        assert not audio
        error = bodies[-1]
        assert (error["type"], error["code"], closed) == ("error", code, close)
        assert told in error["message"]
        async with connect(url) as client:  # the server is unharmed
            await say(client, START, {"type": "text", "text": "Hi."}, {"type": "close"})
            assert (await everything(client))[2] == 1000


@pytest.mark.parametrize("text", ["", "   ", "\0", "\ud800", "😀", "?!...", "a\ud83d"])
async def test_odd_text_is_no_error(text: str) -> None:
    async with served() as (url, _), connect(url) as client:
        await say(client, START, json.dumps({"type": "text", "text": text}), {"type": "close"})
        told, _, code = await everything(client)
    assert told[-1]["type"] == "utterance.done"
    assert told[-1]["text_chars"] == len(text)
    assert code == 1000


async def test_a_client_that_vanishes() -> None:
    engine = FakeEngine(timing=FakeTiming(frame_s=0.005))
    async with served(engine) as (url, hub):
        client = await connect(url)
        await say(client, START, {"type": "text", "text": "One two three four five six."}, {"type": "end"})
        while not isinstance(await client.recv(), bytes):
            pass
        assert engine.live
        client.transport.abort()
        await until_gone(hub, engine)


async def test_a_client_that_does_not_read() -> None:
    """It has small buffers and reads nothing: the server lets go of it and of all it held."""
    limits = Limits(send_buffer_ms=1500)
    async with served(limits=limits) as (url, hub):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        port = int(url.split(":")[2].split("/")[0])
        await asyncio.get_running_loop().run_in_executor(None, sock.connect, ("127.0.0.1", port))
        client = await connect(url, sock=sock, max_queue=1)
        floats = {"encoding": "pcm_f32le", "sample_rate": 48000}
        await say(client, {"type": "session.start", "format": floats})
        await client.recv()
        engine = hub.engine
        assert isinstance(engine, FakeEngine)
        await say(client, {"type": "text", "text": "word " * 200 + "."}, {"type": "end"})
        await until_gone(hub, engine)
        assert isinstance(hub.observer, RecordingObserver)
        (fault,) = hub.observer.closed.values()
        assert fault is not None
        assert fault.code is ErrorCode.SLOW_CONSUMER
        _, _, code = await everything(client)
        assert code is None, "the connection was dropped, not closed behind a full buffer"


async def test_cancel_over_the_wire() -> None:
    engine = FakeEngine(timing=FakeTiming(frame_s=0.004))
    async with served(engine) as (url, _), connect(url) as client:
        await say(client, START, {"type": "text", "text": "One two three four five six."}, {"type": "end"})
        while not isinstance(await client.recv(), bytes):
            pass
        await say(client, {"type": "cancel", "played_ms": 0}, {"type": "close"})
        told, audio, code = await everything(client)
    assert code == 1000
    assert not any(frame.flags & Flags.EOS for frame in audio)
    assert told[-1]["type"] == "utterance.cancelled"
    assert told[-1]["unheard_text"] == "One two three four five six."


async def test_sessions_do_not_mix() -> None:
    texts = [f"Session number {number} speaks of itself." for number in range(8)]

    async def speak(url: str, text: str) -> tuple[Any, bytes]:
        async with connect(url) as client:
            voice = {"voice": "ada" if len(text) % 2 else "bob"}
            await say(client, START | voice, {"type": "text", "text": text}, {"type": "close"})
            told, audio, _ = await everything(client)
        return told[-1], b"".join(frame.payload for frame in audio)

    async with served(FakeEngine(timing=FakeTiming(frame_s=0.0005))) as (url, _):
        together = await asyncio.gather(*(speak(url, text) for text in texts))
        alone = [await speak(url, text) for text in texts]
    assert [payload for _, payload in together] == [payload for _, payload in alone]


async def test_refused_before_a_session() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "headers": [], "subprotocols": ["voxwire.v1"], "path": "/"}
    socket_ = WebSocket(scope, receive, send)
    await transport.refuse(socket_, Unauthorized("a key is needed"))
    assert [message["type"] for message in sent] == ["websocket.accept", "websocket.send", "websocket.close"]
    assert sent[0]["subprotocol"] == "voxwire.v1"
    assert json.loads(sent[1]["text"])["code"] == "unauthorized"
    assert sent[2]["code"] == 4401
