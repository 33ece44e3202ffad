"""The JSON messages of ``voxwire.v1``, client to server: their shapes, and how they are read. Pure."""

import json
import math
from typing import Any, NoReturn

import msgspec

from realtime.errors import InvalidRequest, TooLarge


class FormatPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``format``; what is not given is the server's to choose. The last six are for Opus only."""

    encoding: str | None = None
    sample_rate: int | None = None
    frame_ms: float | None = None
    bitrate: int | None = None
    complexity: int | None = None
    vbr: bool | None = None
    application: str | None = None
    fec: bool | None = None
    packet_loss: int | None = None
    dtx: bool | None = None


class SamplingPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``sampling``."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None


class SegmentPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``segment``."""

    mode: str | None = None
    min_chars: int | None = None


class OptionsPart(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type"):
    """The fields of `session.start` and `session.update`."""

    voice: str | None = None
    format: FormatPart = FormatPart()
    ttfp_budget_ms: float | None = None
    on_budget_miss: str | None = None
    words: bool | None = None
    sampling: SamplingPart = SamplingPart()
    language: str | None = None
    speed: float | None = None
    segment: SegmentPart = SegmentPart()


class StartMessage(OptionsPart, forbid_unknown_fields=True, frozen=True, tag="session.start"):
    """The first message."""


class UpdateMessage(OptionsPart, forbid_unknown_fields=True, frozen=True, tag="session.update"):
    """From the next utterance on."""


class _Message(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type"):
    pass


class TextMessage(_Message, forbid_unknown_fields=True, frozen=True, tag="text"):
    """A piece of text."""

    text: str
    utterance: str | None = None


class FlushMessage(_Message, forbid_unknown_fields=True, frozen=True, tag="flush"):
    """Speak what is pending."""

    utterance: str | None = None


class EndMessage(_Message, forbid_unknown_fields=True, frozen=True, tag="end"):
    """No more text."""

    utterance: str | None = None


class CancelMessage(_Message, forbid_unknown_fields=True, frozen=True, tag="cancel"):
    """Barge-in."""

    utterance: str | None = None
    played_ms: float | None = None


class KeepAliveMessage(_Message, forbid_unknown_fields=True, frozen=True, tag="keepalive"):
    """Resets the idle timer."""


class CloseMessage(_Message, forbid_unknown_fields=True, frozen=True, tag="close"):
    """Finish, then close."""


ClientMessage = (
    StartMessage
    | UpdateMessage
    | TextMessage
    | FlushMessage
    | EndMessage
    | CancelMessage
    | KeepAliveMessage
    | CloseMessage
)

CLIENT_TYPES = ("session.start", "session.update", "text", "flush", "end", "cancel", "keepalive", "close")


def decode(message: str | bytes, max_bytes: int) -> ClientMessage:
    """Read one message. Raises `InvalidRequest` or `TooLarge`, never anything else."""
    if isinstance(message, bytes):
        raise InvalidRequest("clients send JSON in text frames; binary frames only go to the client")
    # Most messages are far under the limit, and a character has at most four bytes.
    size = len(message) if len(message) * 4 <= max_bytes else len(message.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise TooLarge("message_bytes", size, max_bytes)
    try:
        # Not msgspec's own parser: it refuses escapes of half a surrogate pair, which is what a client
        # sends that cuts its text inside an emoji.
        value = json.loads(message, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"not valid JSON: {error.msg} at character {error.pos}") from error
    except (RecursionError, ValueError) as error:
        raise InvalidRequest("not valid JSON: nested too deep, or a number that is no JSON number") from error
    _check_type(value)
    try:
        decoded: ClientMessage = msgspec.convert(value, ClientMessage)
    except msgspec.ValidationError as error:
        raise _invalid(error, value["type"]) from error
    except UnicodeEncodeError as error:  # half a surrogate pair in the name of a field
        raise InvalidRequest("the name of a field is no valid Unicode") from error
    if isinstance(decoded, CancelMessage) and decoded.played_ms is not None:
        played_ms = decoded.played_ms
        if not (math.isfinite(played_ms) and played_ms >= 0):
            raise InvalidRequest(f"must be 0 or more, got {played_ms:g}", "played_ms")
    return decoded


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _check_type(value: Any) -> None:
    if not isinstance(value, dict):
        raise InvalidRequest("a message is a JSON object with a field 'type'")
    kind = value.get("type")
    if kind not in CLIENT_TYPES:
        told = "is missing" if kind is None else f"{str(kind)[:64]!r} is not known"
        raise InvalidRequest(f"{told}; allowed: {', '.join(CLIENT_TYPES)}", "type")


def _invalid(error: msgspec.ValidationError, kind: str) -> InvalidRequest:
    """Where it is, msgspec says in words: ``Expected `int`, got `str` - at `$.format.sample_rate```."""
    what, _, where = str(error).partition(" - at ")
    path = where.strip("`").removeprefix("$").lstrip(".")
    if "unknown field" in what or "required field" in what:
        name = what.rpartition("field ")[2].strip("`")
        path = f"{path}.{name}" if path else name
        what = f"{'is not a field' if 'unknown' in what else 'is missing'} of {kind}"
    return InvalidRequest(what, path or "type")
