"""The driver with a fake engine and a channel in memory: tasks, threads, faults."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from engine.errors import EngineDead, GenerationFailed, Overloaded, VocoderFailed
from engine.fake import FakeEngine, FakeTiming, Fault
from realtime.clock import MonotonicClock
from realtime.driver import SessionDriver
from realtime.limits import Limits, Tuning
from realtime.protocols.frames import Flags
from realtime.protocols.native import NativeAdapter
from realtime.registry import SessionHub
from tests.support.channels import MemoryChannel
from tests.support.clocks import ManualClock, settle
from tests.support.observer import RecordingObserver

PCM = {"encoding": "pcm_s16le", "sample_rate": 24000}


@asynccontextmanager
async def running(
    engine: FakeEngine | None = None, limits: Limits | None = None, clock: ManualClock | None = None
) -> AsyncIterator[tuple[MemoryChannel, SessionHub]]:
    """One session being served; checks that it leaves nothing behind."""
    engine = engine or FakeEngine()
    await engine.start()
    # Generation ahead of the listener is not held back, unless a test brings the time to do so.
    tuning = Tuning() if clock else Tuning(lead_ms=600_000, close_s=0.2)
    limits = limits or Limits(send_buffer_ms=600_000)
    hub = SessionHub(
        engine, limits=limits, tuning=tuning, clock=clock or MonotonicClock(), observer=RecordingObserver()
    )
    channel = MemoryChannel()
    before = asyncio.all_tasks()
    session = asyncio.create_task(SessionDriver(hub, channel, NativeAdapter(limits.message_bytes)).run())
    try:
        yield channel, hub
    finally:
        await channel.vanish()
        async with asyncio.timeout(5):
            await session
        assert asyncio.all_tasks() == before
        assert not engine.live
        assert not hub.live
        hub.close()


class TestSpeaking:
    async def test_a_whole_utterance(self) -> None:
        async with running() as (client, _):
            await client.say(
                {"type": "session.start", "format": PCM, "words": True},
                {"type": "text", "text": "Hello there, wor"},
                {"type": "text", "text": "ld."},
                {"type": "end"},
            )
            done = await client.until("utterance.done")
        kinds = [body["type"] for body in client.messages()]
        assert kinds == ["session.ready", "utterance.start", "words", "words", "words", "utterance.done"]
        *audio, sentinel = client.audio()
        assert [frame.sequence for frame in client.audio()] == list(range(len(audio) + 1))
        assert audio[0].flags == Flags.FIRST
        assert sentinel.flags == Flags.EOS
        assert sentinel.pts == done["samples"] == sum(len(frame.payload) // 2 for frame in audio)
        assert done["crc32"] == zlib.crc32(b"".join(frame.payload for frame in audio))
        assert done["frames"] == len(audio)
        assert done["reason"] == "complete"
        assert done["text_chars"] == len("Hello there, world.")
        assert done["ttfp_ms"] == pytest.approx(sum(done["ttfp_parts"].values()), abs=0.1)
        words = [word for body in client.messages("words") for word in body["words"]]
        assert [word["text"].strip(",. ") for word in words] == ["Hello", "there", "world"]

    async def test_opus_is_the_default(self) -> None:
        async with running() as (client, _):
            await client.say({"type": "session.start"}, {"type": "text", "text": "Hi."}, {"type": "end"})
            done = await client.until("utterance.done")
            ready = client.messages("session.ready")[0]
        assert ready["format"]["encoding"] == "opus"
        assert ready["format"]["pre_skip"] > 0
        assert client.audio()[-1].pts == done["samples"]

    async def test_utterances_in_order(self) -> None:
        async with running() as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            for text in ("One.", "Two two.", "Three."):
                await client.say({"type": "text", "text": text}, {"type": "end"})
            await client.say({"type": "close"})
            assert await client.until_closed() == (1000, "closed")
        assert [body["utterance"] for body in client.messages("utterance.done")] == ["u1", "u2", "u3"]
        indices = [frame.index for frame in client.audio()]
        assert indices == sorted(indices)

    async def test_text_stall_is_no_end(self) -> None:
        clock = ManualClock()
        async with running(clock=clock) as (client, _):
            await client.say(
                {"type": "session.start", "format": PCM}, {"type": "text", "text": "One two three "}
            )
            await client.until("session.ready")
            await clock.advance(45.0, step_s=0.25)
            assert not client.messages("utterance.done")
            assert not client.messages("error")
            await client.say({"type": "text", "text": "four."}, {"type": "end"})
            assert (await client.until("utterance.done"))["reason"] == "complete"


class TestFaults:
    @pytest.mark.parametrize(
        "error", [GenerationFailed("it broke"), VocoderFailed("not finite"), EngineDead("gone")]
    )
    async def test_an_engine_error_ends_with_1011_and_no_sentinel(self, error: Exception) -> None:
        engine = FakeEngine()
        engine.next_faults.append(Fault(after_frames=7, error=error))  # type: ignore[arg-type]
        async with running(engine) as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            await client.say({"type": "text", "text": "One two three four "})
            await client.say({"type": "end"})
            assert await client.until_closed() == (1011, "engine_failure")
        assert client.messages()[-1]["type"] == "error"
        assert client.messages()[-1]["utterance"] == "u1"
        assert not any(frame.flags & Flags.EOS for frame in client.audio())
        assert isinstance(client.sent[-1], str)

    async def test_overloaded_engine(self) -> None:
        engine = FakeEngine()
        engine.open_errors.append(Overloaded("full", 3.0))
        async with running(engine) as (client, _):
            await client.say({"type": "session.start"}, {"type": "text", "text": "One."}, {"type": "end"})
            assert await client.until_closed() == (1013, "overloaded")
        assert client.messages("error")[0]["retry_after_s"] == 3.0

    async def test_engine_dies_under_it(self) -> None:
        engine = FakeEngine(timing=FakeTiming(frame_s=0.01))
        async with running(engine) as (client, _):
            await client.say(
                {"type": "session.start", "format": PCM}, {"type": "text", "text": "One two three."}
            )
            await client.until("utterance.start")
            engine.die()
            assert await client.until_closed() == (1011, "engine_failure")

    async def test_skipped_words_are_told(self) -> None:
        engine = FakeEngine()
        engine.next_faults.append(Fault(skip_words=1))
        async with running(engine) as (client, _):
            await client.say(
                {"type": "session.start", "format": PCM}, {"type": "text", "text": "One two three."}
            )
            await client.say({"type": "end"})
            await client.until("utterance.done")
        assert client.messages("warning")[0]["code"] == "words_missing"

    async def test_a_bug_is_an_engine_failure_without_details(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def broken(*_: object) -> None:
            raise MemoryError("secret internals")

        async with running() as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            await client.until("session.ready")
            monkeypatch.setattr("realtime.audio.encoder.FramingEncoder.encode", broken)
            await client.say({"type": "text", "text": "One two."}, {"type": "end"})
            assert await client.until_closed() == (1011, "engine_failure")
        assert "secret" not in client.messages("error")[0]["message"]
        assert "session broke" in caplog.messages

    async def test_a_stream_that_breaks_the_contract_and_then_says_nothing_is_closed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def gap(*_: object) -> None:
            raise GenerationFailed("a gap")

        monkeypatch.setattr("realtime.utterance.Utterance.pcm", gap)
        engine = FakeEngine()
        engine.next_faults.append(Fault(after_frames=1, stall=True))
        async with running(engine) as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            await client.say({"type": "text", "text": "One two three."}, {"type": "end"})
            assert await client.until_closed() == (1011, "engine_failure")
            await settle()
            assert not engine.live

    async def test_the_server_cancels_the_session(self) -> None:
        engine = FakeEngine(timing=FakeTiming(frame_s=0.005))
        await engine.start()
        hub = SessionHub(engine, observer=RecordingObserver())
        channel, before = MemoryChannel(), asyncio.all_tasks()
        session = asyncio.create_task(SessionDriver(hub, channel, NativeAdapter(1000)).run())
        await channel.say({"type": "session.start"}, {"type": "text", "text": "One two three."})
        await channel.until("utterance.start")
        session.cancel()
        with pytest.raises(asyncio.CancelledError):
            await session
        assert asyncio.all_tasks() == before
        assert not engine.live
        assert not hub.live
        assert list(hub.observer.closed.values()) == [None]  # type: ignore[attr-defined]
        hub.close()

    async def test_an_engine_with_a_bug_in_open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Found by the writer's own step, at the end of the utterance before: it still tells the client."""
        async with running() as (client, hub):
            await client.say({"type": "session.start", "format": PCM})
            await client.say({"type": "text", "text": "One two three four "})
            await client.until_audio(1)

            def broken(*_: object) -> None:
                raise ZeroDivisionError

            monkeypatch.setattr(hub.engine, "open", broken)
            await client.say({"type": "end"}, {"type": "text", "text": "Three. "}, {"type": "end"})
            assert await client.until_closed() == (1011, "engine_failure")
        assert client.messages("error")[0]["utterance"] == "u2"

    async def test_client_vanishes(self) -> None:
        engine = FakeEngine(timing=FakeTiming(frame_s=0.005))
        async with running(engine) as (client, _):
            await client.say(
                {"type": "session.start", "format": PCM}, {"type": "text", "text": "One two three."}
            )
            await client.until("utterance.start")
            assert engine.live

    async def test_no_engine_no_session(self) -> None:
        engine = FakeEngine()
        async with running(engine) as (client, hub):
            await client.say({"type": "session.start"})
            await client.until("session.ready")
            engine.die()
            other = MemoryChannel()
            await SessionDriver(hub, other, NativeAdapter(1000)).run()
            assert other.closed == (1013, "overloaded")
            assert other.messages("error")[0]["retryable"]


