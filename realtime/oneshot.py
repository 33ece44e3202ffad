"""One utterance whose whole text is known, spoken into one container: what HTTP asks for."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from engine.contract import (
    PcmChunk,
    SegmentDone,
    SpeechDone,
    SpeechRequest,
    SpeechStream,
    Timings,
    Usage,
)
from realtime.audio.container import make_container
from realtime.errors import NOTHING_TO_SPEAK, ErrorCode, InternalFailure, InvalidRequest
from realtime.latency import TtfpMarks
from realtime.options import SessionConfig
from realtime.playback import Player, Track
from realtime.registry import SessionHub
from realtime.reports import Outcome, UtteranceReport
from realtime.text.front_end import SpokenPiece, TextFrontEnd

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SpeechJob:
    """What to speak and into which container (``mp3``, ``opus``, ``aac``, ``flac``, ``wav``, ``pcm``)."""

    text: str
    container: str
    config: SessionConfig


class OneShot:
    """Speaks one `SpeechJob`; iterate `bodies` once, and then ask for the `report`."""

    def __init__(self, name: str, job: SpeechJob, hub: SessionHub) -> None:
        self.name = name
        self.usage = Usage()
        self._job = job
        self._hub = hub
        self._rate = hub.engine.info.sample_rate
        self._lead = int(hub.tuning.lead_ms * self._rate / 1000)
        self._container = make_container(job.container, self._rate)
        self._marks = TtfpMarks()
        self._timings = Timings()
        self._track = Track(self._rate)
        self._player = Player()
        self._gap_s = 0.0
        self._warnings: list[str] = []
        self._made = self._words = self._spoken = self._remade = 0

    @property
    def content_type(self) -> str:
        """The container's."""
        return self._container.content_type

    async def bodies(self) -> AsyncGenerator[bytes]:
        """The container's bytes, as early as there are any. Closing it ends the utterance in the engine.

        Raises:
            InvalidRequest: nothing in the text can be spoken, or more words than an utterance may have.
            EngineError, InternalFailure: it broke; what was given so far is not the whole utterance.
        """
        self._marks.text_at = self._hub.clock.now()
        pieces = await self._off_loop(self._spoken_form)
        for code in self._warnings:
            self._hub.observer.warned(self.name, code)
        config = self._job.config
        request = SpeechRequest(self.name, config.voice, config.sampling, config.speed)
        async with self._hub.engine.open(request) as stream:
            for piece in pieces:
                stream.push(piece.words, end_segment=piece.end_segment)
            stream.finish()
            self._marks.opened_at = self._hub.clock.now()
            async for body in self._contained(stream):
                yield body

    def report(self, outcome: Outcome, error: ErrorCode | None) -> UtteranceReport:
        """Figures of the utterance, once it has ended with ``outcome``."""
        sent_ms, made_ms = self._track.sent * 1000 / self._rate, self._made * 1000 / self._rate
        budget, ttfp = self._job.config.ttfp_budget_ms, self._marks.ttfp_ms
        return UtteranceReport(
            utterance=self.name,
            index=0,
            outcome=outcome,
            error=error,
            ttfp_ms=ttfp,
            ttfp_parts=self._marks.parts(self._timings),
            budget_ms=budget,
            budget_met=None if budget is None or ttfp is None else ttfp <= budget,
            audio_ms=made_ms,
            sent_ms=sent_ms,
            gap_ms=self._gap_s * 1000,
            wasted_ms=0.0 if outcome == "complete" else made_ms - sent_ms,
            text_chars=len(self._job.text),
            words=self._words,
            words_spoken=self._spoken,
            remade=self._remade,
            usage=self.usage,
        )

    def _spoken_form(self) -> list[SpokenPiece]:
        config, info = self._job.config, self._hub.engine.info
        front = TextFrontEnd(
            config.segment_mode,
            streaming=info.streams_text,
            min_chars=config.min_chars,
            language=config.language,
        )
        pieces = [*front.push(self._job.text), *front.flush()]
        self._words = sum(len(piece.words) for piece in pieces)
        self._warnings = [warning.code for piece in pieces for warning in piece.warnings]
        if not self._words:
            raise InvalidRequest(NOTHING_TO_SPEAK, "input")
        if self._words > info.max_utterance_words:
            most = info.max_utterance_words
            raise InvalidRequest(f"it has {self._words} spoken words; at most {most} are possible", "input")
        return pieces

    async def _contained(self, stream: SpeechStream) -> AsyncIterator[bytes]:
        done: SpeechDone | None = None
        async for event in stream:
            match event:
                case PcmChunk(samples, start):
                    if start != self._made:
                        raise InternalFailure(f"audio goes on at sample {start} instead of {self._made}")
                    now = self._hub.clock.now()
                    self._marks.pcm_at = self._marks.pcm_at or now
                    self._made += len(samples)
                    if body := await self._off_loop(partial(self._container.write, samples)):
                        self._marks.encoded_at = self._marks.encoded_at or self._hub.clock.now()
                        yield body
                        self._handed_over()
                    # The socket sets the pace: a client that does not read holds the generation back.
                    stream.grant(self._made + self._lead)
                case SegmentDone(expected=expected, spoken=spoken, remade=remade):
                    self._spoken += spoken
                    self._remade += remade
                    if spoken != expected:
                        self._hub.observer.warned(self.name, "words_incomplete")
                case SpeechDone() as done:
                    self.usage, self._timings = done.usage, done.timings
        if done is None:
            raise InternalFailure("the speech ended before it was complete")
        if not self._made == done.samples > 0:
            raise InternalFailure(f"{self._made} samples came of {done.samples}")
        yield await self._off_loop(self._container.finish)
        self._handed_over()

    def _handed_over(self) -> None:
        """The consumer is back, so the transport has taken everything given so far."""
        now = self._hub.clock.now()
        self._marks.sent_at = self._marks.sent_at or now
        self._gap_s += self._player.sent(self._track, self._made, now)

    async def _off_loop(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._hub.encoders, work)
