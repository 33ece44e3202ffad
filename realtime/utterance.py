r"""One utterance of a session: its text, its place in its life, its audio accounting. Pure.

    WAITING ----> SPEAKING ----> DRAINING ----> DONE
       |  \__________|____________^  |
       +-----------> CANCELLED, FAILED (from each of the three)

WAITING: no words yet, or another utterance is spoken first. SPEAKING: the engine has it. DRAINING: all of it
is made and on its way. DONE: its `utterance.done` was given to the transport.
"""

import logging
import zlib
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from types import MappingProxyType
from typing import Literal

from engine.contract import SpeechDone, SpeechRequest, Timings, Usage
from engine.errors import GenerationFailed
from realtime.audio.packets import AudioPacket
from realtime.errors import ErrorCode
from realtime.latency import TtfpMarks
from realtime.messages import (
    AudioReady,
    HeardClock,
    UtteranceCancelled,
    UtteranceDone,
    Word,
    WordsSpoken,
)
from realtime.options import SessionConfig
from realtime.playback import Track
from realtime.reports import Outcome, UtteranceReport
from realtime.text.front_end import SpokenPiece, TextFrontEnd, TextWarning
from realtime.words import Spoken, WordTimeline

logger = logging.getLogger(__name__)


class Phase(Enum):
    """Where an utterance is in its life."""

    WAITING = auto()
    SPEAKING = auto()
    DRAINING = auto()
    DONE = auto()
    CANCELLED = auto()
    FAILED = auto()


PHASES: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        Phase.WAITING: frozenset({Phase.SPEAKING, Phase.DRAINING, Phase.CANCELLED, Phase.FAILED}),
        Phase.SPEAKING: frozenset({Phase.DRAINING, Phase.CANCELLED, Phase.FAILED}),
        Phase.DRAINING: frozenset({Phase.DONE, Phase.CANCELLED, Phase.FAILED}),
        Phase.DONE: frozenset(),
        Phase.CANCELLED: frozenset(),
        Phase.FAILED: frozenset(),
    }
)
"""Every transition there is."""


