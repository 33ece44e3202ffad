"""The table of errors is total and is what the protocol says."""

import re
from collections.abc import Iterator

import pytest

import engine.errors
import realtime.errors
from engine.errors import EngineDead, EngineError, Overloaded, RequestRejected, Runaway, VoiceNotFound
from realtime.errors import CONSEQUENCES, ErrorCode, InvalidRequest, RealtimeError, TooLarge, fault_of

PROTOCOL = {
    "invalid_request": 1008,
    "unauthorized": 4401,
    "not_found": 4404,
    "too_large": 1009,
    "rate_limited": 4429,
    "overloaded": 1013,
    "ttfp_budget": 4408,
    "idle_timeout": 4408,
    "slow_consumer": 4413,
    "draining": 1012,
    "engine_failure": 1011,
}


def tree(base: type[BaseException]) -> Iterator[type[BaseException]]:
    for child in base.__subclasses__():
        yield child
        yield from tree(child)


def test_the_table_is_the_protocol() -> None:
    assert {code.value: CONSEQUENCES[code].close for code in ErrorCode} == PROTOCOL


@pytest.mark.parametrize("module", [engine.errors, realtime.errors], ids=lambda module: module.__name__)
def test_the_docstring_lists_the_tree(module: type) -> None:
    base = EngineError if module is engine.errors else RealtimeError
    listed = re.findall(r"^ *- (\w+)", module.__doc__ or "", re.M)
    ours = [kind.__name__ for kind in tree(base) if kind.__module__ == module.__name__]
    assert set(listed) == {base.__name__, *ours}


@pytest.mark.parametrize("kind", [EngineError, *tree(EngineError)], ids=lambda kind: kind.__name__)
def test_every_engine_error_has_a_code(kind: type[EngineError]) -> None:
    error = kind.__new__(kind)
    vars(error).update(field="x", retry_after_s=1.0)
    fault = fault_of(error)
    assert fault.code in ErrorCode
    if issubclass(kind, RequestRejected):
        assert not fault.retryable


@pytest.mark.parametrize(
    ("error", "code", "http"),
    [
        (VoiceNotFound("eve", ("ada",)), "not_found", 404),
        (RequestRejected("speed", "too fast"), "invalid_request", 422),
        (Overloaded("full", 1.5), "overloaded", 503),
        (Runaway(100, 3), "engine_failure", 500),
        (EngineDead("gone"), "engine_failure", 500),
        (InvalidRequest("not JSON"), "invalid_request", 400),
        (TooLarge("message_bytes", 2, 1), "too_large", 413),
        (RuntimeError("secret"), "engine_failure", 500),
        (MemoryError(), "engine_failure", 500),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_what_is_told(error: Exception, code: str, http: int) -> None:
    fault = fault_of(error)
    assert (fault.code, fault.http) == (code, http)
    assert "secret" not in fault.message
    assert fault.message


def test_when_to_come_back() -> None:
    assert fault_of(Overloaded("full", 1.5)).retry_after_s == 1.5
