"""A speech engine without a model: each word is a sine tone. For tests of everything above the engine.

It keeps the whole contract (order of events, segments, granted lead, limits, idempotent close) and can be
told to be slow, to stall, to skip words or to fail at a given frame. It imports neither torch nor vllm, and
sleeps only through the running event loop, so it works under virtual time.
"""

import asyncio
import zlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

import numpy as np

from engine.contract import (
    EngineEvent,
    EngineHealth,
    ModelInfo,
    PcmChunk,
    PrefixUsage,
    Samples,
    Sampling,
    SegmentDone,
    SpeechBegun,
    SpeechDone,
    SpeechRequest,
    SpokenWord,
    Timings,
    Usage,
    VoiceInfo,
    WordStarted,
)
from engine.errors import EngineDead, EngineError, Overloaded, RequestRejected
from engine.intake import WordFeed, check_request, find_voice

SAMPLE_RATE = 24_000
FRAME_SAMPLES = 480
_PAUSE_FRAMES = 2
_AMPLITUDE = 0.25
_TONES_HZ = (200, 900)


def tone_hz(word: str, voice: str) -> int:
    """The pitch with which ``voice`` says ``word``: tests recognise a word, and whose it is, by it."""
    low, high = _TONES_HZ
    return low + zlib.crc32(f"{voice}/{word}".encode()) % (high - low)


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong with one stream, when it has made ``after_frames`` codec frames.

    ``error`` is raised; ``stall`` (without an error) makes no more audio until the stream is closed.
    ``skip_words`` leaves out that many words at each segment's end, which its `SegmentDone` then tells.
    """

    after_frames: int = 0
    error: EngineError | None = None
    stall: bool = False
    skip_words: int = 0


@dataclass(frozen=True, slots=True)
class FakeTiming:
    """Delays in seconds: of start-up, before a stream's first frame, and for each frame."""

    start_s: float = 0.0
    first_frame_s: float = 0.0
    frame_s: float = 0.0


@dataclass(frozen=True, slots=True)
class FakeSpeech:
    """How it speaks: 20 ms frames per word and per chunk, look-ahead in words, default lead in samples."""

    frames_per_word: int = 10
    look_ahead_words: int = 1
    chunk_frames: int = 4
    lead_samples: int = 4 * SAMPLE_RATE


def fake_info(
    voices: Sequence[str] = ("ada", "bob"), *, max_words: int = 2000, prefix: int = 96
) -> ModelInfo:
    """A `ModelInfo` with the given voices; the first is the default."""
    return ModelInfo(
        name="fake",
        sample_rate=SAMPLE_RATE,
        frame_samples=FRAME_SAMPLES,
        streams_text=True,
        default_voice=voices[0],
        voices={name: VoiceInfo(name, f"The fake voice {name}.", "en", prefix) for name in voices},
        defaults=Sampling(temperature=0.8, top_p=1.0, top_k=50, repetition_penalty=1.0),
        max_utterance_words=max_words,
        speed_range=(0.5, 2.0),
    )


