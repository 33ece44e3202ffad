"""One utterance being spoken by a codec LM and its vocoder.

A task lets the LM fill the outbox; the consumer's own pull empties it through the vocoder. The granted lead
bounds what lies between them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from engine.contract import (
    EngineEvent,
    PcmChunk,
    Samples,
    SegmentDone,
    SpeechBegun,
    SpeechDone,
    SpeechRequest,
    SpokenWord,
    Timings,
    Usage,
    WordStarted,
)
from engine.errors import EngineError, GenerationFailed, VocoderFailed
from engine.generation import Generation, GenerationPolicy
from engine.lm import SpeechLM
from engine.models.base import SpeechModel, VoicePrompt
from engine.outbox import Batch, Outbox
from engine.vocoder import STEP_CODES, Vocoder, step_size

_log = logging.getLogger(__name__)

_FRAMES_AHEAD_PER_CODE = 4
"""A step may take as many codes as a quarter of the frames that the listener still has to hear."""
_CROWD, _CROWD_CODES, _FEW_CODES = 16, 4, 2
"""Once speaking, a step is worth at least two codes, or four when many streams share the vocoder."""


@dataclass(frozen=True, slots=True)
class StreamPolicy:
    """How an utterance is handed out.

    Attributes:
        generation: how it is generated.
        check_lead_s: with this much audio ahead of its listener a new segment is held back until its words
            are known to be complete.
        patience_s: an LM that is silent for this long is not waited for: what is there is spoken.
        vocode_timeout_s: longest wait for a vocoder step.
        close_timeout_s: longest wait of `aclose` for the LM to let go.
    """

    generation: GenerationPolicy = field(default_factory=GenerationPolicy)
    check_lead_s: float = 1.0
    patience_s: float = 0.04
    vocode_timeout_s: float = 30.0
    close_timeout_s: float = 5.0


@dataclass(frozen=True)
class Parts:
    """What the streams of one engine share. ``clock`` gives monotonic seconds."""

    model: SpeechModel
    lm: SpeechLM
    vocoder: Vocoder[Any]
    policy: StreamPolicy
    clock: Callable[[], float]


class UtteranceStream:
    """A `SpeechStream`. ``on_end`` is called once, when it holds nothing any more."""

    def __init__(
        self, parts: Parts, request: SpeechRequest, voice: VoicePrompt, seed: int, on_end: Callable[[], None]
    ) -> None:
        self._parts, self._request, self._on_end = parts, request, on_end
        self._frame, self._rate = parts.model.info.frame_samples, parts.model.info.sample_rate
        self._changed = asyncio.Event()
        self._outbox = Outbox()
        self._generation = Generation(
            parts.model,
            parts.lm,
            parts.policy.generation,
            request,
            voice.prefix,
            seed,
            self._outbox,
            self._changed,
            parts.clock,
            self._lead_s,
        )
        self._ready: deque[EngineEvent] = deque()  # bounded: filled by one step, when it is empty
        self._step: tuple[Batch, asyncio.Future[Samples] | None] | None = None
        self._told_begun = False
        self._vocoded = 0
        self._first_pcm_s: float | None = None
        self._failure: EngineError | None = None
        self._closed = False
        parts.vocoder.open(request.request_id, voice.speaker)
        self._task = asyncio.create_task(self._generation.run(), name=f"speech-{request.request_id}")
        self._task.add_done_callback(self._generated)

    def push(self, words: Sequence[SpokenWord], *, end_segment: bool = False) -> None:
        if not self._closed:
            self._generation.push(words, end_segment=end_segment)

    def finish(self) -> None:
        self._generation.finish()

    def grant(self, until: int) -> None:
        self._generation.grant(until)

    def fail(self, error: EngineError) -> None:
        """End it from the engine's side: the next step of its iteration raises ``error``."""
        self._failure = error
        self._task.cancel()
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[EngineEvent]:
        return self

    async def __anext__(self) -> EngineEvent:
        over = True
        try:
            event = await self._next()
            over = isinstance(event, SpeechDone)
        except asyncio.CancelledError:
            over = False  # only this pull was cancelled; the next one goes on
            raise
        finally:
            if over:
                self._release()
        if event is None:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        self._release()
        if not self._task.done():
            await asyncio.wait({self._task}, timeout=self._parts.policy.close_timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _release(self) -> None:
        """Free everything that is held for this utterance, on whichever path it ends; idempotent."""
        if self._closed:
            return
        self._closed = True
        self._task.cancel()  # closes the LM's iterator, which aborts its request
        self._parts.vocoder.release(self._request.request_id)
        self._changed.set()
        self._on_end()

    def _generated(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            task.exception()  # marks it as seen: after a close nobody else asks
        self._changed.set()

    async def _next(self) -> EngineEvent | None:
        while not self._closed:
            self._raise_failure()
            calls = self._generation.marks.begun_after
            if calls is not None and not self._told_begun:
                self._told_begun = True
                return SpeechBegun(calls)
            if self._ready:
                return self._ready.popleft()
            if self._step is None:
                self._step = self._begin_step()
            if self._step is not None:
                await self._finish_step(*self._step)
            elif self._task.done() and not len(self._outbox):
                return self._done()
            else:
                await self._wait()
        return None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._task.done() and not self._task.cancelled() and (error := self._task.exception()):
            if isinstance(error, EngineError):
                raise error
            _log.error("generation broke: %s", type(error).__name__, exc_info=error)
            raise GenerationFailed(f"generation broke: {type(error).__name__}") from error

    def _done(self) -> SpeechDone:
        usage = self._generation.marks.usage or Usage()
        return SpeechDone(self._vocoded, replace(usage, codec_tokens=self._outbox.codes_put), self._timings())

    def _begin_step(self) -> tuple[Batch, asyncio.Future[Samples] | None] | None:
        """The next vocoder step, if enough is there or nothing more would come."""
        if self._held_s() > 0:
            return None
        codes, at_end = self._outbox.ready(STEP_CODES[0])
        if not (at_end or (codes and (codes >= self._target() or self._nothing_comes()))):
            return None
        size = step_size(codes)
        batch = self._outbox.take(size, to_end=at_end and size == codes)
        if not batch.codes:
            return batch, None
        return batch, self._parts.vocoder.decode(self._request.request_id, batch.codes)

    async def _finish_step(self, batch: Batch, future: "asyncio.Future[Samples] | None") -> None:
        start = self._vocoded
        if future is not None:
            # `wait` leaves the step alone when this pull is cancelled: the next one finds it.
            await asyncio.wait({future}, timeout=self._parts.policy.vocode_timeout_s)
            if self._closed:
                return
            if not future.done():
                raise VocoderFailed("the vocoder did not answer in time")
        self._step = None
        self._ready.extend(WordStarted(index, start + at * self._frame) for at, index in batch.words)
        if future is not None:
            samples = future.result()
            if self._first_pcm_s is None:
                self._first_pcm_s = self._parts.clock()
            self._vocoded += len(samples)
            self._ready.append(PcmChunk(samples, start))
        if (end := batch.end) is not None:
            self._ready.append(SegmentDone(end.expected, end.spoken, self._vocoded, end.remade))

    def _lead_s(self) -> float:
        """Audio handed out minus time since the first of it: what a listener surely still has."""
        if self._first_pcm_s is None:
            return 0.0
        return self._vocoded / self._rate - (self._parts.clock() - self._first_pcm_s)

    def _target(self) -> int:
        """Codes to wait for: one at first, more as the listener has more to hear or others wait."""
        frames = int(self._lead_s() * self._rate / self._frame)
        least = _CROWD_CODES if self._parts.vocoder.open_streams > _CROWD else _FEW_CODES
        ramp = 1 + self._vocoded // self._frame // 2
        return max(min(least, ramp), min(STEP_CODES[0], frames // _FRAMES_AHEAD_PER_CODE))

    def _nothing_comes(self) -> bool:
        silent_s = self._parts.clock() - self._generation.last_token_s
        return self._generation.idle or silent_s >= self._parts.policy.patience_s

    def _held_s(self) -> float:
        """How long the next segment may still be held back for its check; not positive: not at all."""
        if not self._parts.policy.generation.remakes or not self._outbox.waits_for_check():
            return 0.0
        return self._lead_s() - self._parts.policy.check_lead_s

    async def _wait(self) -> None:
        """Until something has changed, or it is time to go on with what is there."""
        self._changed.clear()
        timeout: float | None = None
        if (held := self._held_s()) > 0:
            timeout = held
        elif len(self._outbox):
            timeout = self._parts.policy.patience_s
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return

    def _timings(self) -> Timings:
        marks, pcm_s = self._generation.marks, self._first_pcm_s
        if marks.first_token_s is None or marks.first_code_s is None or pcm_s is None:
            return Timings(marks.queue_ms, marks.prefill_ms)
        decode_ms = (marks.first_code_s - marks.first_token_s) * 1000
        return Timings(marks.queue_ms, marks.prefill_ms, decode_ms, (pcm_s - marks.first_code_s) * 1000)