class Utterance:
    """State of one utterance; the session decides, this keeps count.

    ``made`` and word times are samples at ``model_rate``; everything about packets is at the format's rate.
    """

    def __init__(self, name: str, index: int, config: SessionConfig, model_rate: int, streams: bool) -> None:
        self.name, self.index, self.config = name, index, config
        self.text_ended = False
        self.announced = False
        """`utterance.start` was queued."""
        self.marks = TtfpMarks()
        self.budget_missed = False
        self.pre_skip = 0
        self.made = 0
        self.granted = 0
        self.granted_at = 0.0
        self.progress_at = 0.0
        """When the engine last gave something, or was last given something to do."""
        self.words_at = 0.0
        """When the client's text last gave words."""
        self.gap_s = 0.0
        """Silence the listener heard inside it though there were words to speak."""
        self.track = Track(config.format.sample_rate)
        self.timeline = WordTimeline()
        self._phase = Phase.WAITING
        self.model_rate = model_rate
        # In any other mode the model reads whole segments: then only the text decides what it says.
        streams = streams and config.segment_mode == "auto"
        self._front_end = TextFrontEnd(
            config.segment_mode, streaming=streams, min_chars=config.min_chars, language=config.language
        )
        self._pending: list[SpokenPiece] = []
        self._segment_ended = False
        self._told: set[TextWarning] = set()
        self._length = 0
        self._frames = self._crc32 = 0
        self._packets_end = 0
        self._words_spoken = self._remade = 0
        self._usage, self._timings = Usage(), Timings()
        self.complete = False
        """The engine said that it has spoken everything."""

    # --- life ---

    @property
    def phase(self) -> Phase:
        """Where it is."""
        return self._phase

    def enter(self, phase: Phase) -> None:
        """Move on. Raises ValueError for a transition that `PHASES` does not have."""
        if phase not in PHASES[self._phase]:
            raise ValueError(f"utterance {self.index} cannot go from {self._phase.name} to {phase.name}")
        logger.debug("utterance phase", extra={"index": self.index, "phase": phase.name})
        self._phase = phase

    # --- text ---

    @property
    def text(self) -> str:
        """Everything the client sent for it."""
        return self._front_end.text

    @property
    def has_words(self) -> bool:
        """There is something to speak."""
        return len(self.timeline) > 0

    @property
    def owed(self) -> bool:
        """The engine has all it needs to go on. False: it may be waiting for the client's next words."""
        return self.text_ended or (self._segment_ended and self.timeline.started < len(self.timeline))

    def append(self, delta: str) -> list[SpokenPiece]:
        """Add text; returns what became certain."""
        return self._keep(self._front_end.push(delta))

    def flush(self) -> list[SpokenPiece]:
        """All text so far is to be spoken; returns what was still open."""
        return self._keep(self._front_end.flush())

    def untold(self, warning: TextWarning) -> bool:
        """True the first time; the client is told each thing once in an utterance."""
        new = warning not in self._told
        self._told.add(warning)
        return new

    def take_pending(self) -> list[SpokenPiece]:
        """Pieces the engine does not have yet."""
        pieces, self._pending = self._pending, []
        return pieces

    def _keep(self, pieces: list[SpokenPiece]) -> list[SpokenPiece]:
        for piece in pieces:
            if piece.words or piece.end_segment:
                self.timeline.add(piece.words)
                self._pending.append(piece)
                self._segment_ended = piece.end_segment
        return pieces

    # --- speech ---

    def request(self, request_id: str) -> SpeechRequest:
        """What the engine is asked for, with the lead that is granted so far."""
        config = self.config
        return SpeechRequest(
            request_id,
            config.voice,
            sampling=config.sampling,
            speed=config.speed,
            lead_samples=self.granted,
        )

    def pcm(self, start: int, samples: int) -> None:
        """The engine made ``samples`` more. Raises `GenerationFailed` if they do not follow."""
        if start != self.made:
            raise GenerationFailed(f"audio continues at sample {start}, expected {self.made}")
        self.made += samples

    def packets(self, packets: Sequence[AudioPacket]) -> list[tuple[AudioReady, float]]:
        """Number new packets, each with its length in ms. Raises `GenerationFailed` on a gap."""
        events = []
        for packet in packets:
            if packet.pts != self._packets_end:
                raise GenerationFailed(f"packet begins at {packet.pts}, expected {self._packets_end}")
            events.append((AudioReady(self.index, self._frames, packet), packet.samples * 1000 / self._rate))
            self._packets_end += packet.samples
            self._crc32 = zlib.crc32(packet.payload, self._crc32)
            self._frames += 1
        return events

    def word_started(self, index: int, start: int) -> WordsSpoken | None:
        """A word begins; returns the one whose end is now known. Raises `GenerationFailed`."""
        try:
            return self._words_event(self.timeline.begin(index, start))
        except ValueError as error:
            raise GenerationFailed(str(error)) from error

    def segment_done(self, spoken: int, remade: int, end: int) -> WordsSpoken | None:
        """A segment is complete; returns its last word."""
        self._words_spoken += spoken
        self._remade += remade
        return self._words_event(self.timeline.end(end))

    def speech_done(self, done: SpeechDone, length: int) -> None:
        """All is made; ``length`` is the encoder's. Raises `GenerationFailed` when samples are missing."""
        if done.samples != self.made:
            raise GenerationFailed(f"the engine made {self.made} samples but says {done.samples}")
        if length + self.pre_skip != self._packets_end and length:
            raise GenerationFailed(f"{self._packets_end} samples were encoded of {length} + {self.pre_skip}")
        self._length, self._usage, self._timings, self.complete = length, done.usage, done.timings, True

    @property
    def frames(self) -> int:
        """Packets so far; the next sequence number."""
        return self._frames

    @property
    def length(self) -> int:
        """Length in samples at the format's rate; 0 until all is made."""
        return self._length

    def sent_until(self, packet: AudioPacket) -> int:
        """How far the audio reaches once ``packet`` was sent, in samples."""
        return max(0, packet.pts + packet.samples - self.pre_skip)

    # --- events ---

    def done_event(self) -> UtteranceDone:
        """Its `utterance.done`."""
        reason: Literal["complete", "empty"] = "complete" if self.has_words else "empty"
        return UtteranceDone(
            utterance=self.name,
            index=self.index,
            reason=reason,
            audio_ms=self._length * 1000 / self._rate,
            samples=self._length,
            frames=self._frames,
            crc32=self._crc32,
            ttfp_ms=self.marks.ttfp_ms,
            ttfp_parts=self.marks.parts(self._timings),
            budget_met=self._budget_met(),
            text_chars=len(self.text),
            usage=self._usage,
        )

    def cancelled_event(self, heard: int, clock: HeardClock) -> UtteranceCancelled:
        """Its `utterance.cancelled`, when ``heard`` samples were heard."""
        text = self.text
        if self.complete and heard >= self._length > 0:
            cut = len(text)
        else:
            cut = self.timeline.heard_chars(heard * self.model_rate // self._rate, text)
        return UtteranceCancelled(
            utterance=self.name,
            index=self.index,
            sent_ms=self.track.sent * 1000 / self._rate,
            heard_ms=heard * 1000 / self._rate,
            heard_text=text[:cut],
            unheard_text=text[cut:],
            clock=clock,
        )

    def report(self, outcome: Outcome, now: float, error: ErrorCode | None = None) -> UtteranceReport:
        """Its figures, at its end."""
        made_ms = self.made * 1000 / self.model_rate
        played_ms = self.track.played(now) * 1000 / self._rate
        unheard = 0.0 if outcome in ("complete", "empty") else made_ms - played_ms
        return UtteranceReport(
            utterance=self.name,
            index=self.index,
            outcome=outcome,
            error=error,
            ttfp_ms=self.marks.ttfp_ms,
            ttfp_parts=self.marks.parts(self._timings),
            budget_ms=self.config.ttfp_budget_ms,
            budget_met=self._budget_met(),
            audio_ms=made_ms,
            sent_ms=self.track.sent * 1000 / self._rate,
            gap_ms=self.gap_s * 1000,
            wasted_ms=max(0.0, unheard),
            text_chars=len(self.text),
            words=len(self.timeline),
            words_spoken=self._words_spoken,
            remade=self._remade,
            usage=self._usage,
        )

    @property
    def _rate(self) -> int:
        return self.config.format.sample_rate

    def _budget_met(self) -> bool | None:
        budget, ttfp = self.config.ttfp_budget_ms, self.marks.ttfp_ms
        if budget is None or (ttfp is None and not self.budget_missed):
            return None
        return not self.budget_missed and ttfp is not None and ttfp <= budget

    def _words_event(self, spoken: Spoken | None) -> WordsSpoken | None:
        if spoken is None:
            return None
        text = self.text[spoken.char_start : spoken.char_end]
        start_ms, end_ms = (at * 1000 / self.model_rate for at in (spoken.start, spoken.end))
        word = Word(text, start_ms, end_ms, spoken.char_start, spoken.char_end)
        return WordsSpoken(self.name, self.index, (word,))
