"""Speaks the utterances of one session in order: text to the engine, audio to the outbox. Pure.

It holds generation to a bounded lead over the listener, watches the TTFP budget and the engine's progress,
and does the barge-in. What breaks is raised as `RealtimeError` or `EngineError`; the session decides.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from engine.contract import SegmentDone, SpeechBegun, WordStarted
from engine.errors import GenerationFailed
from realtime import effects as do
from realtime import messages as msg
from realtime.errors import BudgetMissed, ErrorCode, SlowConsumer, TooLarge
from realtime.limits import Limits, Tuning
from realtime.outbox import Outbox
from realtime.playback import Player
from realtime.reports import Outcome
from realtime.roster import Roster
from realtime.utterance import Phase, Utterance

Timer = tuple[float, Callable[[], None]]

_STILL_HEARD_S = 0.001


def _nothing() -> None:
    """For a moment at which only `Stage.advance` has to run."""


class Stage:
    """See the module's docstring. ``effects`` is the session's list; `outbox` is what goes to the client."""

    def __init__(
        self, session_id: str, roster: Roster, limits: Limits, tuning: Tuning, effects: list[do.Effect]
    ) -> None:
        self._id, self._roster, self._limits, self._tuning = session_id, roster, limits, tuning
        self._effects = effects
        self._player = Player()
        self.outbox = Outbox()

    def warn(self, code: str, message: str) -> None:
        """Tell the client."""
        self.outbox.push_urgent(msg.Warned(code, message))
        self._effects.append(do.CountWarning(code))

    # --- text in ---

    def give(self, utterance: Utterance, text: str | None, max_words: int, now: float) -> None:
        """Add text, or (None) speak all there is. Raises `TooLarge` over ``max_words`` spoken words."""
        pieces = utterance.flush() if text is None else utterance.append(text)
        for piece in pieces:
            for warning in filter(utterance.untold, piece.warnings):
                self.warn(warning.code, warning.message)
            if piece.words:
                utterance.words_at = now
        if len(utterance.timeline) > max_words:
            spoken = len(utterance.timeline)
            raise TooLarge("utterance_words", spoken, max_words)
        if utterance.phase is Phase.SPEAKING:
            self._push(utterance, now)

    def end_text(self, utterance: Utterance, max_words: int, now: float) -> None:
        """No more text for it."""
        self.give(utterance, None, max_words, now)
        utterance.text_ended = True
        if utterance.phase is Phase.SPEAKING:
            self._finish_words(utterance, now)

    def _finish_words(self, utterance: Utterance, now: float) -> None:
        utterance.marks.called(now)
        self._effects.append(do.FinishWords(utterance.index))

    def mark_text(self, now: float) -> None:
        """The first packet's clock runs from here, if there is something to speak and nothing before it."""
        utterance = self._roster.current
        if utterance and utterance.has_words and utterance.marks.text_at is None and self._room_at() <= now:
            utterance.marks.text_at = now

    def advance(self, now: float) -> None:
        """Begin what can be begun."""
        self.mark_text(now)
        while (utterance := self._roster.current) is not None:
            if not utterance.announced:
                utterance.announced = True
                self.outbox.push(msg.UtteranceStarted(utterance.name, utterance.index))
            if utterance.phase is not Phase.WAITING:
                return
            if utterance.has_words:
                if self._room_at() <= now:
                    self._open(utterance, now)
                return
            if not utterance.text_ended:
                return
            self._finish(utterance)
            self.mark_text(now)

    def _open(self, utterance: Utterance, now: float) -> None:
        utterance.enter(Phase.SPEAKING)
        utterance.progress_at = now
        first = int(self._tuning.first_lead_ms / 1000 * utterance.model_rate)
        utterance.granted, utterance.granted_at = max(first, self._lead_until(utterance, now)), now
        request = utterance.request(f"{self._id}/{utterance.index}")
        self._effects.append(do.OpenStream(utterance.index, request, utterance.config.format))
        self._effects.append(do.Grant(utterance.index, utterance.granted))
        self._push(utterance, now)
        if utterance.text_ended:
            self._finish_words(utterance, now)

    def _push(self, utterance: Utterance, now: float) -> None:
        for piece in utterance.take_pending():
            utterance.progress_at = now
            utterance.marks.called(now)
            self._effects.append(do.PushWords(utterance.index, piece.words, piece.end_segment))

    # --- speech in ---

    def take(self, utterance: Utterance, event: do.StreamEvent, now: float) -> None:
        """Take what the engine or the encoder gave. Raises `GenerationFailed`, `SlowConsumer`."""
        utterance.progress_at = now
        marks = utterance.marks
        match event:
            case do.StreamOpened():
                marks.opened_at = now
            case SpeechBegun(calls):
                marks.begun(calls, now)
            case do.EncoderReady(pre_skip):
                utterance.pre_skip = pre_skip
            case do.PcmMade(start, samples):
                marks.pcm_at = now if marks.pcm_at is None else marks.pcm_at
                utterance.pcm(start, samples)
            case do.Encoded(packets):
                for packet, audio_ms in utterance.packets(packets):
                    marks.encoded_at = now if marks.encoded_at is None else marks.encoded_at
                    self.outbox.push(packet, audio_ms)
                if self.outbox.audio_ms > self._limits.send_buffer_ms:
                    limit = self._limits.send_buffer_ms
                    raise SlowConsumer(f"more than {limit:g} ms of audio wait for the client to read")
            case WordStarted(index, start):
                self._tell(utterance, utterance.word_started(index, start))
            case SegmentDone():
                self._segment_done(utterance, event)
            case do.SpeechEnded(done, length):
                if not utterance.text_ended:
                    raise GenerationFailed("the speech ended before its text did")
                if not done.samples:
                    raise GenerationFailed("no audio was made of a text with words")
                self._tell(utterance, utterance.segment_done(0, 0, done.samples))
                utterance.speech_done(done, length)
                self._finish(utterance)

    def _segment_done(self, utterance: Utterance, event: SegmentDone) -> None:
        self._tell(utterance, utterance.segment_done(event.spoken, event.remade, event.end))
        if event.spoken != event.expected:
            self.warn(
                "words_missing",
                f"utterance {utterance.name!r}: {event.spoken} of {event.expected} words were spoken",
            )

    def _tell(self, utterance: Utterance, words: msg.WordsSpoken | None) -> None:
        if words is not None and utterance.config.words:
            self.outbox.push(words)

    def _finish(self, utterance: Utterance) -> None:
        utterance.enter(Phase.DRAINING)
        self.outbox.push(msg.AudioEnded(utterance.index, utterance.frames, utterance.length))
        self.outbox.push(utterance.done_event())

    # --- out to the client ---

    def next_event(self, now: float) -> msg.Event | None:
        """What is to be sent now. Raises `BudgetMissed` if it is a first packet that comes too late."""
        event = self.outbox.pop()
        match event:
            case msg.UtteranceDone(index=index) if (utterance := self._roster.get(index)) is not None:
                return self._done(utterance, now)
            case msg.AudioReady(index, 0) if (utterance := self._roster.get(index)) is not None:
                if self._budget_at(utterance) <= now:
                    self._miss_budget(utterance)
        return event

    def _done(self, utterance: Utterance, now: float) -> msg.UtteranceDone:
        event = utterance.done_event()  # anew: only now everything about its first packet is known
        utterance.enter(Phase.DONE)
        self._roster.remove(utterance)
        self._effects.append(do.ReportUtterance(utterance.report(event.reason, now)))
        return event

    def sent(self, event: msg.AudioReady, now: float) -> None:
        """The transport has this packet."""
        utterance = self._roster.get(event.index)
        if utterance is None:
            return
        gap_s = self._player.sent(utterance.track, utterance.sent_until(event.packet), now)
        # Silence before the client's words came is the client's own.
        utterance.gap_s += max(0.0, min(gap_s, now - utterance.words_at))
        if event.sequence == 0:
            utterance.marks.sent_at = now
        self._grant(utterance, now)

    def played(self, index: int, samples: int) -> None:
        """The transport knows that ``samples`` of the utterance were heard."""
        utterance = self._roster.get(index)
        if utterance is not None:
            utterance.track.reported = max(samples, utterance.track.reported or 0)

    # --- the end of utterances ---

    def cancel(
        self, doomed: Sequence[Utterance], played_ms: float | None, *, everything: bool, now: float
    ) -> None:
        """Stop these. ``played_ms`` is about the first of them that can have been heard."""
        # The listener may still hear an utterance that is already done: then none of these was heard.
        live_s = sum(utterance.track.unplayed_s(now) for utterance in self._roster)
        if everything and played_ms is not None and self._player.remaining_s(now) > live_s + _STILL_HEARD_S:
            played_ms = 0.0
        for utterance in doomed:
            self._cancel_one(utterance, played_ms, now)
            played_ms = None if played_ms is None else 0.0
        if everything:
            self._player.stopped(now)

    def _cancel_one(self, utterance: Utterance, played_ms: float | None, now: float) -> None:
        track = utterance.track
        clock: msg.HeardClock = "sent" if track.reported is None else "transport"
        heard = track.played(now)
        if played_ms is not None:
            clock, heard = "client", min(track.sent, int(played_ms * track.rate / 1000))
        unstarted = self.outbox.drop(utterance.index) or not utterance.announced
        report = utterance.report("cancelled", now)
        self._player.dropped(track.unplayed_s(now))
        self._close(utterance, Phase.CANCELLED)
        if unstarted:
            self.outbox.push_urgent(msg.UtteranceStarted(utterance.name, utterance.index))
        self.outbox.push_urgent(utterance.cancelled_event(heard, clock))
        self._effects.append(do.ReportUtterance(report))

    def abandon(self, outcome: Outcome, code: ErrorCode | None, now: float) -> None:
        """Everything ends here, without a terminal of its own."""
        for utterance in self._roster:
            report = utterance.report(outcome, now, code)
            self._close(utterance, Phase.FAILED)
            self._effects.append(do.ReportUtterance(report))

    def _close(self, utterance: Utterance, phase: Phase) -> None:
        if utterance.phase is Phase.SPEAKING:
            self._effects.append(do.CloseStream(utterance.index))
        utterance.enter(phase)
        self._roster.remove(utterance)

    # --- time ---

    def timers(self, now: float) -> Iterator[Timer]:
        """When something is due, and what. An action may raise `BudgetMissed` or `GenerationFailed`."""
        utterance = self._roster.current
        if utterance is not None:
            if utterance.phase is Phase.WAITING and utterance.has_words and self._room_at() > now:
                yield self._room_at(), _nothing
            if utterance.phase is Phase.SPEAKING:
                if utterance.owed and utterance.made <= utterance.granted:
                    yield utterance.progress_at + self._tuning.stall_s, self._stalled
                if utterance.track.sent:
                    step_s = self._tuning.lead_step_ms / 1000
                    yield utterance.granted_at + step_s, partial(self._grant, utterance, now)
        for live in self._roster:
            yield self._budget_at(live), partial(self._miss_budget, live)

    def _stalled(self) -> None:
        raise GenerationFailed(f"the engine gave nothing for {self._tuning.stall_s:g} s")

    def _room_at(self) -> float:
        """When the listener has so little left that the next utterance may be begun.

        That is early: its first words should be there for whoever asks. Its lead is short then.
        """
        return self._player.ends_at - 1.5 * self._tuning.lead_ms / 1000

    def _grant(self, utterance: Utterance, now: float) -> None:
        """Let generation go on as far as the lead allows."""
        until = self._lead_until(utterance, now)
        utterance.granted_at = now
        step = self._tuning.lead_step_ms * utterance.model_rate / 1000
        if utterance.phase is Phase.SPEAKING and until - utterance.granted >= step:
            utterance.granted, utterance.progress_at = until, now
            self._effects.append(do.Grant(utterance.index, until))

    def _lead_until(self, utterance: Utterance, now: float) -> int:
        """How far audio may be made: the lead over what is heard, less what is heard before."""
        track = utterance.track
        before_s = max(0.0, self._player.remaining_s(now) - track.unplayed_s(now))
        ahead_s = self._tuning.lead_ms / 1000 - before_s
        return int((track.played(now) / track.rate + ahead_s) * utterance.model_rate)

    def _budget_at(self, utterance: Utterance) -> float:
        """When its first packet will be late; infinitely far when it cannot be."""
        marks, budget = utterance.marks, utterance.config.ttfp_budget_ms
        if budget is None or marks.text_at is None or marks.sent_at is not None or utterance.budget_missed:
            return float("inf")
        if not (marks.has_begun or utterance.owed):
            return float("inf")  # it is the client's next words that are waited for
        return marks.text_at + budget / 1000

    def _miss_budget(self, utterance: Utterance) -> None:
        utterance.budget_missed = True
        budget_ms = utterance.config.ttfp_budget_ms or 0.0
        if utterance.config.on_budget_miss == "fail":
            raise BudgetMissed(budget_ms)
        message = f"utterance {utterance.name!r}: the first packet was not out within {budget_ms:g} ms"
        self.warn("ttfp_budget_missed", message)