class TestBargeIn:
    async def test_cancel_stops_at_once_and_the_session_goes_on(self) -> None:
        engine = FakeEngine(timing=FakeTiming(frame_s=0.002))
        async with running(engine) as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            await client.say({"type": "text", "text": "One two three four five six seven."}, {"type": "end"})
            await client.until("utterance.start")
            await client.until_audio(5)
            await client.say({"type": "cancel"})
            cancelled = await client.until("utterance.cancelled")
            count = len(client.audio(0))
            await settle()
            assert not engine.live
            await client.say({"type": "text", "text": "Next."}, {"type": "end"})
            await client.until("utterance.done")
        assert len(client.audio(0)) == count
        assert cancelled["heard_text"] + cancelled["unheard_text"] == "One two three four five six seven."
        assert [body["utterance"] for body in client.messages("utterance.done")] == ["u2"]

    async def test_a_transport_that_knows_what_was_played(self) -> None:
        async with running() as (client, hub):
            await client.say({"type": "session.start", "format": PCM})
            await client.say({"type": "text", "text": "One two three four five "})
            await client.until_audio(25)
            (session,) = hub.live.values()
            assert isinstance(session, SessionDriver)
            session.played(0, 4800 * 2)
            await client.say({"type": "cancel"})
            cancelled = await client.until("utterance.cancelled")
        assert cancelled["clock"] == "transport"
        assert cancelled["heard_ms"] == 400
        assert cancelled["heard_text"] == "One two"

    async def test_frames_after_a_cancel(self) -> None:
        async with running() as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            client.reading.clear()
            await client.say({"type": "text", "text": "One two three four five."}, {"type": "end"})
            await settle(200)
            await client.say({"type": "cancel"})
            await settle()
            client.reading.set()
            cancelled = await client.until("utterance.cancelled")
        assert len(client.audio()) <= 1
        assert cancelled["unheard_text"] == "One two three four five."


