"""The speech LM as the engine sees it: token ids in, token ids out. Imports neither torch nor vllm."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from engine.errors import RequestRejected

LmState = Literal["starting", "ready", "restarting", "stopped"]


@dataclass(frozen=True, slots=True)
class LmSampling:
    """Sampling of one LM request, every value decided."""

    temperature: float
    top_p: float
    top_k: int
    repetition_penalty: float
    seed: int | None


@dataclass(frozen=True, slots=True)
class LmRequest:
    """One generation over ``prompt``; at most ``max_tokens`` ids from ``allowed`` come back.

    ``end`` finishes it when it is among ``allowed`` and sampled; it is the last id returned then.
    ``request_id`` is unique among live requests. ``priority``: lower is sooner.
    """

    request_id: str
    prompt: Sequence[int]
    max_tokens: int
    allowed: Sequence[int]
    end: int
    sampling: LmSampling
    priority: int = 0
    cache_salt: str | None = None


@dataclass(frozen=True, slots=True)
class TokenChunk:
    """The ids that are new since the last chunk.

    ``cached_tokens`` counts prompt ids found in the prefix cache. ``queue_ms`` and ``prefill_ms`` are those
    of the request and 0 where the LM cannot tell. ``finished`` is ``"end"`` after the end id, ``"length"``
    after ``max_tokens`` and None before.
    """

    ids: Sequence[int]
    finished: Literal["end", "length"] | None
    cached_tokens: int = 0
    queue_ms: float = 0.0
    prefill_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class LmHealth:
    """Live figures; ``running`` and ``waiting`` count requests."""

    state: LmState
    running: int
    waiting: int


class SpeechLM(Protocol):
    """Runs requests in a batch. All methods are called from one event loop."""

    vocab_size: int
    max_context: int
    """Prompt and generated ids together never exceed it."""

    async def start(self) -> None:
        """Load; returns when it can generate. Works again after `stop`. Raises `EngineDead` with why."""

    async def stop(self) -> None:
        """Free everything; running requests get `EngineDead`. Idempotent."""

    def generate(self, request: LmRequest) -> AsyncGenerator[TokenChunk, None]:
        """Generate. Closing the iterator aborts the request.

        Iteration raises `RequestRejected` before anything is spent, `GenerationFailed`, or `EngineDead`.
        """

    async def abort(self, request_id: str) -> None:
        """End a request early, whoever iterates it; an unknown id is ignored."""

    async def check(self) -> None:
        """Raises `EngineDead` when the LM no longer works."""

    def health(self) -> LmHealth: ...


def check_request(request: LmRequest, vocab_size: int, max_context: int) -> None:
    """Raises `RequestRejected` unless the LM can run ``request`` as it is.

    An id that is outside the vocabulary or not exactly an ``int`` would take the whole LM down, not only
    this request, so nothing is left to the LM's own checks.
    """
    for name, ids in (("prompt", request.prompt), ("allowed", request.allowed)):
        check_ids(name, ids, vocab_size)
    if request.max_tokens < 1:
        raise RequestRejected("max_tokens", f"must be at least 1, got {request.max_tokens}")
    if len(request.prompt) + request.max_tokens > max_context:
        length = f"{len(request.prompt)} + {request.max_tokens}"
        raise RequestRejected("prompt", f"prompt and output of {length} ids exceed {max_context}")


def check_ids(name: str, ids: Sequence[int], vocab_size: int) -> None:
    """Raises `RequestRejected` unless ``ids`` is a non-empty sequence of ``int`` in ``[0, vocab_size)``."""
    if not ids:
        raise RequestRejected(name, "must not be empty")
    if set(map(type, ids)) != {int}:
        raise RequestRejected(name, "token ids must be plain integers")
    if min(ids) < 0 or max(ids) >= vocab_size:
        raise RequestRejected(name, f"token ids must be in 0..{vocab_size - 1}")
