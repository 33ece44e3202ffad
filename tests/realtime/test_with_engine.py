"""The session on the real engine, with a scripted LM and a linear codec: every sample is accounted for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import numpy as np
import pytest

from engine.models.ember import layout
from engine.speech import CodecLmEngine, EngineSettings
from realtime.driver import SessionDriver
from realtime.limits import Limits, Tuning
from realtime.protocols.frames import Flags
from realtime.protocols.native import NativeAdapter
from realtime.registry import SessionHub
from tests.support.channels import MemoryChannel
from tests.support.scripted_lm import LmFault, ScriptedLM, reader, word_codes
from tests.support.tiny_model import TinyModel, offline

FLOATS = {"encoding": "pcm_f32le", "sample_rate": 24000}


@asynccontextmanager
async def speaking(lm: ScriptedLM) -> AsyncIterator[MemoryChannel]:
    """One session; the engine must be empty at its end."""
    engine = CodecLmEngine(TinyModel(), lm, EngineSettings(max_streams=4))
    await engine.start()
    hub = SessionHub(engine, limits=Limits(send_buffer_ms=600_000), tuning=Tuning(lead_ms=600_000))
    channel = MemoryChannel()
    session = asyncio.create_task(SessionDriver(hub, channel, NativeAdapter(65_536), "s").run())
    try:
        yield channel
    finally:
        await channel.vanish()
        await session
        await asyncio.sleep(0.01)
        left = engine.live, set(lm.live)
        hub.close()
        await engine.stop()
        assert left == (0, set())


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_every_sample_however_the_text_is_cut(size: int) -> None:
    text = "this is a sentence with a handful of words in it."
    async with speaking(ScriptedLM(reader())) as client:
        await client.say({"type": "session.start", "format": FLOATS, "words": True})
        for at in range(0, len(text), size):
            await client.say({"type": "text", "text": text[at : at + size]})
        await client.say({"type": "end"})
        done = await client.until("utterance.done")
        *audio, sentinel = client.audio()
    samples = np.frombuffer(b"".join(frame.payload for frame in audio), "<f4")
    codes = [code for index, word in enumerate(text.split()) for code in word_codes(index, word)]
    expected = offline(codes, 0.0)
    assert len(samples) == len(expected) == sentinel.pts == done["samples"]
    assert np.ptp(samples - expected) < 1e-5, "the same but for the voice's level"
    words = [word for body in client.messages("words") for word in body["words"]]
    assert [word["text"] for word in words] == text.rstrip(".").split()
    assert words[-1]["end_ms"] == done["audio_ms"]
    assert all(one["end_ms"] == two["start_ms"] for one, two in pairwise(words))
    assert done["usage"]["codec_tokens"] == len(codes)
    assert done["usage"]["prompt_tokens"] > 0


async def test_first_audio_leaves_while_the_text_is_still_being_written() -> None:
    async with speaking(ScriptedLM(reader())) as client:
        await client.say({"type": "session.start", "format": FLOATS})
        await client.say({"type": "text", "text": "these are the first few words of an utterance "})
        await client.until_audio(1)
        assert not client.messages("utterance.done")
        await client.say({"type": "text", "text": "that goes on."}, {"type": "end"})
        done = await client.until("utterance.done")
    assert done["ttfp_parts"]["decode"] >= 0
    assert done["reason"] == "complete"


async def test_an_engine_fault_in_the_middle() -> None:
    lm = ScriptedLM(reader())
    lm.faults["s/0"] = LmFault(at=2, token=layout.BYTE_BASE)
    async with speaking(lm) as client:
        await client.say({"type": "session.start", "format": FLOATS})
        await client.say(
            {"type": "text", "text": "this is a sentence with a handful of words."}, {"type": "end"}
        )
        assert await client.until_closed() == (1011, "engine_failure")
    assert not any(frame.flags & Flags.EOS for frame in client.audio())


async def test_cancel_and_go_on() -> None:
    async with speaking(ScriptedLM(reader())) as client:
        await client.say({"type": "session.start", "format": FLOATS})
        await client.say({"type": "text", "text": "these are the first few words of an utterance "})
        await client.until_audio(30)
        await client.say({"type": "cancel", "played_ms": 400})
        cancelled = await client.until("utterance.cancelled")
        await client.say({"type": "text", "text": "then something else."}, {"type": "close"})
        assert (await client.until_closed())[0] == 1000
    assert cancelled["heard_text"] == "these"
    assert (
        cancelled["heard_text"] + cancelled["unheard_text"]
        == "these are the first few words of an utterance "
    )
