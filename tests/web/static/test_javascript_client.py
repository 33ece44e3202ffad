"""The JavaScript client in Chromium, against a server that says exactly what it is told to."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from websockets.asyncio.server import ServerConnection, serve
from websockets.typing import Subprotocol

from engine.fake import FakeEngine
from realtime.client_stream import EOS, HEADER
from tests.support.browser import Page, browser, chromium_or_skip
from tests.support.running import running
from tests.support.scripted_server import PCM, Script

pytestmark = pytest.mark.asyncio(loop_scope="module")

FRAME = np.arange(480, dtype="<i2").tobytes()

SPEAK = """
(async () => {
  const { connect } = await import("/static/voxwire.js");
  const told = { warnings: [], packets: [] };
  try {
    const session = await connect({ url: "%s", words: true, timeoutMs: %d });
    session.addEventListener("warning", ({ detail }) => told.warnings.push(detail.code));
    const utterance = session.utterance();
    for (const piece of %s) utterance.send(piece);
    utterance.end();
    try {
      for await (const packet of utterance.packets()) {
        told.packets.push([packet.sequence, packet.pts, packet.samples]);
      }
      told.done = await utterance.finished;
    } finally {
      told.words = utterance.words;
      told.text = utterance.text;
    }
    session.close();
  } catch (error) {
    Object.assign(told, { error: error.constructor.name, code: error.code, message: error.message });
    Object.assign(told, { retryable: error.retryable, closeCode: error.closeCode });
  }
  return told;
})()
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def page() -> AsyncIterator[Page]:
    """A page of a server's that may talk to other servers: the demo's own may not."""
    async with running(FakeEngine()) as server, browser(chromium_or_skip()) as page:
        await page.goto(f"{server.url}/healthz")
        yield page


async def speak(
    page: Page, handler: Callable[[Script], Awaitable[None]], *pieces: str, timeout_ms: int = 2000
) -> dict[str, Any]:
    async def handle(socket: ServerConnection) -> None:
        await handler(Script(socket))

    # A browser wants the subprotocol it asked for.
    async with serve(handle, "127.0.0.1", 0, subprotocols=[Subprotocol("voxwire.v1")]) as server:
        port = server.sockets[0].getsockname()[1]
        url = f"ws://127.0.0.1:{port}/v1/stream"
        told: dict[str, Any] = await page.js(SPEAK % (url, timeout_ms, list(pieces) or ["Hello."]))
        return told


async def three_frames(script: Script) -> str:
    await script.ready()
    name = await script.begin()
    for _ in range(3):
        await script.packet(FRAME, 480)
    return name


async def test_a_whole_utterance(page: Page) -> None:
    async def handler(script: Script) -> None:
        name = await three_frames(script)
        await script.say("warning", code="text_dropped", message="a control character")
        await script.say("something.new", utterance=name)
        await script.sentinel(length=1300)
        await script.done(name, samples=1300)
        await script.hear("close")

    told = await speak(page, handler)
    assert "error" not in told
    assert told["packets"] == [[0, 0, 480], [1, 480, 480], [2, 960, 480]]
    assert told["done"]["samples"] == 1300
    assert told["warnings"] == ["text_dropped"]


async def test_code_points_become_units_of_javascript(page: Page) -> None:
    async def handler(script: Script) -> None:
        name = await three_frames(script)
        word = {"text": "there", "start_ms": 0, "end_ms": 60, "char_start": 3, "char_end": 8}
        await script.say("words", utterance=name, words=[word])
        await script.sentinel()
        await script.done(name)
        await script.hear("close")

    told = await speak(page, handler, "\N{GRINNING FACE} ", "\N{GRINNING FACE}there")
    [word] = told["words"]
    assert (word["charStart"], word["charEnd"]) == (5, 10)


async def cut(script: Script) -> None:
    await three_frames(script)
    script.socket.transport.abort()


async def closes_cleanly_without_a_sentinel(script: Script) -> None:
    await three_frames(script)
    await script.socket.close(1000)


async def done_without_a_sentinel(script: Script) -> None:
    await script.done(await three_frames(script))


async def falls_silent(script: Script) -> None:
    await three_frames(script)
    await script.socket.wait_closed()


async def sequence_gap(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME, 480, sequence=4)


async def time_gap(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME, 480, pts=1441)


async def half_a_sample(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME[:-1], 479)


async def an_unknown_index(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME, 480, index=7)


async def a_later_version(script: Script) -> None:
    await three_frames(script)
    await script.socket.send(HEADER.pack(2, 0, 0, 3, 1440) + FRAME)


async def a_short_frame(script: Script) -> None:
    await three_frames(script)
    await script.socket.send(b"\x01\x00")


