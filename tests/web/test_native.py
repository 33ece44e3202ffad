"""The Python client against the whole server, over real sockets."""

from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from engine.errors import GenerationFailed
from engine.fake import SAMPLE_RATE, FakeEngine, Fault, tone_hz
from realtime.client import Cancelled, ServerError, connect
from tests.support.running import Running, running

pytestmark = pytest.mark.asyncio(loop_scope="module")

FORMATS = [
    {"encoding": "opus"},
    {"encoding": "opus", "sample_rate": 48000, "frame_ms": 60},
    {"encoding": "opus", "sample_rate": 8000, "frame_ms": 2.5},
    {"encoding": "pcm_s16le"},
    {"encoding": "pcm_f32le", "sample_rate": 44100},
    {"encoding": "mulaw"},
    {"encoding": "alaw"},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Running]:
    async with running(FakeEngine()) as server:
        yield server


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: "-".join(str(value) for value in form.values()))
async def test_an_utterance_is_exact_in_every_format(server: Running, form: dict[str, object]) -> None:
    async with connect(server.ws_url, format=form) as session:
        utterance = session.utterance()
        for piece in ("Your ta", "ble for four is", " booked."):
            await utterance.send(piece)
        await utterance.end()
        pcm = await utterance.read()
        done = utterance.done
    assert done is not None
    assert done.reason == "complete"
    assert len(pcm) == done.samples * session.pcm_rate // session.format.sample_rate
    assert len(pcm) / session.pcm_rate == pytest.approx(done.audio_ms / 1000, abs=0.001)
    assert np.abs(pcm).max() > 0.2
    assert done.ttfp_parts is not None
    assert sum(done.ttfp_parts.values()) == pytest.approx(done.ttfp_ms, abs=0.02)


async def test_the_words_are_those_that_were_sent(server: Running) -> None:
    async with connect(server.ws_url, voice="bob", words=True, format="pcm_f32le") as session:
        utterance = session.utterance()
        await utterance.send("Hello there, friend.")
        await utterance.end()
        pcm = await utterance.read()
    assert [word.text.strip(".,") for word in utterance.words] == ["Hello", "there", "friend"]
    word = utterance.words[1]
    heard = pcm[int(word.start_ms * SAMPLE_RATE / 1000) : int(word.end_ms * SAMPLE_RATE / 1000)]
    spectrum = np.abs(np.fft.rfft(heard))
    assert spectrum.argmax() * SAMPLE_RATE / len(heard) == pytest.approx(tone_hz("there,", "bob"), abs=10)


async def test_several_utterances_in_a_session(server: Running) -> None:
    async with connect(server.ws_url) as session:
        first, second = session.utterance(), session.utterance("mine")
        for utterance in (first, second):
            await utterance.send("Hello there.")
            await utterance.end()
        lengths = [len(await utterance.read()) for utterance in (first, second)]
    assert lengths[0] == lengths[1] > 0
    assert second.done is not None
    assert second.done.utterance == "mine"


async def test_an_empty_utterance_ends_cleanly(server: Running) -> None:
    async with connect(server.ws_url) as session:
        utterance = session.utterance()
        await utterance.send("...")
        await utterance.end()
        assert len(await utterance.read()) == 0
        assert utterance.done is not None
        assert utterance.done.reason == "empty"


async def test_barge_in_tells_what_was_heard(server: Running) -> None:
    text = "One two three four five six seven eight nine ten."
    async with connect(server.ws_url, format="pcm_s16le") as session:
        utterance = session.utterance()
        await utterance.send(text)
        await utterance.end()
        async for _ in utterance.packets():
            break
        outcome = await utterance.cancel(played_ms=450)
        assert isinstance(outcome, Cancelled)
        assert outcome.heard_text + outcome.unheard_text == text
        again = session.utterance()
        await again.send("Hello.")
        await again.end()
        assert len(await again.read()) > 0


async def test_a_fault_is_an_error_and_no_sentinel(server: Running) -> None:
    server.engine.next_faults.append(Fault(after_frames=10, error=GenerationFailed("it broke")))
    async with connect(server.ws_url) as session:
        utterance = session.utterance()
        await utterance.send("Hello there, my friend.")
        await utterance.end()
        with pytest.raises(ServerError, match="engine_failure") as caught:
            await utterance.read()
    assert caught.value.retryable
    assert utterance.done is None


async def test_an_unknown_voice_is_named(server: Running) -> None:
    with pytest.raises(ServerError, match=r"not_found.*ada, bob"):
        async with connect(server.ws_url, voice="eve"):
            pytest.fail("there is no session")
