"""Words, bounded lead, budgets, progress and measurement, with time moved by hand."""

import zlib

import pytest

from engine.contract import SegmentDone, WordStarted
from realtime import messages as msg
from realtime.errors import ErrorCode
from realtime.limits import Limits, Tuning
from realtime.utterance import Phase
from tests.support.rig import FRAME, RATE, TEXT, Rig, of, reports, spoken


class TestWords:
    def test_times_and_ranges(self) -> None:
        rig = Rig().start(words=True)
        rig.say(msg.AppendText("At 7:30 sharp, we go."), msg.End())
        rig.finish(0)
        words = [word for event in rig.take() if isinstance(event, msg.WordsSpoken) for word in event.words]
        assert [(word.start_ms, word.end_ms) for word in words] == [
            (0, 100),
            (100, 300),
            (300, 400),
            (400, 500),
            (500, 600),
        ]
        text = "At 7:30 sharp, we go."
        assert [word.text for word in words] == [text[word.char_start : word.char_end] for word in words]
        assert words[1].text == "7:30"

    def test_not_unless_asked_for(self) -> None:
        rig = spoken(0)
        rig.finish(0)
        assert not of(rig.take(), msg.WordsSpoken)

    def test_a_word_is_told_before_audio_past_it(self) -> None:
        rig = Rig().start(words=True)
        rig.say(msg.AppendText("One two three."), msg.End())
        rig.finish(0)
        position = 0.0
        for event in rig.take():
            if isinstance(event, msg.AudioReady):
                position = event.packet.pts * 1000 / RATE
            if isinstance(event, msg.WordsSpoken):
                assert event.words[-1].end_ms >= position

    def test_words_out_of_order_are_a_failure(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two three."), msg.End())
        rig.hear(0, WordStarted(1, 0))
        rig.hear(0, WordStarted(0, 480))
        assert rig.failure().fault.code is ErrorCode.ENGINE_FAILURE

    def test_missing_words_are_told(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two three."), msg.End())
        rig.hear(0, SegmentDone(3, 2, 480, 1))
        assert [event.code for event in rig.take() if isinstance(event, msg.Warned)] == ["words_missing"]


class TestLead:
    def test_is_granted_as_the_listener_plays(self) -> None:
        rig = Rig(tuning=Tuning(lead_ms=1000, lead_step_ms=250)).start()
        rig.say(msg.AppendText(TEXT), msg.End())
        assert rig.streams[0].granted == RATE
        for _ in range(8):
            rig.word(0)
        rig.take()
        assert rig.streams[0].granted == RATE
        rig.tick(0.6)
        assert rig.streams[0].granted == RATE + RATE // 2
        rig.tick(5)
        assert rig.streams[0].granted <= RATE + 8 * 5 * FRAME, "a listener who has heard all needs no more"

    def test_counts_what_is_heard_before(self) -> None:
        rig = Rig(tuning=Tuning(lead_ms=1000, lead_step_ms=100)).start()
        spoken(0, rig, "One two three.")
        rig.finish(0)
        rig.take()
        rig.say(msg.AppendText("Four."), msg.End())
        assert rig.streams[1].granted == int(RATE * 0.7)

    def test_the_next_utterance_waits_while_the_listener_has_enough(self) -> None:
        rig = Rig(tuning=Tuning(lead_ms=400, first_lead_ms=100)).start()
        spoken(0, rig)
        rig.finish(0)
        rig.take()
        rig.say(msg.AppendText("Next."), msg.End())
        assert 1 not in rig.streams
        rig.tick(0.3)
        assert 1 not in rig.streams
        rig.tick(0.2)
        assert rig.streams[1].granted == RATE // 10, "little, for there is still enough to hear"
        rig.word(1)
        rig.finish(1)
        done = of(rig.take(), msg.UtteranceDone)[0]
        assert done.ttfp_ms is not None  # type: ignore[attr-defined]
        assert done.ttfp_ms < 150, "waiting for the listener is not waiting for us"  # type: ignore[attr-defined]

    def test_gaps_are_ours_only_while_there_are_words(self) -> None:
        rig = spoken(1)
        rig.tick(0.4)
        rig.word(0)
        rig.take()
        rig.session._roster.get(0).words_at = rig.now + 0.1  # type: ignore[union-attr]
        assert rig.session._roster.get(0).gap_s == pytest.approx(0.3)  # type: ignore[union-attr]

    def test_a_silent_engine_is_noticed(self) -> None:
        rig = Rig(tuning=Tuning(stall_s=5)).start()
        rig.say(msg.AppendText(TEXT), msg.End())
        rig.word(0)
        rig.take()
        rig.tick(4.9)
        assert not rig.closed
        rig.tick(0.2)
        assert rig.failure().fault.code is ErrorCode.ENGINE_FAILURE

    def test_an_engine_that_waits_for_text_is_not_silent(self) -> None:
        rig = Rig(tuning=Tuning(stall_s=5)).start()
        rig.say(msg.AppendText("One two three "))
        rig.word(0)
        rig.take()
        rig.tick(50)
        assert not rig.closed


class TestBudget:
    def test_met(self) -> None:
        rig = Rig().start(ttfp_budget_ms=200.0)
        rig.say(msg.AppendText("One."), msg.End())
        rig.now += 0.1
        rig.finish(0)
        rig.now += 0.05
        done = of(rig.take(), msg.UtteranceDone)[0]
        assert (done.ttfp_ms, done.budget_met) == (pytest.approx(150), True)  # type: ignore[attr-defined]

    def test_missed_and_going_on(self) -> None:
        rig = Rig().start(ttfp_budget_ms=200.0)
        rig.say(msg.AppendText("One."), msg.End())
        rig.tick(0.19)
        assert not of(rig.take(), msg.Warned)
        rig.tick(0.02)
        assert [event.code for event in rig.take() if isinstance(event, msg.Warned)] == ["ttfp_budget_missed"]
        rig.finish(0)
        done = of(rig.take(), msg.UtteranceDone)[0]
        assert done.budget_met is False  # type: ignore[attr-defined]
        assert len(of(rig.events, msg.Warned)) == 1

    def test_missed_and_failing(self) -> None:
        rig = Rig().start(ttfp_budget_ms=200.0, on_budget_miss="fail")
        rig.say(msg.AppendText("One."), msg.End())
        rig.tick(0.21)
        assert rig.failure().fault.close == 4408

    def test_found_too_late_when_it_is_to_be_sent(self) -> None:
        rig = Rig().start(ttfp_budget_ms=200.0, on_budget_miss="fail")
        rig.say(msg.AppendText("One."), msg.End())
        rig.word(0)
        rig.now += 0.3
        assert rig.failure().fault.code is ErrorCode.TTFP_BUDGET
        assert not of(rig.events, msg.AudioReady)

    def test_runs_while_the_session_is_made_ready(self) -> None:
        rig = Rig()
        rig.say(msg.StartSession(), msg.AppendText("One."), msg.End())
        rig.now += 0.5
        rig.ready()
        rig.finish(0)
        done = of(rig.take(), msg.UtteranceDone)[0]
        assert done.ttfp_ms == pytest.approx(500)  # type: ignore[attr-defined]

    def test_an_empty_utterance_has_none(self) -> None:
        rig = Rig().start(ttfp_budget_ms=200.0, on_budget_miss="fail")
        rig.say(msg.AppendText("  "))
        rig.tick(10)
        rig.say(msg.End())
        done = of(rig.take(), msg.UtteranceDone)[0]
        assert done.budget_met is None  # type: ignore[attr-defined]


class TestDone:
    def test_adds_up(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two three."), msg.End())
        rig.now += 0.05
        rig.word(0)
        rig.now += 0.003
        rig.take()
        rig.finish(0)
        events = rig.take()
        done = events[-1]
        assert isinstance(done, msg.UtteranceDone)
        payloads = [event.packet.payload for event in rig.events if isinstance(event, msg.AudioReady)]
        assert (done.samples, done.audio_ms, done.frames) == (7200, 300, 15)
        assert done.crc32 == zlib.crc32(b"".join(payloads))
        assert done.text_chars == 14
        assert done.usage.cached_tokens == 96
        parts = done.ttfp_parts
        assert parts is not None
        assert (parts.prefill, parts.decode, parts.vocode) == pytest.approx((2, 3, 4))
        assert parts.send == pytest.approx(3)
        assert parts.queue == pytest.approx(41)
        total = (
            parts.segment
            + parts.queue
            + parts.prefill
            + parts.decode
            + parts.vocode
            + parts.encode
            + parts.send
        )
        assert total == pytest.approx(done.ttfp_ms)
        (report,) = reports(rig)
        assert (report.outcome, report.words, report.words_spoken) == ("complete", 3, 3)
        assert rig.session.busy == 0

    def test_phases_are_kept(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One."), msg.End())
        utterance = rig.session._roster.get(0)
        assert utterance is not None
        with pytest.raises(ValueError, match="SPEAKING to WAITING"):
            utterance.enter(Phase.WAITING)


class TestSlowConsumer:
    def test_send_buffer(self) -> None:
        rig = Rig(Limits(send_buffer_ms=250)).start()
        rig.say(msg.AppendText(TEXT), msg.End())
        rig.word(0)
        rig.word(0)
        assert not rig.closed
        rig.word(0)
        assert rig.failure().fault.close == 4413

    def test_a_frame_that_nobody_takes(self) -> None:
        rig = Rig(Limits(send_timeout_s=3)).start()
        rig.say(msg.AppendText(TEXT), msg.End())
        rig.word(0)
        assert rig.session.next_event(rig.now) is not None
        rig.tick(2.9)
        assert not rig.closed
        rig.tick(0.2)
        assert rig.failure().fault.code is ErrorCode.SLOW_CONSUMER


class TestIdle:
    def test_speaking_is_not_idle(self) -> None:
        rig = Rig(Limits(idle_s=2, send_buffer_ms=600_000), Tuning(lead_ms=100_000)).start()
        rig.say(msg.AppendText(TEXT), msg.End())
        for _ in range(10):
            rig.tick(1)
            rig.word(0)
            rig.take()
        assert not rig.closed
        rig.tick(1.9)
        assert not rig.closed
        rig.tick(0.2)
        assert rig.failure().fault.code is ErrorCode.IDLE_TIMEOUT
