"""Random bytes for everything that reads what strangers send. FUZZ_SECONDS says how long, 4 by default.

Half of the inputs are noise; the others are valid ones with some bytes changed, which get much further.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import Callable, Iterator

import pytest

from engine.fake import FakeEngine
from realtime.client_errors import ProtocolViolation
from realtime.messages import AppendText, Command, Reject
from realtime.protocols.frames import AudioFrame, Flags
from realtime.protocols.native import NativeAdapter
from tests.support.raw import BINARY, CLOSE, CONTINUATION, HANDSHAKE, PING, TEXT, frame, raw
from tests.support.running import running, until
from web import credentials

SECONDS = float(os.environ.get("FUZZ_SECONDS", "4"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
_HTTP = b"HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
_UPGRADE = HANDSHAKE.format(path="/v1/stream", key="AAAAAAAAAAAAAAAAAAAAAA==", more="").encode()
MESSAGES = [
    b'{"type":"session.start","voice":"ada","format":{"encoding":"pcm_s16le","sample_rate":24000}}',
    b'{"type":"text","text":"Hello \\ud83d","utterance":"a"}',
    b'{"type":"cancel","utterance":"a","played_ms":12.5}',
    b'{"type":"end"}',
    b'{"type":"close"}',
]
SPEAK = b'{"input":"Hello.","response_format":"wav"}'
REQUESTS = [
    b"GET /v1/voices " + _HTTP + b"\r\n",
    b"POST /v1/audio/speech " + _HTTP + b"Content-Length: %d\r\n\r\n" % len(SPEAK) + SPEAK,
    b"POST /v1/audio/speech " + _HTTP + b"Transfer-Encoding: chunked\r\n\r\n"
    + b"%x\r\n" % len(SPEAK) + SPEAK + b"\r\n0\r\n\r\n",
    _UPGRADE + b"".join(frame(TEXT, message) for message in MESSAGES),
    _UPGRADE + frame(TEXT, MESSAGES[0][:20], fin=False) + frame(PING, b"hi")
    + frame(CONTINUATION, MESSAGES[0][20:]),
    _UPGRADE + frame(BINARY, bytes(30)) + frame(CLOSE, b"\x03\xe8"),
]  # fmt: skip


def mutated(valid: list[bytes], chance: random.Random) -> bytes:
    """Noise, or one of ``valid`` with bytes changed, left out, doubled or put in."""
    if chance.random() < 0.5:
        return chance.randbytes(chance.randrange(200))
    data = bytearray(chance.choice(valid))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at : at + 1] = chance.randbytes(1)
            case 1:
                del data[at : at + chance.randrange(1, 20)]
            case 2:
                data[at:at] = data[at : at + chance.randrange(1, 20)]
            case _:
                data[at:at] = chance.randbytes(chance.randrange(1, 20))
    return bytes(data)


def inputs(valid: list[bytes], share: float) -> Iterator[bytes]:
    """Inputs for a ``share`` of the time."""
    chance = random.Random(SEED)
    until_s = time.monotonic() + SECONDS * share
    while time.monotonic() < until_s:
        for _ in range(50):
            yield mutated(valid, chance)


ADAPTER = NativeAdapter(1000)


def decode(data: bytes) -> None:
    for message in (data, data.decode("latin-1"), data.decode("utf-8", "surrogateescape")):
        commands: list[Command] = ADAPTER.receive(message)
        for command in commands:
            if isinstance(command, Reject):
                json.dumps(str(command.error)).encode()
            elif isinstance(command, AppendText):
                command.text.encode()


def parse_audio(data: bytes) -> None:
    try:
        AudioFrame.parse(data).to_bytes()
    except (ValueError, ProtocolViolation):
        return


def take_credentials(data: bytes) -> None:
    head, _, query = data.partition(b"?")
    for kind in ("http", "websocket"):
        scope = {
            "type": kind,
            "headers": [(b"authorization", head), (b"x-api-key", data), (b"origin", data)],
            "query_string": query,
            "subprotocols": [data.decode("latin-1")],
        }
        found = credentials.take(scope)
        assert found is None or isinstance(found, str)
        assert credentials.take(scope) is None or kind == "websocket"


PARSERS: dict[str, tuple[Callable[[bytes], None], list[bytes]]] = {
    "native messages": (decode, MESSAGES),
    "audio frames": (parse_audio, [AudioFrame(1, 2, 3, b"abc", Flags.FIRST).to_bytes()]),
    "credentials": (take_credentials, [b"Bearer vw_x?api_key=vw_y&a=b", b"voxwire.key.vw_x?api%5Fkey=%ff"]),
}


@pytest.mark.timeout(SECONDS + 60)
@pytest.mark.parametrize("name", PARSERS)
def test_a_parser_raises_only_what_it_says(name: str) -> None:
    parse, valid = PARSERS[name]
    for data in inputs(valid, 0.15):
        parse(data)


@pytest.mark.timeout(SECONDS + 60)
async def test_the_server_survives_whatever_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine()
    async with running(engine, {"edge.head_s": 1, "edge.body_s": 1, "edge.keep_alive_s": 1}) as server:
        tasks = len(asyncio.all_tasks())
        for data in inputs(REQUESTS, 0.5):
            async with raw(server.server.port) as client:
                client.write(data)
                try:
                    await asyncio.wait_for(client.reader.read(1000), 0.02)
                except (TimeoutError, ConnectionError):
                    continue
        await until(lambda: not server.runtime.hub.live and not server.runtime.gate.open, 10)
        await until(lambda: len(asyncio.all_tasks()) <= tasks, 10)
        assert not engine.live
        async with server.client() as client:
            assert (await client.post("/v1/audio/speech", json={"input": "Hello."})).status_code == 200
    broke = [item for item in caplog.records if item.exc_info and item.name != "asyncio"]
    assert not broke, broke[0].exc_text or broke[0].getMessage()
