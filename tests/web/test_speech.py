import asyncio
import base64
import io
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import av
import httpx
import numpy as np
import pytest
import pytest_asyncio

from engine.errors import EngineDead, EngineError, GenerationFailed, Overloaded
from engine.fake import SAMPLE_RATE, FakeEngine, FakeTiming, Fault
from realtime.audio.container import Container
from tests.support.running import Running, running, until

FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
TEXT = "Your table for four is booked."
SPEECH = "/v1/audio/speech"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared() -> AsyncIterator[Running]:
    async with running(FakeEngine()) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def server(shared: Running) -> AsyncIterator[Running]:
    """One server for all tests; each begins with, and must leave, an engine that has nothing to do."""
    shared.engine.requests.clear()
    yield shared
    await until(lambda: not (shared.engine.live or shared.runtime.hub.live))
    assert not shared.engine.next_faults


def decode(name: str, data: bytes) -> np.ndarray:
    """Samples of a whole body at the model's rate, as a player decodes it."""
    if name == "pcm":
        return np.frombuffer(data, "<i2") / 32768
    with av.open(io.BytesIO(data)) as container:
        resampler = av.AudioResampler("flt", "mono", SAMPLE_RATE)
        frames = [out for frame in container.decode(audio=0) for out in resampler.resample(frame)]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames])


async def post(server: Running, **body: Any) -> httpx.Response:
    async with server.client() as client:
        return await client.post(SPEECH, json={"input": TEXT, **body})


async def read_into(got: list[bytes], response: httpx.Response) -> None:
    async for piece in response.aiter_raw():
        got += [piece]


def error_of(response: httpx.Response) -> dict[str, Any]:
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code", "retryable"}
    return dict(error)


async def spoken_samples(server: Running) -> int:
    return len((await post(server, response_format="pcm")).content) // 2


@pytest.mark.parametrize("name", FORMATS)
async def test_every_format_decodes_to_the_whole_utterance(server: Running, name: str) -> None:
    expected = await spoken_samples(server)
    assert expected > SAMPLE_RATE
    response = await post(server, response_format=name)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("audio/")
    assert "content-length" not in response.headers
    pcm = decode(name, response.content)
    if name in ("mp3", "aac"):  # whole codec frames, and a delay that the stream cannot tell
        assert expected <= len(pcm) <= expected + 3 * 1152
    elif name == "opus":  # the resampler from 48 kHz may keep a few
        assert abs(len(pcm) - expected) <= 32
    else:
        assert len(pcm) == expected
    assert np.abs(pcm).max() > 0.1


async def test_mp3_is_the_default(server: Running) -> None:
    assert (await post(server)).headers["content-type"] == "audio/mpeg"


@pytest.mark.parametrize("name", FORMATS)
async def test_audio_comes_before_the_speech_is_made(server: Running, name: str) -> None:
    server.engine.next_faults.append(Fault(after_frames=30, stall=True))
    async with server.client() as client:
        request = client.build_request("POST", SPEECH, json={"input": TEXT, "response_format": name})
        response = await client.send(request, stream=True)
        got = b""
        async for piece in response.aiter_raw():
            got += piece
            if len(got) > 200:
                break
        assert server.engine.live
        await response.aclose()


@pytest.mark.parametrize(
    "error", [GenerationFailed("it broke"), EngineDead("gone"), MemoryError("no memory")]
)
@pytest.mark.parametrize("name", FORMATS)
async def test_a_fault_in_the_middle_cuts_the_body(server: Running, name: str, error: Exception) -> None:
    server.engine.next_faults.append(Fault(after_frames=30, error=cast(EngineError, error)))
    async with server.client() as client:
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            await client.post(SPEECH, json={"input": TEXT, "response_format": name})
        assert not server.engine.live
        assert (await client.post(SPEECH, json={"input": TEXT})).status_code == 200


