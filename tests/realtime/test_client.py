import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from realtime.client import (
    Cancelled,
    ConnectFailed,
    ProtocolViolation,
    ServerError,
    StreamTruncated,
    connect,
)
from tests.support.scripted_server import Script, scripted_server

FRAME = np.arange(480, dtype="<i2").tobytes()


async def speak(handler: Callable[[Script], Awaitable[None]], text: str = "Hello.") -> np.ndarray:
    async with scripted_server(handler) as url, connect(url, timeout_s=2) as session:
        utterance = session.utterance()
        await utterance.send(text)
        await utterance.end()
        return await utterance.read()


async def three_frames(script: Script) -> str:
    await script.ready()
    name = await script.begin()
    for _ in range(3):
        await script.packet(FRAME, 480)
    return name


async def test_a_whole_utterance_is_exact() -> None:
    async def handler(script: Script) -> None:
        name = await three_frames(script)
        await script.sentinel()
        await script.done(name)
        await script.hear("close")

    pcm = await speak(handler)
    assert pcm.dtype == np.float32
    assert np.array_equal(pcm, np.tile(np.arange(480) / 32768, 3).astype(np.float32))


async def test_padding_after_the_announced_length_is_cut() -> None:
    async def handler(script: Script) -> None:
        name = await three_frames(script)
        await script.sentinel(length=1300)
        await script.done(name, samples=1300)
        await script.hear("close")

    assert len(await speak(handler)) == 1300


async def test_words_done_and_ttfp_are_kept() -> None:
    async def handler(script: Script) -> None:
        name = await three_frames(script)
        word = {"text": "Hello.", "start_ms": 0, "end_ms": 60, "char_start": 0, "char_end": 6}
        await script.say("words", utterance=name, words=[word])
        await script.say("warning", code="text_dropped", message="a control character")
        await script.sentinel()
        await script.done(
            name, ttfp_ms=12.5, usage={"prompt_tokens": 96, "cached_tokens": 96, "codec_tokens": 3}
        )
        await script.hear("close")

    async with scripted_server(handler) as url, connect(url, words=True, timeout_s=2) as session:
        utterance = session.utterance()
        await utterance.send("Hello.")
        await utterance.end()
        packets = [packet async for packet in utterance.packets()]
        assert [(p.sequence, p.pts, p.samples) for p in packets] == [
            (0, 0, 480),
            (1, 480, 480),
            (2, 960, 480),
        ]
        assert [word.text for word in utterance.words] == ["Hello."]
        assert utterance.done is not None
        assert utterance.done.usage.cached_tokens == 96
        assert utterance.ttfp_ms is not None
        assert [warning.code for warning in session.warnings] == ["text_dropped"]


async def test_an_empty_utterance_gives_no_samples() -> None:
    async def handler(script: Script) -> None:
        await script.ready()
        name = await script.begin()
        await script.sentinel()
        await script.done(name, reason="empty")
        await script.hear("close")

    assert len(await speak(handler, "...")) == 0


async def cut(script: Script) -> None:
    await three_frames(script)
    script.socket.transport.abort()


async def closes_cleanly_without_a_sentinel(script: Script) -> None:
    await three_frames(script)
    await script.socket.close(1000)


async def done_without_a_sentinel(script: Script) -> None:
    await script.done(await three_frames(script))


@pytest.mark.parametrize("handler", [cut, closes_cleanly_without_a_sentinel, done_without_a_sentinel])
async def test_a_stream_without_its_sentinel_is_truncated(
    handler: Callable[[Script], Awaitable[None]],
) -> None:
    with pytest.raises(StreamTruncated):
        await speak(handler)


async def test_a_silent_server_is_given_up() -> None:
    async def handler(script: Script) -> None:
        await three_frames(script)
        await script.socket.wait_closed()

    async with scripted_server(handler) as url, connect(url, timeout_s=0.05) as session:
        utterance = session.utterance()
        await utterance.send("Hello.")
        await utterance.end()
        with pytest.raises(StreamTruncated, match=r"nothing came for 0\.05 s"):
            await utterance.read()


async def sequence_gap(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME, 480, sequence=4)


async def time_gap(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME, 480, pts=1441)


async def wrong_crc(script: Script) -> None:
    name = await three_frames(script)
    await script.sentinel()
    await script.done(name, crc32=script.crc32 ^ 1)


async def wrong_length(script: Script) -> None:
    await three_frames(script)
    await script.sentinel(length=1441)


async def a_frame_is_missing_at_the_end(script: Script) -> None:
    await three_frames(script)
    await script.sentinel(length=480)


async def half_a_sample(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME[:-1], 480)


async def frame_after_the_sentinel(script: Script) -> None:
    await three_frames(script)
    await script.sentinel()
    await script.packet(FRAME, 480)


async def unknown_index(script: Script) -> None:
    await three_frames(script)
    await script.packet(FRAME, 480, index=7)


