import asyncio

import numpy as np
import pytest

from engine.contract import (
    PcmChunk,
    Sampling,
    SegmentDone,
    SpeechBegun,
    SpeechDone,
    SpeechRequest,
    SpokenWord,
    WordStarted,
)
from engine.errors import EngineDead, Overloaded, RequestRejected, VocoderFailed, VoiceNotFound
from engine.fake import FRAME_SAMPLES, FakeEngine, FakeSpeech, FakeTiming, Fault, tone_hz


def words(text: str) -> list[SpokenWord]:
    out, at = [], 0
    for item in text.split(" "):
        out.append(SpokenWord(item, at, at + len(item)))
        at += len(item) + 1
    return out


@pytest.fixture
async def engine():
    engine = FakeEngine()
    await engine.start()
    return engine


async def collect(stream):
    return [event async for event in stream]


async def drain(stream, into):
    async for event in stream:
        into.append(event)


async def test_words_come_before_their_audio_and_chunks_have_no_gaps(engine):
    stream = engine.open(SpeechRequest("r", "ada"))
    stream.push(words("one two three"), end_segment=True)
    stream.push(words("four five"))
    stream.finish()
    events = await collect(stream)
    at = 0
    for event in events:
        if isinstance(event, WordStarted):
            assert event.start == at
        elif isinstance(event, PcmChunk):
            assert event.start == at
            at += len(event.samples)
    assert [e.index for e in events if isinstance(e, WordStarted)] == [0, 1, 2, 3, 4]
    assert [(e.expected, e.spoken) for e in events if isinstance(e, SegmentDone)] == [(3, 3), (2, 2)]
    assert isinstance(events[-1], SpeechDone)
    assert events[-1].samples == at
    assert not engine.live


async def test_first_chunk_is_one_frame_and_tone_tells_word(engine):
    stream = engine.open(SpeechRequest("r", "bob"))
    stream.push(words("hello"), end_segment=True)
    stream.finish()
    chunks = [e.samples for e in await collect(stream) if isinstance(e, PcmChunk)]
    assert len(chunks[0]) == FRAME_SAMPLES
    tone = np.concatenate(chunks)[: 10 * FRAME_SAMPLES]
    assert abs(np.abs(np.fft.rfft(tone)).argmax() * 24_000 / len(tone) - tone_hz("hello", "bob")) <= 5


async def test_waits_for_look_ahead_text(engine):
    stream = engine.open(SpeechRequest("r", "ada"))
    stream.push(words("one"))
    pull = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.01)
    assert not pull.done()
    stream.push(words("two"))
    assert await pull == SpeechBegun(calls=2)
    assert await anext(stream) == WordStarted(0, 0)
    await stream.aclose()


async def test_grant_bounds_the_lead():
    engine = FakeEngine(speech=FakeSpeech(lead_samples=0))
    await engine.start()
    stream = engine.open(SpeechRequest("r", "ada"))
    stream.push(words("a b c d e f g h"), end_segment=True)
    events: list[object] = []

    task = asyncio.create_task(drain(stream, events))
    await asyncio.sleep(0.02)
    made = sum(len(e.samples) for e in events if isinstance(e, PcmChunk))
    assert made == 10 * FRAME_SAMPLES
    stream.grant(made)
    await asyncio.sleep(0.02)
    assert sum(isinstance(e, WordStarted) for e in events) == 2
    stream.grant(10**9)
    stream.finish()
    await task
    assert isinstance(events[-1], SpeechDone)


async def test_close_is_idempotent_and_ends_a_waiting_consumer(engine):
    stream = engine.open(SpeechRequest("r", "ada"))
    task = asyncio.create_task(collect(stream))
    await asyncio.sleep(0)
    await stream.aclose()
    await stream.aclose()
    assert await asyncio.wait_for(task, 1) == []
    assert not engine.live
    stream.push(words("late"))
    assert await collect(stream) == []


async def test_faults():
    engine = FakeEngine(faults={"bad": Fault(3, VocoderFailed("not finite")), "stuck": Fault(2, stall=True)})
    await engine.start()
    bad = engine.open(SpeechRequest("bad", "ada"))
    bad.push(words("one two"), end_segment=True)
    got: list[object] = []
    with pytest.raises(VocoderFailed):
        await drain(bad, got)
    assert sum(len(e.samples) for e in got if isinstance(e, PcmChunk)) == 3 * FRAME_SAMPLES
    assert "bad" not in engine.live
    stuck = engine.open(SpeechRequest("stuck", "ada"))
    stuck.push(words("one two"), end_segment=True)
    task = asyncio.create_task(collect(stuck))
    await asyncio.sleep(0.02)
    assert not task.done()
    await stuck.aclose()
    assert sum(len(e.samples) for e in await task if isinstance(e, PcmChunk)) == 2 * FRAME_SAMPLES


async def test_skipped_words_are_told(engine):
    engine.next_faults.append(Fault(skip_words=1))
    stream = engine.open(SpeechRequest("r", "ada"))
    stream.push(words("one two three"), end_segment=True)
    stream.finish()
    done = [e for e in await collect(stream) if isinstance(e, SegmentDone)]
    assert [(e.expected, e.spoken) for e in done] == [(3, 2)]


async def test_death_reaches_everybody_and_revive_opens_again():
    engine = FakeEngine(timing=FakeTiming(frame_s=0.01))
    await engine.start()
    streams = [engine.open(SpeechRequest(name, "ada")) for name in "ab"]
    for stream in streams:
        stream.push(words("one two three"), end_segment=True)
    tasks = [asyncio.create_task(collect(stream)) for stream in streams]
    await asyncio.sleep(0.03)
    engine.die()
    assert [type(r) for r in await asyncio.gather(*tasks, return_exceptions=True)] == [EngineDead] * 2
    with pytest.raises(EngineDead):
        engine.open(SpeechRequest("c", "ada"))
    assert engine.health().state == "restarting"
    engine.revive()
    await engine.open(SpeechRequest("c", "ada")).aclose()
    assert engine.health().restarts == 1
    assert not engine.live


async def test_requests_are_checked_before_anything_is_spent(engine):
    with pytest.raises(VoiceNotFound, match="ada, bob"):
        engine.open(SpeechRequest("r", "eve"))
    with pytest.raises(RequestRejected, match="speed"):
        engine.open(SpeechRequest("r", "ada", speed=9.0))
    with pytest.raises(RequestRejected, match="temperature"):
        engine.open(SpeechRequest("r", "ada", Sampling(temperature=float("nan"))))
    engine.max_streams = 0
    with pytest.raises(Overloaded):
        engine.open(SpeechRequest("r", "ada"))
    assert not engine.live
    assert not engine.requests


async def test_prewarm_reports_cached_prefix_per_salt(engine):
    assert (await engine.prewarm("ada")).cached == 0
    assert (await engine.prewarm("ada")).cached == 96
    assert (await engine.prewarm("ada", "tenant")).cached == 0


async def test_limits_and_malformed_words(engine):
    stream = engine.open(SpeechRequest("r", "ada"))
    for bad in (SpokenWord("", 0, 0), SpokenWord("a b", 0, 3), SpokenWord("...", 0, 3)):
        with pytest.raises(RequestRejected):
            stream.push([bad])
    with pytest.raises(RequestRejected, match="2000"):
        stream.push(words("x") * 2001)
    stream.finish()
    with pytest.raises(RequestRejected, match="finished"):
        stream.push(words("x"))
    done = await collect(stream)
    assert [type(e) for e in done] == [SpeechDone]
    assert done[0].samples == 0