@pytest.mark.parametrize("name", FORMATS)
async def test_an_encoder_that_breaks_cuts_the_body(
    server: Running, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Container.write
    written = 0

    def breaks(self: Container, pcm: np.ndarray) -> bytes:
        nonlocal written
        written += len(pcm)
        return whole(self, pcm if written < SAMPLE_RATE else pcm * np.nan)

    monkeypatch.setattr(Container, "write", breaks)
    async with server.client() as client:
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            await client.post(SPEECH, json={"input": TEXT, "response_format": name})


@pytest.mark.parametrize("error", [GenerationFailed("it broke"), MemoryError("no memory")])
async def test_a_fault_in_the_middle_of_events_is_told_and_cut(server: Running, error: Exception) -> None:
    server.engine.next_faults.append(Fault(after_frames=30, error=cast(EngineError, error)))
    async with server.client() as client:
        request = client.build_request("POST", SPEECH, json={"input": TEXT, "stream_format": "sse"})
        response = await client.send(request, stream=True)
        got: list[bytes] = []
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete chunked read"):
            await read_into(got, response)
        await response.aclose()
    last = json.loads(b"".join(got).decode().strip().rpartition("data: ")[2])
    assert last["type"] == "error"
    assert last["error"]["code"] == "engine_failure"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("error", [GenerationFailed("it broke"), MemoryError("secret detail")])
async def test_a_fault_before_the_first_audio_is_an_http_error(
    server: Running, name: str, error: Exception
) -> None:
    server.engine.next_faults.append(Fault(error=cast(EngineError, error)))
    response = await post(server, response_format=name)
    assert response.status_code == 500
    assert error_of(response)["code"] == "engine_failure"
    assert "secret" not in response.text


@pytest.mark.parametrize("name", ["mp3", "wav"])
async def test_events_carry_the_same_bytes(server: Running, name: str) -> None:
    plain = await post(server, response_format=name)
    response = await post(server, response_format=name, stream_format="sse")
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(event["audio"]) for event in events[:-1]) == plain.content
    usage = events[-1]["usage"]
    assert events[-1]["type"] == "speech.audio.done"
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


async def test_no_room_is_503_with_retry_after(server: Running) -> None:
    server.engine.open_errors.append(Overloaded("full", 2.4))
    response = await post(server)
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert error_of(response)["code"] == "overloaded"
    assert error_of(response)["retryable"] is True


async def test_the_session_limit_counts_http_too() -> None:
    engine = FakeEngine()
    engine.next_faults.append(Fault(after_frames=30, stall=True))
    async with running(engine, {"limits.sessions": 1}) as server, server.client() as client:
        held = await client.send(client.build_request("POST", SPEECH, json={"input": TEXT}), stream=True)
        refused = await post(server)
        assert (refused.status_code, error_of(refused)["code"]) == (503, "overloaded")
        await held.aclose()
        await until(lambda: not (engine.live or server.runtime.hub.live))
        assert (await post(server)).status_code == 200


async def test_a_client_that_leaves_before_audio_frees_everything() -> None:
    engine = FakeEngine(timing=FakeTiming(first_frame_s=5))
    async with running(engine) as server:
        asking = asyncio.create_task(post(server))
        await until(lambda: engine.live)
        asking.cancel()
        await asyncio.wait([asking])
        await until(lambda: not (engine.live or server.runtime.hub.live))


async def test_http_1_0_has_no_chunks_and_gets_a_length(server: Running) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port)
    body = json.dumps({"input": TEXT, "response_format": "pcm"}).encode()
    head = f"POST {SPEECH} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.read()
    writer.close()
    header, _, audio = answer.partition(b"\r\n\r\n")
    assert f"content-length: {len(audio)}".encode() in header.lower()
    assert len(audio) == 2 * await spoken_samples(server)


async def test_voice_seed_and_speed_reach_the_engine(server: Running) -> None:
    assert (await post(server, voice="bob", seed=7, speed=2.0, model="fake")).status_code == 200
    assert (await post(server, voice={"id": "bob"})).status_code == 200
    first, second = server.engine.requests
    assert (first.voice, first.sampling.seed, first.speed) == ("bob", 7, 2.0)
    assert (second.voice, second.sampling.seed, second.speed) == ("bob", None, 1.0)


