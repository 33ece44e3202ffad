"""Everything a client can be told that went wrong, and the one table that says how each transport says it.

- RealtimeError
  - InvalidRequest: malformed, an unknown value, or in the wrong order; ``field`` names what
  - Unauthorized: no key, or a wrong one
  - NotFound: no such voice, model or session
  - TooLarge: over a limit that `session.ready` tells
  - RateLimited: too much of one key; ``retry_after_s``
  - ServerOverloaded: admission control; ``retry_after_s``
  - BudgetMissed: the first packet was late and the client asked to fail then
  - IdleTimeout: no message for the idle limit
  - SlowConsumer: the client does not read
  - Draining: the server is shutting down
  - InternalFailure: anything that broke on our side
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from engine.errors import (
    EngineDead,
    EngineError,
    GenerationFailed,
    Overloaded,
    RequestRejected,
    VoiceNotFound,
)

NOTHING_TO_SPEAK = "nothing in it can be spoken"
"""How an `InvalidRequest` ends for a text that says nothing; a client may treat it as no failure."""


class ErrorCode(StrEnum):
    """The ``code`` of an `error` message."""

    INVALID_REQUEST = "invalid_request"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    TTFP_BUDGET = "ttfp_budget"
    IDLE_TIMEOUT = "idle_timeout"
    SLOW_CONSUMER = "slow_consumer"
    DRAINING = "draining"
    ENGINE_FAILURE = "engine_failure"


@dataclass(frozen=True, slots=True)
class Consequence:
    """What an error code means on the wire: WebSocket close code, HTTP status, worth another try or not."""

    close: int
    http: int
    retryable: bool


CONSEQUENCES: Mapping[ErrorCode, Consequence] = MappingProxyType(
    {
        ErrorCode.INVALID_REQUEST: Consequence(1008, 422, retryable=False),
        ErrorCode.UNAUTHORIZED: Consequence(4401, 401, retryable=False),
        ErrorCode.NOT_FOUND: Consequence(4404, 404, retryable=False),
        ErrorCode.TOO_LARGE: Consequence(1009, 413, retryable=False),
        ErrorCode.RATE_LIMITED: Consequence(4429, 429, retryable=True),
        ErrorCode.OVERLOADED: Consequence(1013, 503, retryable=True),
        ErrorCode.TTFP_BUDGET: Consequence(4408, 504, retryable=True),
        ErrorCode.IDLE_TIMEOUT: Consequence(4408, 408, retryable=True),
        ErrorCode.SLOW_CONSUMER: Consequence(4413, 408, retryable=True),
        ErrorCode.DRAINING: Consequence(1012, 503, retryable=True),
        ErrorCode.ENGINE_FAILURE: Consequence(1011, 500, retryable=True),
    }
)


class RealtimeError(Exception):
    """Base of what `realtime` raises. ``code`` leads to its row in `CONSEQUENCES`."""

    code = ErrorCode.ENGINE_FAILURE
    field: str | None = None
    retry_after_s: float | None = None


class InvalidRequest(RealtimeError):
    """The client's request is wrong. ``field`` is None when it could not even be read."""

    code = ErrorCode.INVALID_REQUEST

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class Unauthorized(RealtimeError):
    """No key was given where one is needed, or a wrong one."""

    code = ErrorCode.UNAUTHORIZED


class NotFound(RealtimeError):
    """There is no voice, model or session of that name."""

    code = ErrorCode.NOT_FOUND

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


class TooLarge(RealtimeError):
    """``size`` of ``what`` is over ``limit``; None where it was not worth finding out by how much."""

    code = ErrorCode.TOO_LARGE

    def __init__(self, what: str, size: int | None, limit: int) -> None:
        super().__init__(f"{what}: {'this' if size is None else size} is over the limit of {limit}")
        self.field = what
        self.size = size
        self.limit = limit


class RateLimited(RealtimeError):
    """One key asked too much."""

    code = ErrorCode.RATE_LIMITED

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ServerOverloaded(RealtimeError):
    """No room for another session."""

    code = ErrorCode.OVERLOADED

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BudgetMissed(RealtimeError):
    """The first packet was not out within ``budget_ms``."""

    code = ErrorCode.TTFP_BUDGET

    def __init__(self, budget_ms: float) -> None:
        super().__init__(f"the first audio packet was not ready within the budget of {budget_ms:g} ms")
        self.budget_ms = budget_ms


class IdleTimeout(RealtimeError):
    """The client said nothing for the idle limit."""

    code = ErrorCode.IDLE_TIMEOUT


class SlowConsumer(RealtimeError):
    """The client does not take its audio."""

    code = ErrorCode.SLOW_CONSUMER


class Draining(RealtimeError):
    """The server is shutting down."""

    code = ErrorCode.DRAINING

    def __init__(self, message: str = "the server is shutting down") -> None:
        super().__init__(message)


class InternalFailure(RealtimeError):
    """A fault of ours that has no better name. The message carries no internals."""

    code = ErrorCode.ENGINE_FAILURE


ENGINE_CODES: Mapping[type[EngineError], ErrorCode] = MappingProxyType(
    {
        VoiceNotFound: ErrorCode.NOT_FOUND,
        RequestRejected: ErrorCode.INVALID_REQUEST,
        Overloaded: ErrorCode.OVERLOADED,
        GenerationFailed: ErrorCode.ENGINE_FAILURE,
        EngineDead: ErrorCode.ENGINE_FAILURE,
        EngineError: ErrorCode.ENGINE_FAILURE,
    }
)
"""Engine error to code; a type that is not listed has the code of its nearest listed base."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An error as every transport tells it."""

    code: ErrorCode
    message: str
    retryable: bool
    close: int
    http: int
    field: str | None = None
    retry_after_s: float | None = None


def fault_of(error: BaseException) -> Fault:
    """Describe ``error`` to a client. Total: what is in no table is an `engine_failure` without details."""
    if isinstance(error, RealtimeError):
        code, field, retry = error.code, error.field, error.retry_after_s
        message = str(error)
    elif isinstance(error, EngineError):
        code = next(ENGINE_CODES[base] for base in type(error).__mro__ if base in ENGINE_CODES)
        field = error.field if isinstance(error, RequestRejected) else None
        retry = error.retry_after_s if isinstance(error, Overloaded) else None
        message = str(error) or type(error).__name__
    else:
        code, field, retry = ErrorCode.ENGINE_FAILURE, None, None
        message = "the server failed; this is a fault of ours, not of the request"
    told = CONSEQUENCES[code]
    # An unreadable request is HTTP 400; one that was read but holds a wrong value is 422.
    http = 400 if code is ErrorCode.INVALID_REQUEST and field is None else told.http
    return Fault(code, message, told.retryable, told.close, http, field, retry)
