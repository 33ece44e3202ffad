"""What a client may set for a session, and how it becomes a complete configuration. Pure.

Set and defaulted are kept apart: options hold only what the client set (None: not set); the model's
defaults win over the server's, the client's over both.
"""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeVar, get_args

from engine.contract import SAMPLING_LIMITS, ModelInfo, Sampling
from realtime.audio.formats import AudioFormat, FormatError, FormatRequest
from realtime.errors import InvalidRequest, NotFound
from realtime.text.front_end import LANGUAGES

OnBudgetMiss = Literal["continue", "fail"]
SegmentMode = Literal["auto", "clause", "sentence", "manual"]
_ON_BUDGET_MISS: dict[str, OnBudgetMiss] = {mode: mode for mode in get_args(OnBudgetMiss)}
_SEGMENT_MODES: dict[str, SegmentMode] = {mode: mode for mode in get_args(SegmentMode)}

_T = TypeVar("_T")

_MAX_BUDGET_MS = 60_000.0
_MAX_MIN_CHARS = 1_000
_SHOWN = 1e15


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a client set; None (or an empty part) where it set nothing."""

    voice: str | None = None
    format: FormatRequest = field(default_factory=FormatRequest)
    ttfp_budget_ms: float | None = None
    on_budget_miss: str | None = None
    words: bool | None = None
    sampling: Sampling = field(default_factory=Sampling)
    language: str | None = None
    speed: float | None = None
    segment_mode: str | None = None
    min_chars: int | None = None

    def over(self, earlier: "SessionOptions") -> "SessionOptions":
        """These options, and the ``earlier`` ones where nothing is set here."""
        missing = {f.name: getattr(earlier, f.name) for f in fields(self) if getattr(self, f.name) is None}
        return replace(
            self,
            **missing,
            format=self.format.over(earlier.format),
            sampling=self.sampling.over(earlier.sampling),
        )


@dataclass(frozen=True, slots=True)
class SessionDefaults:
    """The server's defaults, where a client set nothing. ``voice`` None is the model's own."""

    voice: str | None = None
    format: FormatRequest = field(default_factory=FormatRequest)
    ttfp_budget_ms: float | None = None
    on_budget_miss: OnBudgetMiss = "continue"
    language: str = "en"
    segment_mode: SegmentMode = "auto"


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """A complete and checked configuration. ``sampling`` still holds only what the client set."""

    voice: str
    format: AudioFormat
    ttfp_budget_ms: float | None
    on_budget_miss: OnBudgetMiss
    words: bool
    sampling: Sampling
    language: str
    speed: float
    segment_mode: SegmentMode
    min_chars: int


def resolve(options: SessionOptions, info: ModelInfo, defaults: SessionDefaults) -> SessionConfig:
    """Check ``options`` and fill them up.

    Raises:
        NotFound: unknown voice; the message lists the known ones.
        InvalidRequest: any other value; ``field`` and message say which and what is allowed.
    """
    _check_sampling(options.sampling)
    return SessionConfig(
        voice=_voice(options.voice or defaults.voice or info.default_voice, info),
        format=_format(options.format, info, defaults),
        ttfp_budget_ms=_within("ttfp_budget_ms", options.ttfp_budget_ms, 1.0, _MAX_BUDGET_MS)
        or defaults.ttfp_budget_ms,
        on_budget_miss=_one_of("on_budget_miss", options.on_budget_miss, _ON_BUDGET_MISS)
        or defaults.on_budget_miss,
        words=bool(options.words),
        sampling=options.sampling,
        language=_language(options.language or defaults.language, info),
        speed=1.0 if options.speed is None else _speed(options.speed, info),
        segment_mode=_one_of("segment.mode", options.segment_mode, _SEGMENT_MODES) or defaults.segment_mode,
        min_chars=int(_within("segment.min_chars", options.min_chars, 0, _MAX_MIN_CHARS) or 0),
    )


def _format(wanted: FormatRequest, info: ModelInfo, defaults: SessionDefaults) -> AudioFormat:
    try:
        return wanted.over(defaults.format).resolve(info.sample_rate)
    except FormatError as error:
        message = f"{str(error.given)[:64]!r} is not possible; allowed: {error.allowed}"
        raise InvalidRequest(message, f"format.{error.field}") from error


def _one_of(name: str, value: str | None, allowed: dict[str, _T]) -> _T | None:
    if value is None:
        return None
    if value not in allowed:
        raise InvalidRequest(f"{value[:32]!r} is not known; allowed: {', '.join(allowed)}", name)
    return allowed[value]


def _voice(name: str, info: ModelInfo) -> str:
    if name not in info.voices:
        known = ", ".join(sorted(info.voices))
        raise NotFound(f"there is no voice {name[:64]!r}; known voices: {known}", "voice")
    return name


def _language(language: str, info: ModelInfo) -> str:
    voiced = {_primary(voice.language) for voice in info.voices.values()}
    allowed = sorted(voiced.intersection(LANGUAGES))
    if _primary(language) not in allowed:
        raise InvalidRequest(f"{language[:32]!r} is not spoken; allowed: {', '.join(allowed)}", "language")
    return language


def _primary(language: str) -> str:
    return language.replace("_", "-").partition("-")[0].lower()


def _speed(speed: float, info: ModelInfo) -> float:
    low, high = info.speed_range
    if not (math.isfinite(speed) and low <= speed <= high):
        allowed = f"from {low:g} to {high:g}" if low < high else f"only {low:g}"
        raise InvalidRequest(f"model {info.name!r} allows {allowed}, got {speed:g}", "speed")
    return speed


def _check_sampling(sampling: Sampling) -> None:
    for name, (low, high) in SAMPLING_LIMITS.items():
        _within(f"sampling.{name}", getattr(sampling, name), low, high)


def _within(name: str, value: float | None, low: float, high: float) -> float | None:
    if value is not None and not low <= value <= high:
        # A whole number of a message can be longer than a float or Python's own int() to str() takes.
        given = f"{value:g}" if abs(value) < _SHOWN else "a number far outside"
        raise InvalidRequest(f"must be from {low:.15g} to {high:.15g}, got {given}", name)
    return value