async def short_header(script: Script) -> None:
    await three_frames(script)
    await script.socket.send(b"\x01\x00")


async def wrong_version(script: Script) -> None:
    await three_frames(script)
    await script.socket.send(bytes([2]) + bytes(15))


async def not_json(script: Script) -> None:
    await three_frames(script)
    await script.socket.send("{")


async def missing_field(script: Script) -> None:
    name = await three_frames(script)
    await script.say("utterance.done", utterance=name)


@pytest.mark.parametrize(
    "handler",
    [
        sequence_gap,
        time_gap,
        wrong_crc,
        wrong_length,
        a_frame_is_missing_at_the_end,
        half_a_sample,
        frame_after_the_sentinel,
        unknown_index,
        short_header,
        wrong_version,
        not_json,
        missing_field,
    ],
)
async def test_a_broken_stream_is_a_violation(handler: Callable[[Script], Awaitable[None]]) -> None:
    with pytest.raises(ProtocolViolation):
        await speak(handler)


async def test_an_error_reaches_every_open_utterance() -> None:
    async def handler(script: Script) -> None:
        name = await three_frames(script)
        await script.say("error", code="engine_failure", message="it broke", utterance=name, retryable=True)
        await script.socket.close(1011)

    async with scripted_server(handler) as url, connect(url, timeout_s=2) as session:
        first, second = session.utterance(), session.utterance()
        await first.send("Hello.")
        for utterance in (first, second):
            with pytest.raises(ServerError) as caught:
                await utterance.read()
            assert (caught.value.code, caught.value.retryable) == ("engine_failure", True)
        with pytest.raises(ServerError):
            await second.send("more")


async def test_an_error_instead_of_ready() -> None:
    async def handler(script: Script) -> None:
        await script.hear("session.start")
        await script.say("error", code="not_found", message="unknown voice 'eve'", retryable=False)
        await script.socket.close(4404)

    async with scripted_server(handler) as url:
        with pytest.raises(ServerError, match="unknown voice"):
            async with connect(url, voice="eve"):
                pytest.fail("there is no session")


async def test_a_server_that_closes_before_ready() -> None:
    async def handler(script: Script) -> None:
        await script.socket.close(1013)

    async with scripted_server(handler) as url:
        with pytest.raises(ConnectFailed, match="1013"):
            async with connect(url):
                pytest.fail("there is no session")


async def test_no_server() -> None:
    with pytest.raises(ConnectFailed):
        async with connect("ws://127.0.0.1:9/v1/stream"):
            pytest.fail("there is no session")


async def test_only_what_was_set_is_sent() -> None:
    heard: list[dict[str, object]] = []

    async def handler(script: Script) -> None:
        await script.ready()
        heard.extend(script.heard)
        await script.hear("close")

    async with scripted_server(handler) as url, connect(url, voice="ada", format="opus"):
        pass
    assert heard == [{"type": "session.start", "voice": "ada", "format": {"encoding": "opus"}}]


async def test_cancel_drops_what_was_not_heard_and_the_session_goes_on() -> None:
    async def handler(script: Script) -> None:
        await script.ready()
        name = await script.begin()
        for _ in range(400):  # more than the client keeps for a caller that does not read
            await script.packet(FRAME, 480)
        message = await script.hear("cancel")
        assert message["played_ms"] == 120
        spans = {
            "sent_ms": 8000,
            "heard_ms": 120,
            "heard_text": "Hel",
            "unheard_text": "lo.",
            "clock": "client",
        }
        await script.say("utterance.cancelled", utterance=name, **spans)
        script.sequence = script.pts = script.crc32 = 0
        name = await script.begin(index=1)
        await script.packet(FRAME, 480, index=1)
        await script.sentinel(index=1)
        await script.done(name)
        await script.hear("close")

    async with scripted_server(handler) as url, connect(url, timeout_s=2) as session:
        first = session.utterance()
        await first.send("Hello.")
        await asyncio.sleep(0.02)
        outcome = await first.cancel(played_ms=120)
        assert isinstance(outcome, Cancelled)
        assert outcome.heard_text + outcome.unheard_text == "Hello."
        assert [pcm async for pcm in first] == []
        second = session.utterance()
        await second.send("Again.")
        await second.end()
        assert len(await second.read()) == 480


async def test_a_caller_that_does_not_read_holds_the_server_back() -> None:
    sent = 0

    async def handler(script: Script) -> None:
        nonlocal sent
        await script.ready()
        await script.begin()
        big = FRAME * 100
        for _ in range(2000):
            await script.packet(big, 48000)
            sent += 1

    async with scripted_server(handler) as url, connect(url, timeout_s=2) as session:
        utterance = session.utterance()
        await utterance.send("Hello.")
        before = -1
        while before != sent:
            before = sent
            await asyncio.sleep(0.1)
        assert sent < 1000
