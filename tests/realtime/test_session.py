"""The session machine: commands, order, lifecycle, errors."""

import pytest

from engine.contract import Sampling, SpeechDone, Timings, Usage
from engine.errors import EngineDead
from engine.fake import fake_info
from realtime import effects as do
from realtime import messages as msg
from realtime.audio.formats import FormatRequest
from realtime.errors import ErrorCode, InvalidRequest
from realtime.limits import Limits
from realtime.options import SessionOptions
from realtime.session import STATES, State
from realtime.utterance import PHASES, Phase
from tests.support.rig import PCM, Rig, kinds, of


@pytest.mark.parametrize("table", [STATES, PHASES], ids=["session", "utterance"])
def test_transition_tables(table: dict[State, frozenset[State]] | dict[Phase, frozenset[Phase]]) -> None:
    """Every state is there, can be reached, and reaches an end that nothing leaves."""
    states = list(type(next(iter(table))))
    assert list(table) == states
    reached = {states[0]}
    while new := {after for state in reached for after in table[state]} - reached:  # type: ignore[index]
        reached |= new
    assert reached == set(states)
    assert [state for state in states if not table[state]]  # type: ignore[index]


class TestStart:
    def test_ready_tells_everything(self) -> None:
        rig = Rig()
        rig.say(msg.StartSession(SessionOptions(voice="bob")))
        assert rig.effects == [do.Prewarm("bob", FormatRequest().resolve(24000))]
        assert rig.take() == []
        rig.ready()
        (ready,) = rig.take()
        assert isinstance(ready, msg.SessionReady)
        assert (ready.voice, ready.model, ready.session) == ("bob", "fake", "s_test")

    @pytest.mark.parametrize(
        "command",
        [
            msg.AppendText("hi"),
            msg.Flush(),
            msg.End(),
            msg.Cancel(),
            msg.KeepAlive(),
            msg.Close(),
            msg.UpdateSession(SessionOptions()),
        ],
        ids=lambda command: type(command).__name__,
    )
    def test_anything_else_first_is_wrong_order(self, command: msg.Command) -> None:
        rig = Rig()
        rig.say(command)
        failed = rig.failure()
        assert failed.fault.code is ErrorCode.INVALID_REQUEST
        assert "session.start" in failed.fault.message

    def test_twice(self) -> None:
        rig = Rig().start()
        rig.say(msg.StartSession())
        assert "session.update" in rig.failure().fault.message

    def test_text_may_come_before_ready(self) -> None:
        rig = Rig()
        rig.say(msg.StartSession(SessionOptions(format=PCM)), msg.AppendText("One two."), msg.End())
        assert not rig.streams
        rig.ready()
        rig.finish(0)
        assert kinds(rig.take()) == ["SessionReady", "UtteranceStarted", "AudioEnded", "UtteranceDone"]

    def test_close_before_ready(self) -> None:
        rig = Rig()
        rig.say(msg.StartSession(SessionOptions(format=PCM)), msg.AppendText("One."), msg.Close())
        rig.ready()
        rig.finish(0)
        rig.take()
        assert rig.events[-1] == msg.CloseConnection(1000, "closed")

    @pytest.mark.parametrize(
        ("options", "code", "field", "told"),
        [
            (SessionOptions(voice="eve"), "not_found", "voice", "ada, bob"),
            (
                SessionOptions(format=FormatRequest(encoding="opus", sample_rate=44100)),
                "invalid_request",
                "format.sample_rate",
                "48000",
            ),
            (
                SessionOptions(format=FormatRequest(sample_rate=-1)),
                "invalid_request",
                "format.sample_rate",
                "24000",
            ),
            (SessionOptions(format=FormatRequest(frame_ms=-20)), "invalid_request", "format.frame_ms", "20"),
            (
                SessionOptions(format=FormatRequest(encoding="mp3")),
                "invalid_request",
                "format.encoding",
                "mulaw",
            ),
            (SessionOptions(format=FormatRequest(bitrate=-1)), "invalid_request", "format.bitrate", "6000"),
            (SessionOptions(speed=-1), "invalid_request", "speed", "0.5 to 2"),
            (SessionOptions(speed=float("nan")), "invalid_request", "speed", "0.5 to 2"),
            (SessionOptions(ttfp_budget_ms=-5), "invalid_request", "ttfp_budget_ms", "from 1"),
            (SessionOptions(on_budget_miss="cry"), "invalid_request", "on_budget_miss", "continue, fail"),
            (SessionOptions(segment_mode="word"), "invalid_request", "segment.mode", "clause"),
            (SessionOptions(min_chars=-1), "invalid_request", "segment.min_chars", "from 0"),
            (SessionOptions(language="xx"), "invalid_request", "language", "en"),
            (
                SessionOptions(sampling=Sampling(temperature=-1)),
                "invalid_request",
                "sampling.temperature",
                "from 0",
            ),
            (SessionOptions(sampling=Sampling(top_p=2)), "invalid_request", "sampling.top_p", "to 1"),
            (SessionOptions(sampling=Sampling(top_k=0)), "invalid_request", "sampling.top_k", "from 1"),
            (SessionOptions(sampling=Sampling(seed=-1)), "invalid_request", "sampling.seed", "from 0"),
            (
                SessionOptions(sampling=Sampling(top_k=10**400)),
                "invalid_request",
                "sampling.top_k",
                "far outside",
            ),
            (
                SessionOptions(sampling=Sampling(repetition_penalty=0)),
                "invalid_request",
                "sampling.repetition_penalty",
                "from 1 to 2",
            ),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_wrong_options(self, options: SessionOptions, code: str, field: str, told: str) -> None:
        rig = Rig()
        rig.say(msg.StartSession(options))
        fault = rig.failure().fault
        assert (fault.code, fault.field) == (code, field)
        assert field in fault.message
        assert told in fault.message
        assert not any(isinstance(effect, do.Prewarm) for effect in rig.effects)

    def test_prewarming_takes_too_long(self) -> None:
        rig = Rig()
        rig.say(msg.StartSession())
        rig.tick(31)
        assert rig.failure().fault.code is ErrorCode.ENGINE_FAILURE


class TestText:
    def test_words_go_to_the_engine_as_they_become_certain(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("Hel"))
        assert not rig.streams
        rig.say(msg.AppendText("lo there, wor"))
        assert [word.spoken for word in rig.streams[0].words] == ["hello", "there,"]
        rig.say(msg.AppendText("ld"), msg.Flush())
        assert [word.spoken for word in rig.streams[0].words] == ["hello", "there,", "world."]
        assert not rig.streams[0].finished
        rig.say(msg.End())
        assert rig.streams[0].finished

    def test_names(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One."), msg.End(), msg.AppendText("Two.", "mine"), msg.End("mine"))
        rig.say(msg.AppendText("Three."), msg.End())
        for index in range(3):
            rig.finish(index)
        names = [event.utterance for event in rig.take() if isinstance(event, msg.UtteranceDone)]
        assert names == ["u1", "mine", "u3"]

    def test_the_next_one_waits_for_the_one_before(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One. ", "a"), msg.AppendText("Two.", "b"), msg.End("b"))
        assert list(rig.streams) == [0]
        rig.say(msg.AppendText("More.", "a"), msg.End("a"))
        assert [word.spoken for word in rig.streams[0].words] == ["one.", "more."]
        rig.finish(0)
        assert list(rig.streams) == [0, 1]
        rig.finish(1)
        rig.take()
        assert kinds(rig.events) == ["UtteranceStarted", "AudioEnded", "UtteranceDone"] * 2

    @pytest.mark.parametrize("text", [None, "", "   \n\t", "😀 🎉", "... — !?", "\x00\x00", "\ufffd"])
    def test_nothing_to_speak_is_an_empty_utterance(self, text: str | None) -> None:
        rig = Rig().start()
        if text is not None:
            rig.say(msg.AppendText(text))
        rig.say(msg.End())
        events = [event for event in rig.take() if not isinstance(event, msg.Warned)]
        assert kinds(events) == ["UtteranceStarted", "AudioEnded", "UtteranceDone"]
        done = events[-1]
        assert isinstance(done, msg.UtteranceDone)
        assert (done.reason, done.samples, done.frames, done.crc32, done.ttfp_ms) == ("empty", 0, 0, 0, None)
        assert done.text_chars == len(text or "")
        assert not rig.streams

    def test_unspeakable_characters_are_told_once(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("Hi 😀 there 😀 you 😀."), msg.AppendText(" 😀 "), msg.End())
        warnings = of(rig.take(), msg.Warned)
        assert [warning.code for warning in warnings] == ["text_dropped"]  # type: ignore[attr-defined]

    def test_text_for_an_ended_name(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One.", "a"), msg.End("a"), msg.AppendText("Two.", "a"))
        assert rig.failure().fault.field == "utterance"

    @pytest.mark.parametrize("name", ["", "x" * 65])
    def test_impossible_names(self, name: str) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One.", name))
        assert "64" in rig.failure().fault.message

    def test_flush_of_nothing(self) -> None:
        rig = Rig().start()
        rig.say(msg.Flush(), msg.Flush("a"))
        assert rig.take() == []

    def test_update_counts_from_the_next_utterance(self) -> None:
        rig = Rig().start(sampling=Sampling(seed=7))
        rig.say(msg.AppendText("One.", "a"), msg.UpdateSession(SessionOptions(voice="bob", speed=1.5)))
        rig.say(msg.End("a"), msg.AppendText("Two.", "b"), msg.End("b"))
        rig.finish(0)
        requests = [effect.request for effect in rig.effects if isinstance(effect, do.OpenStream)]
        assert [(r.voice, r.speed, r.sampling.seed) for r in requests] == [("ada", 1.0, 7), ("bob", 1.5, 7)]
        assert [e.voice for e in rig.effects if isinstance(e, do.Prewarm)] == ["ada", "bob"]

    def test_only_what_the_client_set_is_asked_of_the_engine(self) -> None:
        rig = Rig().start(sampling=Sampling(top_k=5))
        rig.say(msg.AppendText("One."), msg.End())
        (opened,) = (effect for effect in rig.effects if isinstance(effect, do.OpenStream))
        assert opened.request.sampling == Sampling(top_k=5)


class TestLimits:
    @pytest.mark.parametrize(
        ("limits", "field"),
        [
            (Limits(utterance_chars=10), "utterance_chars"),
            (Limits(pending_chars=20), "pending_chars"),
            (Limits(pending_utterances=2), "pending_utterances"),
        ],
    )
    def test_too_large(self, limits: Limits, field: str) -> None:
        rig = Rig(limits).start()
        rig.say(*[msg.AppendText("eight ch"), msg.End()] * 3, msg.AppendText("eight chars"))
        fault = rig.failure().fault
        assert (fault.code, fault.field, fault.close) == ("too_large", field, 1009)
        assert str(limits.told()[field]) in fault.message

    def test_too_many_words(self) -> None:
        rig = Rig(info=fake_info(max_words=3)).start()
        rig.say(msg.AppendText("one two three four five "))
        failed = rig.failure()
        assert (failed.fault.code, failed.utterance) == ("too_large", "u1")
        assert not rig.streams, "a request that is too long never costs a token"

    def test_a_client_that_reads_nothing_cannot_pile_up_warnings(self) -> None:
        rig = Rig().start()
        for _ in range(300):
            rig.say(msg.Cancel())
        assert rig.failure().fault.code is ErrorCode.SLOW_CONSUMER


class TestClosing:
    def test_what_is_pending_is_spoken(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two"), msg.Close())
        assert not rig.closed
        rig.finish(0)
        rig.take()
        assert kinds(rig.events)[-2:] == ["UtteranceDone", "CloseConnection"]
        assert rig.closed

    def test_nothing_pending(self) -> None:
        rig = Rig().start()
        rig.say(msg.Close())
        assert rig.take() == [msg.CloseConnection(1000, "closed")]

    def test_text_after_close(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One"), msg.Close(), msg.AppendText("Two"))
        assert "close" in rig.failure().fault.message

    def test_drain_lets_the_running_finish_and_begins_nothing(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two.", "a"))
        rig.session.drain(rig.now)
        rig.say(msg.AppendText("New.", "b"), msg.End("a"))
        rig.finish(0)
        rig.take()
        assert kinds(rig.events)[-3:] == ["UtteranceDone", "Failed", "CloseConnection"]
        assert rig.failure().fault.close == 1012
        assert [w.code for w in rig.events if isinstance(w, msg.Warned)] == ["draining"]

    def test_a_lost_connection_frees_everything(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two."), msg.AppendText("Three", "b"))
        rig.word(0)
        rig.session.connection_lost(rig.now)
        rig.perform()
        assert rig.streams[0].closed
        assert rig.take() == []
        assert [e.report.outcome for e in rig.effects if isinstance(e, do.ReportUtterance)] == [
            "lost",
            "lost",
        ]
        assert rig.session.next_deadline(rig.now) is None


class TestFailure:
    def test_an_error_overtakes_audio_and_nothing_follows(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two three four five six seven eight nine ten."), msg.End())
        for _ in range(10):
            rig.word(0)
        rig.session.failed(EngineDead("gone"), rig.now, 0)
        rig.perform()
        assert kinds(rig.take()) == ["Failed", "CloseConnection"]
        assert not of(rig.events, msg.AudioReady)
        assert rig.streams[0].closed

    def test_after_the_end_everything_is_ignored(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One."), msg.Reject(InvalidRequest("no")))
        rig.failure()
        rig.say(msg.AppendText("Two."), msg.End(), msg.Cancel(), msg.Close())
        rig.tick(1000)
        assert rig.take() == []

    @pytest.mark.parametrize(
        "event",
        [
            do.PcmMade(480, 480),
            do.SpeechEnded(SpeechDone(480, Usage(), Timings()), 480),
        ],
        ids=["gap", "end without samples"],
    )
    def test_an_engine_that_breaks_its_contract(self, event: do.StreamEvent) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two."), msg.End())
        rig.hear(0, event)
        assert rig.failure().fault.close == 1011
        assert not of(rig.events, msg.AudioEnded)

    def test_no_audio_is_no_success(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One."), msg.End())
        rig.hear(0, do.SpeechEnded(SpeechDone(0, Usage(), Timings()), 0))
        assert rig.failure().fault.code is ErrorCode.ENGINE_FAILURE

    def test_speech_may_not_end_before_its_text(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two. "))
        rig.word(0)
        rig.hear(0, do.SpeechEnded(SpeechDone(2400, Usage(), Timings()), 2400))
        assert rig.failure().fault.code is ErrorCode.ENGINE_FAILURE