class TestTime:
    async def test_bounded_lead(self) -> None:
        clock = ManualClock()
        began = clock.now()
        async with running(FakeEngine(), Limits(send_buffer_ms=60_000), clock) as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            await client.say({"type": "text", "text": "word " * 60 + "."}, {"type": "end"})
            await client.until("utterance.start")
            async with asyncio.timeout(20):
                while not client.messages("utterance.done"):
                    await clock.advance(0.25)
                    await asyncio.sleep(0.001)  # the encoder's threads know nothing of this clock
                    sent_s = sum(len(frame.payload) // 2 for frame in client.audio()) / 24000
                    assert sent_s <= clock.now() - began + 4.0 + 0.5
        assert clock.now() - began > 60 * 0.2 - 5

    async def test_idle(self) -> None:
        clock = ManualClock()
        async with running(limits=Limits(idle_s=5), clock=clock) as (client, _):
            await client.say({"type": "session.start"})
            await client.until("session.ready")
            await clock.advance(4.9, step_s=0.1)
            await client.say({"type": "keepalive"})
            await settle()
            await clock.advance(4.9, step_s=0.1)
            assert client.closed is None
            await clock.advance(0.2, step_s=0.1)
            assert await client.until_closed() == (4408, "idle_timeout")

    async def test_no_start(self) -> None:
        clock = ManualClock()
        async with running(clock=clock) as (client, _):
            await settle()
            await clock.advance(10.1, step_s=1.0)
            assert await client.until_closed() == (4408, "idle_timeout")

    async def test_a_client_that_does_not_read_is_dropped(self) -> None:
        clock = ManualClock()
        async with running(limits=Limits(send_timeout_s=3), clock=clock) as (client, _):
            await client.say({"type": "session.start", "format": PCM})
            await client.until("session.ready")
            client.reading.clear()
            await client.say({"type": "text", "text": "One two three."}, {"type": "end"})
            await settle(100)
            await clock.advance(3.1, step_s=0.5)
            await clock.advance(2.1, step_s=0.5)
            assert client.dropped.is_set()

    async def test_send_buffer_is_bounded(self) -> None:
        async with running(limits=Limits(send_buffer_ms=500)) as (client, hub):
            await client.say({"type": "session.start", "format": PCM})
            await client.until("session.ready")
            client.reading.clear()
            await client.say({"type": "text", "text": "word " * 30 + "."}, {"type": "end"})
            async with asyncio.timeout(5):
                await client.dropped.wait()
        assert isinstance(hub.observer, RecordingObserver)
        (fault,) = hub.observer.closed.values()
        assert fault is not None
        assert fault.code == "slow_consumer"


class TestDrain:
    async def test_running_utterances_finish_first(self) -> None:
        engine = FakeEngine(timing=FakeTiming(frame_s=0.001))
        async with running(engine) as (client, hub):
            await client.say({"type": "session.start", "format": PCM})
            await client.say({"type": "text", "text": "One two three."}, {"type": "end"})
            await client.until("utterance.start")
            assert await hub.drain(5.0)
            assert client.closed == (1012, "draining")
        kinds = [body["type"] for body in client.messages()]
        assert kinds[-2:] == ["utterance.done", "error"]

    async def test_what_takes_too_long_is_failed(self) -> None:
        engine = FakeEngine()
        async with running(engine) as (client, hub):
            await client.say({"type": "session.start", "format": PCM}, {"type": "text", "text": "No end"})
            await client.until("utterance.start")
            assert not await hub.drain(0.01)
            assert client.closed == (1012, "draining")
        assert client.messages()[-1]["utterance"] is None
        assert not client.messages("utterance.done")


async def test_limits_are_told() -> None:
    limits = replace(Limits(), idle_s=17.0)
    async with running(limits=limits) as (client, _):
        await client.say({"type": "session.start"})
        ready = await client.until("session.ready")
    assert ready["limits"] == limits.told()
    assert ready["prefix"] == {"tokens": 96, "cached": 0}
    assert ready["protocol"] == "voxwire.v1"