async def a_sentinel_with_a_payload(script: Script) -> None:
    await three_frames(script)
    await script.socket.send(HEADER.pack(1, EOS, 0, 3, 1440) + FRAME)


async def a_sentinel_beyond_what_came(script: Script) -> None:
    await three_frames(script)
    await script.sentinel(length=1441)


async def a_sentinel_that_cuts_a_packet_off(script: Script) -> None:
    await three_frames(script)
    await script.sentinel(length=960)


async def another_checksum(script: Script) -> None:
    name = await three_frames(script)
    await script.sentinel()
    await script.done(name, crc32=script.crc32 ^ 1)


async def another_length(script: Script) -> None:
    name = await three_frames(script)
    await script.sentinel()
    await script.done(name, samples=1439)


async def a_frame_after_the_sentinel(script: Script) -> None:
    await three_frames(script)
    await script.sentinel()
    await script.packet(FRAME, 480)


async def no_json(script: Script) -> None:
    await three_frames(script)
    await script.socket.send("{")


async def says_what_is_wrong(script: Script) -> None:
    name = await three_frames(script)
    message = "the model stopped"
    await script.say("error", code="engine_failure", message=message, utterance=name, retryable=True)
    await script.socket.close(1011)


async def refuses_the_session(script: Script) -> None:
    await script.hear("session.start")
    await script.say("error", code="overloaded", message="busy", utterance=None, retryable=True)
    await script.socket.close(1013)


async def leaves_before_it_is_ready(script: Script) -> None:
    await script.hear("session.start")


async def never_is_ready(script: Script) -> None:
    await script.socket.wait_closed()


@pytest.mark.parametrize(
    ("handler", "error", "message"),
    [
        (cut, "StreamTruncated", "close code 1006"),
        (closes_cleanly_without_a_sentinel, "StreamTruncated", "without a sentinel"),
        (done_without_a_sentinel, "StreamTruncated", "without a sentinel"),
        (falls_silent, "StreamTruncated", "nothing came for 0.3 s"),
        (sequence_gap, "ProtocolViolation", "sequence number 4, expected 3"),
        (time_gap, "ProtocolViolation", "begins at 1441, expected 1440"),
        (half_a_sample, "ProtocolViolation", "not whole samples"),
        (an_unknown_index, "ProtocolViolation", "index 7"),
        (a_later_version, "ProtocolViolation", "version 2"),
        (a_short_frame, "ProtocolViolation", "shorter than its header"),
        (a_sentinel_with_a_payload, "ProtocolViolation", "payload"),
        (a_sentinel_beyond_what_came, "ProtocolViolation", "says 1441 samples"),
        (a_sentinel_that_cuts_a_packet_off, "ProtocolViolation", "says 960 samples"),
        (another_checksum, "ProtocolViolation", "crc32"),
        (another_length, "ProtocolViolation", "says samples 1439"),
        (a_frame_after_the_sentinel, "ProtocolViolation", "follows the sentinel"),
        (no_json, "ProtocolViolation", "no JSON"),
        (says_what_is_wrong, "ServerError", "engine_failure: the model stopped"),
        (refuses_the_session, "ServerError", "overloaded: busy"),
        (leaves_before_it_is_ready, "ConnectFailed", "the server left"),
        (never_is_ready, "ConnectFailed", "no session.ready within 0.3 s"),
    ],
)
async def test_what_breaks_the_protocol_is_found(
    page: Page, handler: Callable[[Script], Awaitable[None]], error: str, message: str
) -> None:
    told = await speak(page, handler, timeout_ms=300)
    assert told.get("error") == error, told
    assert message in told["message"]
    assert told["retryable"] == (error != "ProtocolViolation")


async def test_nobody_there_is_a_failed_connection(page: Page) -> None:
    told = await page.js(SPEAK % ("ws://127.0.0.1:9/v1/stream", 2000, ["Hello."]))
    assert told["error"] == "ConnectFailed"
    assert told["retryable"]


async def test_an_opus_packet_is_measured(page: Page) -> None:
    async def handler(script: Script) -> None:
        await script.ready({**PCM, "encoding": "opus", "pre_skip": 156})
        name = await script.begin()
        for payload in (b"\x48\x00", b"\x49\x00\x00", b"\x4b\x03\x00"):  # 20 ms once, twice, thrice
            await script.packet(payload, 480 * len(payload) - 480)
        await script.sentinel(length=script.pts - 156)
        await script.done(name, samples=script.pts - 156)
        await script.hear("close")

    told = await speak(page, handler)
    assert [samples for _, _, samples in told["packets"]] == [480, 960, 1440]
