"""Many sessions whose clients and engine misbehave at random: nothing leaks, every contract is kept."""

import asyncio
import gc
import random
import weakref
from typing import Any

import pytest

from engine.errors import GenerationFailed, InvalidTokens
from engine.fake import FakeEngine, FakeSpeech, FakeTiming, Fault
from realtime.driver import SessionDriver
from realtime.limits import Limits, Tuning
from realtime.protocols.native import NativeAdapter
from realtime.registry import SessionHub
from tests.support.channels import MemoryChannel
from tests.support.observer import RecordingObserver
from tests.support.wire_contract import check_wire

SESSIONS = 300
TEXTS = ("Hello there. ", "It is 7:", "30 now. ", "One two three four. ", "😀 ", "wor", "d", ", and so on; ")


class Client:
    """Sends random messages, then leaves in one of several ways."""

    def __init__(self, channel: MemoryChannel, dice: random.Random) -> None:
        self.channel, self.dice = channel, dice

    async def run(self) -> None:
        dice = self.dice
        await self.channel.say({"type": "session.start", "format": {"encoding": "pcm_s16le"}, "words": True})
        for _ in range(dice.randint(1, 12)):
            await self.channel.say(self.message())
            for _ in range(dice.choice((0, 0, 1, 5, 40))):
                await asyncio.sleep(0)
        await self.leave(dice.choice(("close", "close", "vanish", "wrong", "deaf")))

    def message(self) -> dict[str, Any]:
        dice = self.dice
        name = dice.choice(({}, {}, {"utterance": f"n{dice.randint(0, 3)}"}))
        kind = dice.choice(("text", "text", "text", "end", "flush", "cancel", "keepalive"))
        if kind == "text":
            return {"type": "text", "text": dice.choice(TEXTS), **name}
        if kind == "keepalive":
            return {"type": "keepalive"}
        if kind == "cancel":
            return {"type": "cancel", **dice.choice(({}, {"played_ms": dice.randint(0, 900)}))}
        return {"type": kind, **name}

    async def leave(self, how: str) -> None:
        if how == "deaf":
            self.channel.reading.clear()
            await self.channel.say({"type": "text", "text": "word " * 20}, {"type": "close"})
            await asyncio.sleep(0.02)
            await self.channel.vanish()
        elif how == "vanish":
            await self.channel.vanish()
        else:
            await self.channel.say({"type": "close"} if how == "close" else {"type": "nonsense"})


def trouble(dice: random.Random) -> Fault:
    if dice.random() < 0.7:
        return Fault()
    error = dice.choice((GenerationFailed("broke"), InvalidTokens(7)))
    return Fault(after_frames=dice.randint(0, 40), error=error)


@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_leaks(seed: int) -> None:
    dice = random.Random(seed)
    engine = FakeEngine(
        speech=FakeSpeech(frames_per_word=4), timing=FakeTiming(frame_s=0.0002), max_streams=SESSIONS
    )
    engine.next_faults.extend(trouble(dice) for _ in range(20 * SESSIONS))
    await engine.start()
    observer = RecordingObserver()
    limits = Limits(sessions=SESSIONS, send_buffer_ms=1500)
    tuning = Tuning(lead_ms=60_000, close_s=0.2)
    hub = SessionHub(engine, limits=limits, tuning=tuning, observer=observer)
    before = asyncio.all_tasks()
    channels = [MemoryChannel() for _ in range(SESSIONS)]
    drivers: list[weakref.ref[SessionDriver]] = []

    async def session(channel: MemoryChannel) -> None:
        client = asyncio.create_task(Client(channel, random.Random(dice.random())).run())
        driver = SessionDriver(hub, channel, NativeAdapter(limits.message_bytes))
        drivers.append(weakref.ref(driver))
        await driver.run()
        await client

    async with asyncio.timeout(50):
        await asyncio.gather(*(session(channel) for channel in channels))
    assert asyncio.all_tasks() == before
    assert not hub.live
    assert not engine.live
    assert sorted(observer.opened) == sorted(observer.closed)
    outcomes = {report.outcome for report in observer.reports}
    assert outcomes == {"complete", "empty", "cancelled", "failed", "lost"}
    for channel in channels:
        utterances = check_wire(channel.sent)
        if channel.closed is not None:
            assert all(utterance.terminal for utterance in utterances.values())
    hub.close()
    gc.collect()
    assert not [left for driver in drivers if (left := driver()) is not None], "what is over is forgotten"
