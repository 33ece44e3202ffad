"""What the rest of voxwire knows of the speech engine: frozen values and two protocols.

Imports neither torch nor vllm. Audio time is counted in samples at ``ModelInfo.sample_rate``, from the
utterance's first sample.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Literal, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

_T = TypeVar("_T")

Samples = npt.NDArray[np.float32]
"""Mono PCM, float32 in [-1, 1], shape [N], at ``ModelInfo.sample_rate``."""


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """A voice that can be spoken with. ``prefix_tokens`` is the length of its prompt in the prefix cache."""

    name: str
    description: str
    language: str
    prefix_tokens: int
    provenance: str = ""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model is and can do. ``frame_samples`` is the length of one codec frame in samples."""

    name: str
    sample_rate: int
    frame_samples: int
    streams_text: bool
    """True: one generation is fed text while it speaks. False: it needs each segment whole."""
    default_voice: str
    voices: Mapping[str, VoiceInfo]
    defaults: "Sampling"
    max_utterance_words: int
    speed_range: tuple[float, float] = (1.0, 1.0)
    """Slowest and fastest ``SpeechRequest.speed`` it takes; equal ends mean no control of speed."""


def _or(value: _T | None, default: _T | None) -> _T | None:
    return default if value is None else value


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; ``None`` means not set by anybody yet (the explicit set is what is not None)."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None

    def over(self, defaults: "Sampling") -> "Sampling":
        """These values, and ``defaults`` where one is not set."""
        return Sampling(
            _or(self.temperature, defaults.temperature),
            _or(self.top_p, defaults.top_p),
            _or(self.top_k, defaults.top_k),
            _or(self.repetition_penalty, defaults.repetition_penalty),
            _or(self.seed, defaults.seed),
        )


SAMPLING_LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "temperature": (0.0, 2.0),
        "top_p": (0.01, 1.0),
        "top_k": (1, 100_000),
        "repetition_penalty": (1.0, 2.0),
        "seed": (0, 2**63 - 1),
    }
)
"""Smallest and largest value of each field of `Sampling`, for whoever checks what was asked."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """One word in the spoken form the model reads, with where it came from.

    ``spoken`` has no white space inside; trailing punctuation belongs to it (``"seven,"``).
    ``char_start``/``char_end`` are a half-open range of Unicode code points in the client's text of this
    utterance. Words made from one item (``"7:30"`` -> seven, thirty) share its range.
    """

    spoken: str
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One utterance to speak. ``request_id`` is unique among live requests."""

    request_id: str
    voice: str
    sampling: Sampling = field(default_factory=Sampling)
    speed: float = 1.0
    priority: int = 0
    """Lower is sooner."""
    cache_salt: str | None = None
    """Keeps a private voice's prefix apart from everybody else's."""
    lead_samples: int | None = None
    """Audio that may be made before the first ``SpeechStream.grant``; None: the engine's own default."""


@dataclass(frozen=True, slots=True)
class PrefixUsage:
    """Voice prompt tokens, and how many of them were found in the prefix cache."""

    tokens: int
    cached: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one utterance. ``cached_tokens`` is that of its first LM request."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    codec_tokens: int = 0


@dataclass(frozen=True, slots=True)
class SpeechBegun:
    """The text so far was enough, and the model is being asked. Comes once, before all other events.

    ``calls``: how many calls of ``push`` and ``finish`` had been made by then; the last of them is what
    speech had been waiting for.
    """

    calls: int


@dataclass(frozen=True, slots=True)
class PcmChunk:
    """``samples`` begin at ``start`` samples from the utterance's start; chunks have no gaps."""

    samples: Samples
    start: int


@dataclass(frozen=True, slots=True)
class WordStarted:
    """The ``index``-th pushed word (from 0, in the utterance) begins at sample ``start``."""

    index: int
    start: int


@dataclass(frozen=True, slots=True)
class SegmentDone:
    """A segment is complete. ``spoken``/``expected`` are word counts; unequal means words were skipped or
    repeated and ``remade`` attempts did not help.
    """

    expected: int
    spoken: int
    end: int
    remade: int


@dataclass(frozen=True, slots=True)
class SpeechDone:
    """The utterance is complete; ``samples`` is its length."""

    samples: int
    usage: Usage
    timings: "Timings"


@dataclass(frozen=True, slots=True)
class Timings:
    """Parts of the time to the first PCM chunk, in ms (engine side of TTFP)."""

    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    vocode_ms: float = 0.0


EngineEvent = SpeechBegun | PcmChunk | WordStarted | SegmentDone | SpeechDone


class SpeechStream(Protocol):
    """One utterance being spoken. Iterate it for events; the last is `SpeechDone`.

    Iteration raises `GenerationFailed` or `EngineDead`. Closing (``aclose``, or leaving ``async with``) is
    the cancel: it is idempotent, frees the LM request and the vocoder state at once, and no event follows it.
    """

    def push(self, words: Sequence[SpokenWord], *, end_segment: bool = False) -> None:
        """Add words; ``end_segment`` says a sentence or clause is complete (the model closes its prosody).

        Never blocks. Raises `RequestRejected` when the utterance gets longer than ``max_utterance_words``.
        """

    def finish(self) -> None:
        """No more words. The open segment, if any, is ended."""

    def grant(self, until: int) -> None:
        """Allow audio up to sample ``until``: no LM request is begun while the audio made is past it.

        Starts at the engine's own default lead; only ever grows.
        """

    def __aiter__(self) -> AsyncIterator[EngineEvent]: ...

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """Live figures for readiness, admission and metrics."""

    state: Literal["starting", "ready", "restarting", "stopped"]
    running: int
    waiting: int
    restarts: int


class SpeechEngine(Protocol):
    """A model that speaks."""

    @property
    def info(self) -> ModelInfo: ...

    async def start(self) -> None:
        """Load the model; returns when it can speak."""

    async def stop(self) -> None: ...

    async def prewarm(self, voice: str, cache_salt: str | None = None) -> PrefixUsage:
        """Put the voice prompt into the prefix cache. Raises `VoiceNotFound`, `EngineDead`."""

    def open(self, request: SpeechRequest) -> SpeechStream:
        """Begin an utterance. Raises `RequestRejected`, `Overloaded`, `EngineDead`; nothing is spent then."""

    def health(self) -> EngineHealth: ...
