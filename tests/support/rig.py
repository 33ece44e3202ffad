"""A session without a driver: a test plays engine, encoder, transport and clock by hand."""

from dataclasses import replace

from engine.contract import (
    ModelInfo,
    PrefixUsage,
    SegmentDone,
    SpeechDone,
    SpokenWord,
    Timings,
    Usage,
    WordStarted,
)
from engine.fake import fake_info
from realtime import effects as do
from realtime import messages as msg
from realtime.audio.formats import FormatRequest
from realtime.audio.packets import AudioPacket
from realtime.limits import Limits, Tuning
from realtime.options import SessionDefaults, SessionOptions
from realtime.reports import UtteranceReport
from realtime.session import Session, State

RATE = 24_000
FRAME = 480
PCM = FormatRequest(encoding="pcm_s16le", sample_rate=RATE)


class Stream:
    """The engine's side of one utterance: 100 ms a word, one packet per 20 ms."""

    def __init__(self, request_id: str, lead_samples: int) -> None:
        self.request_id = request_id
        self.words: list[SpokenWord] = []
        self.ends: list[int] = []
        self.finished = False
        self.granted = lead_samples
        self.closed = False
        self.made = self.spoken = 0


class Rig:
    """One session at 24 kHz PCM; `now` is a plain attribute."""

    def __init__(
        self,
        limits: Limits | None = None,
        tuning: Tuning | None = None,
        info: ModelInfo | None = None,
        defaults: SessionDefaults | None = None,
    ) -> None:
        self.now = 100.0
        self.info = info or fake_info()
        self.session = Session(
            "s_test",
            lambda: self.info,
            limits=limits or Limits(send_buffer_ms=600_000),
            tuning=tuning or Tuning(),
            defaults=defaults or SessionDefaults(),
            now=self.now,
        )
        self.streams: dict[int, Stream] = {}
        self.effects: list[do.Effect] = []
        self.events: list[msg.Event] = []

    # --- the driver's part ---

    def perform(self) -> None:
        while effects := self.session.take_effects():
            self.effects += effects
            for effect in effects:
                match effect:
                    case do.OpenStream(index, request, _):
                        self.streams[index] = Stream(request.request_id, request.lead_samples or 0)
                        self.session.heard_from(index, do.StreamOpened(), self.now)
                        self.session.heard_from(index, do.EncoderReady(0), self.now)
                    case do.PushWords(index, words, end_segment):
                        stream = self.streams[index]
                        assert not stream.finished
                        assert not stream.closed
                        stream.words += words
                        if end_segment and len(stream.words) > (stream.ends or [0])[-1]:
                            stream.ends.append(len(stream.words))
                    case do.FinishWords(index):
                        assert not self.streams[index].finished
                        self.streams[index].finished = True
                    case do.Grant(index, until):
                        assert until >= self.streams[index].granted
                        self.streams[index].granted = until
                    case do.CloseStream(index):
                        assert not self.streams[index].closed
                        self.streams[index].closed = True
                    case _:
                        pass

    def say(self, *commands: msg.Command) -> None:
        for command in commands:
            self.session.receive(command, self.now)
            self.perform()

    def tick(self, seconds: float) -> None:
        """Let time pass, doing what is due when it is due."""
        end = self.now + seconds
        while (when := self.session.next_deadline(self.now)) is not None and when <= end:
            self.now = max(self.now, when)
            self.session.tick(self.now)
            self.perform()
            after = self.session.next_deadline(self.now)
            assert after is None or after > self.now, "a deadline that stays would spin"
        self.now = end

    def start(self, **options: object) -> "Rig":
        """Start and be ready; the ready event is taken."""
        chosen = replace(SessionOptions(format=PCM), **options)  # type: ignore[arg-type]
        self.say(msg.StartSession(chosen))
        self.ready()
        self.take()
        self.events.clear()
        return self

    def ready(self) -> None:
        self.session.prewarmed(PrefixUsage(96, 0), 0, self.now)
        self.perform()

    def hear(self, index: int, event: do.StreamEvent) -> None:
        self.session.heard_from(index, event, self.now)
        self.perform()

    def word(self, index: int) -> None:
        """The engine speaks the next word: 100 ms, in one chunk."""
        stream = self.streams[index]
        self.hear(index, WordStarted(stream.spoken, stream.made))
        stream.spoken += 1
        self.hear(index, do.PcmMade(stream.made, 5 * FRAME))
        packets = [AudioPacket(b"\x01" * 960, stream.made + i * FRAME, FRAME) for i in range(5)]
        stream.made += 5 * FRAME
        self.hear(index, do.Encoded(packets))
        if stream.spoken in stream.ends or (stream.finished and stream.spoken == len(stream.words)):
            first = max((end for end in stream.ends if end < stream.spoken), default=0)
            count = stream.spoken - first
            self.hear(index, SegmentDone(count, count, stream.made, 0))

    def finish(self, index: int) -> None:
        """The engine speaks all the rest of an ended utterance."""
        stream = self.streams[index]
        while stream.spoken < len(stream.words) and not stream.closed:
            self.word(index)
        done = SpeechDone(stream.made, Usage(96, 96, stream.made // FRAME), Timings(1, 2, 3, 4))
        self.hear(index, do.SpeechEnded(done, stream.made))

    # --- the transport's part ---

    def send_one(self) -> msg.Event | None:
        event = self.session.next_event(self.now)
        self.perform()
        if event is not None:
            self.events.append(event)
            if not isinstance(event, msg.CloseConnection):
                self.session.sent(event, self.now)
                self.perform()
        return event

    def take(self, limit: int = 100_000) -> list[msg.Event]:
        """Send what is queued; what was sent in this call."""
        before = len(self.events)
        while len(self.events) - before < limit and self.send_one() is not None:
            pass
        return self.events[before:]

    # --- what a test asks ---

    @property
    def closed(self) -> bool:
        return self.session.state is State.CLOSED

    def failure(self) -> msg.Failed:
        """The error the session ended with; nothing but the close follows it."""
        self.take()
        *_, failed, close = self.events
        assert isinstance(failed, msg.Failed)
        assert isinstance(close, msg.CloseConnection)
        assert close.code == failed.fault.close
        return failed


TEXT = "One two, three four five. Six seven eight nine ten."


def spoken(words: int, rig: Rig | None = None, text: str = TEXT) -> Rig:
    """A session with one ended utterance, ``words`` words (100 ms each) made and sent."""
    rig = rig or Rig().start()
    rig.say(msg.AppendText(text), msg.End())
    for _ in range(words):
        rig.word(0)
    rig.take()
    return rig


def reports(rig: Rig) -> list[UtteranceReport]:
    """What was measured of utterances that are over."""
    return [effect.report for effect in rig.effects if isinstance(effect, do.ReportUtterance)]


def kinds(events: list[msg.Event]) -> list[str]:
    """Names of events, audio left out."""
    return [type(event).__name__ for event in events if not isinstance(event, msg.AudioReady)]


def of(events: list[msg.Event], kind: type) -> list[msg.Event]:
    """The events of one type."""
    return [event for event in events if isinstance(event, kind)]


class Contract:
    """Checks that events keep the end-of-stream contract, one by one."""

    def __init__(self) -> None:
        self.started: dict[int, int] = {}
        self.positions: dict[int, int] = {}
        self.ended: set[int] = set()
        self.terminals: dict[int, str] = {}
        self.over = False

    def check(self, event: msg.Event) -> None:
        assert not self.over, "nothing follows the close"
        match event:
            case msg.UtteranceStarted(_, index):
                assert index not in self.started
                self.started[index] = self.positions[index] = 0
            case msg.AudioReady(index, sequence, packet):
                self._running(index)
                assert index not in self.ended
                assert (sequence, packet.pts) == (self.started[index], self.positions[index])
                self.started[index] += 1
                self.positions[index] += packet.samples
            case msg.AudioEnded(index, sequence, samples):
                self._running(index)
                assert (sequence, samples) == (self.started[index], self.positions[index])
                assert index not in self.ended
                self.ended.add(index)
            case msg.WordsSpoken(_, index, _):
                self._running(index)
                assert index not in self.ended
            case msg.UtteranceDone(index=index):
                self._running(index)
                assert index in self.ended
                self.terminals[index] = "done"
            case msg.UtteranceCancelled(index=index):
                self._running(index)
                self.terminals[index] = "cancelled"
            case msg.Failed():
                for index in self.started:
                    self.terminals.setdefault(index, "failed")
            case msg.CloseConnection():
                self.over = True

    def _running(self, index: int) -> None:
        assert index in self.started
        assert index not in self.terminals, "nothing follows a terminal"