@pytest.mark.parametrize(
    ("body", "status", "code", "param", "says"),
    [
        ({}, 422, "invalid_request", "input", "Field required"),
        ({"input": ""}, 422, "invalid_request", "input", "at least 1 character"),
        ({"input": " \n\t"}, 422, "invalid_request", "input", "blank"),
        ({"input": "\N{PARTY POPPER}"}, 422, "invalid_request", "input", "nothing in it can be spoken"),
        ({"input": "... !?"}, 422, "invalid_request", "input", "nothing in it can be spoken"),
        ({"input": 5}, 422, "invalid_request", "input", "valid string"),
        ({"input": "a" * 20_001}, 413, "too_large", "input", "20000"),
        ({"input": "a " * 3_000}, 422, "invalid_request", "input", "at most 2000"),
        ({"input": "\ud800"}, 422, "invalid_request", "input", ""),
        ({"input": "a", "voice": "eve"}, 404, "not_found", "voice", "ada, bob"),
        ({"input": "a", "model": "tts-9"}, 404, "not_found", "model", "'fake'"),
        (
            {"input": "a", "response_format": "ogg"},
            422,
            "invalid_request",
            "response_format",
            "'mp3', 'opus'",
        ),
        ({"input": "a", "speed": 9}, 422, "invalid_request", "speed", "less than or equal to 4"),
        ({"input": "a", "speed": 3}, 422, "invalid_request", "speed", "0.5 to 2"),
        ({"input": "a", "speed": -1}, 422, "invalid_request", "speed", "greater than"),
        ({"input": "a", "stream_format": "x"}, 422, "invalid_request", "stream_format", "'audio' or 'sse'"),
        ({"input": "a", "instructions": "whisper"}, 422, "invalid_request", "instructions", "leave it out"),
        ({"input": "a", "language": "xx"}, 422, "invalid_request", "language", "en"),
        ({"input": "a", "seed": -1}, 422, "invalid_request", "seed", "greater than"),
        ({"input": "a", "pitch": 1}, 422, "invalid_request", "pitch", "no such field"),
        ([], 400, "invalid_request", None, "JSON object"),
    ],
)
async def test_a_wrong_request_says_what_and_costs_nothing(
    server: Running, body: Any, status: int, code: str, param: str | None, says: str
) -> None:
    async with server.client() as client:
        kind = {"content-type": "application/json"}
        response = await client.post(SPEECH, content=json.dumps(body), headers=kind)
    error = error_of(response)
    assert (response.status_code, error["code"], error["param"]) == (status, code, param), error
    assert says in error["message"]
    assert error["type"] == "invalid_request_error"
    assert not server.engine.requests


@pytest.mark.parametrize(
    ("content", "kind"),
    [("{", "application/json"), ('{"input": "a"}', "text/plain"), ("", "application/json")],
)
async def test_an_unreadable_body_is_refused(server: Running, content: str, kind: str) -> None:
    async with server.client() as client:
        response = await client.post(SPEECH, content=content, headers={"content-type": kind})
    assert response.status_code == 400
    assert error_of(response)["code"] == "invalid_request"


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_over_the_limit_is_413(server: Running, announced: bool) -> None:
    huge = json.dumps({"input": "a" * 10_000_000}).encode()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(huge), 65536):
            yield huge[start : start + 65536]

    async with server.client() as client:
        content = huge if announced else pieces()
        response = await client.post(SPEECH, content=content, headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert error_of(response)["code"] == "too_large"


async def test_a_client_that_does_not_read_is_dropped() -> None:
    engine = FakeEngine()
    text = "a sentence of several words that is said again and again. " * 150
    async with running(engine, {"limits.send_timeout_s": 0.2}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, limit=1024)
        body = json.dumps({"input": text, "response_format": "pcm"}).encode()
        fields = f"host: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        head = f"POST {SPEECH} HTTP/1.1\r\n{fields}\r\n\r\n"
        writer.write(head.encode() + body)
        await reader.read(100)
        await until(lambda: engine.live)
        await until(lambda: not (engine.live or server.runtime.hub.live), 10)
        await until(lambda: not server.server.server_state.connections)
        writer.close()