@dataclass(eq=False)
class FakeEngine:
    """A scripted `SpeechEngine`.

    Attributes:
        faults: what goes wrong, by request id.
        next_faults: taken one each by streams without an entry in ``faults``, in the order of `open`.
        open_errors: raised one each by `open`, in order.
        requests: every request accepted so far, for assertions.
        live: streams neither done, failed nor closed; empty means that nothing leaked.
    """

    info: ModelInfo = field(default_factory=fake_info)
    speech: FakeSpeech = field(default_factory=FakeSpeech)
    timing: FakeTiming = field(default_factory=FakeTiming)
    max_streams: int = 64
    faults: Mapping[str, Fault] = field(default_factory=dict)
    next_faults: deque[Fault] = field(default_factory=deque)
    open_errors: deque[EngineError] = field(default_factory=deque)
    requests: list[SpeechRequest] = field(default_factory=list)
    live: dict[str, "FakeStream"] = field(default_factory=dict)
    _warm: set[tuple[str, str | None]] = field(default_factory=set)
    _state: Literal["starting", "ready", "restarting", "stopped"] = "starting"
    _restarts: int = 0

    async def start(self) -> None:
        await asyncio.sleep(self.timing.start_s)
        self._state = "ready"

    async def stop(self) -> None:
        self._end_all(EngineDead("the engine was stopped"))
        self._state = "stopped"

    def die(self) -> None:
        """The engine process is lost: every stream gets `EngineDead`, nothing opens until `revive`."""
        self._end_all(EngineDead("the engine process died"))
        self._warm.clear()
        self._state = "restarting"

    def revive(self) -> None:
        """The engine has restarted."""
        self._state = "ready"
        self._restarts += 1

    async def prewarm(self, voice: str, cache_salt: str | None = None) -> PrefixUsage:
        found = find_voice(self.info, voice)
        self._check_alive()
        cached = found.prefix_tokens if (voice, cache_salt) in self._warm else 0
        self._warm.add((voice, cache_salt))
        return PrefixUsage(found.prefix_tokens, cached)

    def open(self, request: SpeechRequest) -> "FakeStream":
        self._check_alive()
        if self.open_errors:
            raise self.open_errors.popleft()
        check_request(self.info, request)
        if request.request_id in self.live:
            raise RequestRejected("request_id", f"{request.request_id!r} is in use")
        if len(self.live) >= self.max_streams:
            raise Overloaded(f"all {self.max_streams} streams are in use", retry_after_s=1.0)
        fault = self.faults.get(request.request_id)
        if fault is None:
            fault = self.next_faults.popleft() if self.next_faults else Fault()
        key = (request.voice, request.cache_salt)
        prefix = self.info.voices[request.voice].prefix_tokens
        usage = Usage(prompt_tokens=prefix, cached_tokens=prefix if key in self._warm else 0)
        self._warm.add(key)
        stream = FakeStream(self, request, fault, usage)
        self.requests.append(request)
        self.live[request.request_id] = stream
        return stream

    def health(self) -> EngineHealth:
        return EngineHealth(self._state, running=len(self.live), waiting=0, restarts=self._restarts)

    def release(self, request_id: str) -> None:
        """Forget a stream; as often as one likes."""
        self.live.pop(request_id, None)

    def _check_alive(self) -> None:
        if self._state != "ready":
            raise EngineDead(f"the engine is {self._state}")

    def _end_all(self, error: EngineDead) -> None:
        for stream in list(self.live.values()):
            stream.fail(error)


