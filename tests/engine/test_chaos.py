"""Streams that are closed, cancelled, starved and broken at random points leave nothing behind."""

import asyncio
import random

import pytest

from engine.contract import SpeechDone, SpeechRequest
from engine.errors import EngineError, GenerationFailed, Overloaded
from engine.generation import GenerationPolicy
from engine.models.ember import layout
from engine.speech import CodecLmEngine, EngineSettings
from engine.stream import StreamPolicy
from tests.engine.test_speech import words
from tests.support.scripted_lm import LmFault, ScriptedLM, reader
from tests.support.tiny_model import TinyModel

TEXTS = ("yes.", "one two three four five six.", "a sentence with quite a number of words that go on and on.")
FAULTS = (
    LmFault(5, error=GenerationFailed("scripted")),
    LmFault(20, token=layout.BOS),
    LmFault(3, stall=True),
)


async def one(engine: CodecLmEngine, lm: ScriptedLM, name: str, rng: random.Random) -> str:
    """One stream with a random life; says how it ended."""
    if rng.random() < 0.2:
        lm.faults[name] = rng.choice(FAULTS)
    try:
        stream = engine.open(SpeechRequest(name, rng.choice(("ada", "bob"))))
    except Overloaded:
        return "refused"

    async def feed() -> None:
        for _ in range(rng.randint(0, 3)):
            for word in words(rng.choice(TEXTS)):
                stream.push([word])
                if rng.random() < 0.3:
                    await asyncio.sleep(rng.random() * 0.004)
            stream.push([], end_segment=True)
        stream.finish()

    async def listen() -> str:
        async for event in stream:
            if isinstance(event, SpeechDone):
                return "done"
        return "closed"

    feeder, listener = asyncio.create_task(feed()), asyncio.create_task(listen())
    try:
        if rng.random() < 0.5:
            await asyncio.sleep(rng.random() * 0.05)
            if rng.random() < 0.5:
                listener.cancel()
            await stream.aclose()
        return await asyncio.wait_for(listener, 5)
    except EngineError as error:
        return type(error).__name__
    except asyncio.CancelledError:
        return "cancelled"
    finally:
        feeder.cancel()
        await asyncio.wait({feeder})
        await stream.aclose()


@pytest.mark.parametrize("seed", range(3))
async def test_random_lives_leave_nothing_behind(seed):
    rng = random.Random(seed)
    lm = ScriptedLM(reader(), step_s=0.0002, chunk=4)
    generation = GenerationPolicy(lead_samples=10**9, token_timeout_s=0.1)
    engine = CodecLmEngine(TinyModel(), lm, EngineSettings(max_streams=12, policy=StreamPolicy(generation)))
    await engine.start()
    before = asyncio.all_tasks()
    ends: list[str] = []

    async def worker(at: int) -> None:
        for turn in range(12):
            ends.append(await one(engine, lm, f"{at}.{turn}", random.Random(rng.random())))  # noqa: PERF401

    await asyncio.gather(*(worker(at) for at in range(14)))
    await asyncio.sleep(0.02)
    assert engine.live == 0
    assert engine.health().running == 0
    assert engine._vocoder.open_streams == 0
    assert not lm.live
    assert asyncio.all_tasks() == before
    assert {"done", "closed"} <= set(ends)
    await engine.stop()
