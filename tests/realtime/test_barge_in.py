"""Barge-in: what is stopped, and what is told to have been heard."""

import pytest

from realtime import messages as msg
from realtime.limits import Tuning
from tests.support.rig import TEXT, Rig, kinds, of, reports, spoken


def cancelled(rig: Rig) -> msg.UtteranceCancelled:
    (event,) = of(rig.take(), msg.UtteranceCancelled)
    assert isinstance(event, msg.UtteranceCancelled)
    return event


class TestBargeIn:
    @pytest.mark.parametrize(
        ("played_ms", "heard"),
        [
            (0, ""),
            (99, ""),
            (100, "One"),
            (250, "One two,"),
            (300, "One two, three"),
            (10_000, "One two, three four five."),
        ],
    )
    def test_the_client_says_what_it_played(self, played_ms: float, heard: str) -> None:
        rig = spoken(5)
        rig.say(msg.Cancel(played_ms=played_ms))
        event = cancelled(rig)
        assert event.heard_text == heard
        assert event.heard_text + event.unheard_text == TEXT
        assert event.clock == "client"
        assert event.sent_ms == 500
        assert event.heard_ms == min(played_ms, 500)
        assert rig.streams[0].closed

    def test_the_transport_knows(self) -> None:
        rig = spoken(5)
        rig.say(msg.Played(0, 5000), msg.Cancel())
        event = cancelled(rig)
        assert (event.clock, event.heard_text) == ("transport", "One two,")

    def test_by_what_was_sent_and_since_when(self) -> None:
        rig = spoken(5)
        rig.tick(0.25)
        rig.say(msg.Cancel())
        event = cancelled(rig)
        assert (event.clock, event.heard_ms, event.heard_text) == ("sent", 250, "One two,")

    def test_not_more_than_was_sent(self) -> None:
        rig = spoken(2)
        rig.tick(5)
        rig.say(msg.Cancel())
        assert cancelled(rig).heard_ms == 200

    def test_all_heard(self) -> None:
        rig = spoken(2, text="One two. ")
        rig.finish(0)
        rig.take(limit=1)
        rig.say(msg.Cancel(played_ms=200))
        event = cancelled(rig)
        assert (event.heard_text, event.unheard_text) == ("One two. ", "")

    def test_audio_not_sent_is_dropped(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText(TEXT), msg.End())
        for _ in range(4):
            rig.word(0)
        rig.take(limit=3)
        rig.say(msg.Cancel())
        assert kinds(rig.take()) == ["UtteranceCancelled"]
        assert not of(rig.events[3:], msg.AudioReady)

    def test_before_the_start_was_sent(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText(TEXT), msg.Cancel())
        assert kinds(rig.take()) == ["UtteranceStarted", "UtteranceCancelled"]

    def test_before_the_session_is_ready(self) -> None:
        rig = Rig()
        rig.say(msg.StartSession(), msg.AppendText(TEXT), msg.Cancel())
        assert kinds(rig.take()) == ["UtteranceStarted", "UtteranceCancelled"]
        rig.ready()
        assert kinds(rig.take()) == ["SessionReady"]

    def test_everything_that_waits_too(self) -> None:
        rig = spoken(2)
        rig.say(msg.AppendText("Next.", "b"), msg.End("b"), msg.AppendText("Third", "c"))
        rig.say(msg.Cancel(played_ms=100))
        events = of(rig.take(), msg.UtteranceCancelled)
        told = [(e.utterance, e.heard_text, e.unheard_text) for e in events]  # type: ignore[attr-defined]
        assert told == [("u1", "One", TEXT.removeprefix("One")), ("b", "", "Next."), ("c", "", "Third")]
        assert kinds(rig.events)[-5:] == [
            "UtteranceCancelled",
            *["UtteranceStarted", "UtteranceCancelled"] * 2,
        ]

    def test_one_of_several(self) -> None:
        rig = spoken(1)
        rig.say(msg.AppendText("Next.", "b"), msg.End("b"), msg.Cancel("b"))
        rig.finish(0)
        rig.take()
        assert kinds(rig.events) == [
            "UtteranceStarted",
            "UtteranceStarted",
            "UtteranceCancelled",
            "AudioEnded",
            "UtteranceDone",
        ]

    def test_the_next_one_begins_at_once(self) -> None:
        rig = Rig(tuning=Tuning(lead_ms=400)).start()
        spoken(4, rig)
        rig.say(msg.AppendText("Next.", "b"), msg.End("b"), msg.Cancel("u1"))
        assert 1 in rig.streams

    def test_made_but_not_sent_is_still_cancelled(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two."), msg.End())
        rig.finish(0)
        rig.take(limit=3)
        rig.say(msg.Cancel())
        assert kinds(rig.take()) == ["UtteranceCancelled"]
        assert not rig.streams[0].closed, "the engine was done with it"

    def test_too_late(self) -> None:
        rig = spoken(0, text="One.")
        rig.finish(0)
        rig.take()
        rig.say(msg.Cancel(), msg.Cancel("u1"), msg.Cancel("never"))
        assert [event.code for event in rig.take() if isinstance(event, msg.Warned)] == [
            "nothing_to_cancel"
        ] * 3
        assert not rig.closed

    def test_while_one_that_is_done_still_plays(self) -> None:
        """What the client played then says nothing of those that follow."""
        rig = spoken(0, text="One two three.")
        rig.finish(0)
        rig.take()
        rig.say(msg.AppendText("Four five six."), msg.End())
        rig.word(1)
        rig.take()
        rig.now += 0.1
        rig.say(msg.Cancel(played_ms=100))
        event = cancelled(rig)
        assert (event.heard_text, event.heard_ms, event.clock) == ("", 0, "client")

    def test_text_that_still_comes_for_it_is_not_spoken(self) -> None:
        rig = Rig().start()
        rig.say(msg.AppendText("One two ", "a"), msg.Cancel("a"))
        rig.take()
        rig.say(msg.AppendText("three four. ", "a"), msg.End("a"))
        assert [event.code for event in rig.take() if isinstance(event, msg.Warned)] == ["text_dropped"] * 2
        rig.say(msg.AppendText("Five. ", "b"))
        assert [word.spoken for word in rig.streams[1].words] == ["five."]

    def test_cut_through_an_item_of_two_words(self) -> None:
        rig = spoken(5, text="At 7:30 we go on.")
        assert [word.spoken for word in rig.streams[0].words][:3] == ["at", "seven", "thirty"]
        rig.say(msg.Cancel(played_ms=250))
        assert cancelled(rig).heard_text == "At"

    def test_waste_is_measured(self) -> None:
        rig = spoken(5)
        rig.word(0)
        rig.say(msg.Cancel(played_ms=100))
        (report,) = reports(rig)
        assert (report.outcome, report.audio_ms, report.sent_ms) == ("cancelled", 600, 500)
        assert report.wasted_ms == 600, "by the playback clock nothing was heard yet"