class FakeStream:
    """One utterance of `FakeEngine`; a `SpeechStream`.

    The consumer's pull does all the work: what comes next is planned into a short queue of events and of
    samples not yet "made", and making them is where delays and faults happen.
    """

    def __init__(self, engine: FakeEngine, request: SpeechRequest, fault: Fault, usage: Usage) -> None:
        self._engine, self._request, self._fault, self._usage = engine, request, fault, usage
        self._feed = WordFeed(engine.info.max_utterance_words)
        self._granted = engine.speech.lead_samples
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._error: EngineError | None = None
        self._planned: deque[EngineEvent | Samples] = deque()
        self._segment = self._word = self._spoken = self._made = 0
        self._begun = False
        self._opened_s = asyncio.get_running_loop().time()
        self._first_ms = 0.0

    @property
    def granted(self) -> int:
        """Audio is allowed up to this sample."""
        return self._granted

    def push(self, words: Sequence[SpokenWord], *, end_segment: bool = False) -> None:
        if not self._closed.is_set():
            self._feed.push(words, end_segment=end_segment)
            self._changed.set()

    def finish(self) -> None:
        self._feed.finish()
        self._changed.set()

    def grant(self, until: int) -> None:
        self._granted = max(self._granted, until)
        self._changed.set()

    def fail(self, error: EngineError) -> None:
        """End the stream; the next step of its iteration raises ``error``."""
        self._error = error
        self._end()

    def __aiter__(self) -> AsyncIterator[EngineEvent]:
        return self

    async def __anext__(self) -> EngineEvent:
        try:
            event = await self._next()
        except EngineError:
            self._end()
            raise
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if event is None or (self._closed.is_set() and not isinstance(event, SpeechDone)):
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        self._error = None
        self._end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _end(self) -> None:
        self._closed.set()
        self._changed.set()
        self._engine.release(self._request.request_id)

    async def _next(self) -> EngineEvent | None:
        while not self._planned:
            if not await self._plan():
                return None
        item = self._planned.popleft()
        if isinstance(item, np.ndarray):
            return await self._make(item)
        if isinstance(item, SpeechDone):
            self._end()
        return item

    async def _plan(self) -> bool:
        """Plan the next word, or an end; waits for text and grant. False when closed."""
        await self._until(lambda: self._speakable() or self._feed.over(self._segment))
        if self._closed.is_set():
            return False
        if self._feed.over(self._segment):
            usage = Usage(self._usage.prompt_tokens, self._usage.cached_tokens, self._made // FRAME_SAMPLES)
            self._planned.append(SpeechDone(self._made, usage, Timings(decode_ms=self._first_ms)))
            return True
        if not self._begun:
            self._begun = True
            self._planned.append(SpeechBegun(self._feed.calls))
        first, count, ended = self._feed.segment(self._segment)
        if ended and self._word >= max(first, count - self._fault.skip_words):
            end = self._made + self._cut(np.zeros(_PAUSE_FRAMES * FRAME_SAMPLES, np.float32))
            self._planned.append(SegmentDone(count - first, self._spoken, end, remade=0))
            self._segment, self._word, self._spoken = self._segment + 1, count, 0
            return True
        await self._until(lambda: self._made <= self._granted)
        if self._closed.is_set():
            return False
        self._planned.append(WordStarted(self._word, self._made))
        self._cut(self._tone(self._feed.words[self._word].spoken))
        self._word, self._spoken = self._word + 1, self._spoken + 1
        return True

    def _cut(self, samples: Samples) -> int:
        """Plan ``samples`` in chunks: first one frame, then several; cut where a fault sits."""
        at, fault = 0, self._fault.after_frames * FRAME_SAMPLES
        while at < len(samples):
            made = self._made + at
            size = FRAME_SAMPLES * (1 if made == 0 else self._engine.speech.chunk_frames)
            if made < fault:
                size = min(size, fault - made)
            self._planned.append(samples[at : at + size])
            at += size
        return len(samples)

    async def _make(self, samples: Samples) -> PcmChunk | None:
        timing, first = self._engine.timing, self._made == 0
        if self._made >= self._fault.after_frames * FRAME_SAMPLES:
            if self._fault.error is not None:
                raise self._fault.error
            if self._fault.stall:
                await self._closed.wait()
        delay = timing.frame_s * len(samples) / FRAME_SAMPLES + (timing.first_frame_s if first else 0.0)
        if delay > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), delay)
        else:
            await asyncio.sleep(0)  # a stream without delays must not keep the loop to itself
        if self._closed.is_set():
            return None
        if first:
            self._first_ms = (asyncio.get_running_loop().time() - self._opened_s) * 1000
        start, self._made = self._made, self._made + len(samples)
        return PcmChunk(samples, start)

    def _tone(self, word: str) -> Samples:
        count = max(1, round(self._engine.speech.frames_per_word / self._request.speed)) * FRAME_SAMPLES
        time = np.arange(count, dtype=np.float64) / SAMPLE_RATE
        hertz = tone_hz(word, self._request.voice)
        return (_AMPLITUDE * np.sin(2 * np.pi * hertz * time)).astype(np.float32)

    def _speakable(self) -> bool:
        _, count, ended = self._feed.segment(self._segment)
        return ended or self._word + self._engine.speech.look_ahead_words < count

    async def _until(self, ready: Callable[[], bool]) -> None:
        while not ready() and not self._closed.is_set():
            self._changed.clear()
            await self._changed.wait()
