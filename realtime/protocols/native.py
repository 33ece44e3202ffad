"""The native protocol ``voxwire.v1``: JSON text frames for control, binary frames for audio. Pure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Final

from engine.contract import Sampling
from realtime import messages as msg
from realtime.audio.formats import FormatRequest
from realtime.errors import Fault, RealtimeError, fault_of
from realtime.options import SessionOptions
from realtime.protocols import native_wire as wire
from realtime.protocols.base import Frame
from realtime.protocols.frames import AudioFrame, Flags

PROTOCOL: Final = "voxwire.v1"
"""The name of the protocol, and of the WebSocket subprotocol."""

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


class NativeAdapter:
    """See `Adapter`. ``max_bytes`` is the limit of one client message."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._half: tuple[str, str | None] | None = None

    def receive(self, message: Frame) -> list[msg.Command]:
        """See `Adapter`."""
        try:
            decoded = wire.decode(message, self._max_bytes)
        except RealtimeError as error:
            return [msg.Reject(error)]
        return list(self._commands(decoded))

    def render(self, event: msg.Event) -> list[Frame]:
        """See `Adapter`."""
        match event:
            case msg.AudioReady(index, sequence, packet):
                flags = Flags.FIRST if sequence == 0 else Flags.NONE
                return [AudioFrame(index, sequence, packet.pts, packet.payload, flags).to_bytes()]
            case msg.AudioEnded(index, sequence, samples):
                return [AudioFrame(index, sequence, samples, flags=Flags.EOS).to_bytes()]
            case msg.CloseConnection():
                return []
            case _:
                # ASCII on the wire: text that is no valid Unicode must not break the frame that tells it.
                return [json.dumps(_body(event), separators=(",", ":"), allow_nan=False)]

    # --- client to session ---

    def _commands(self, message: wire.ClientMessage) -> Iterator[msg.Command]:
        if isinstance(message, wire.TextMessage):
            yield from self._text(message.text, message.utterance)
            return
        if not isinstance(message, wire.KeepAliveMessage | wire.UpdateMessage):
            yield from self._give_up_half()
        yield _command(message)

    def _text(self, text: str, utterance: str | None) -> Iterator[msg.Command]:
        """Join what was cut inside a character; what is no character at all becomes U+FFFD.

        JavaScript strings are UTF-16: cut inside an emoji, they travel as two escapes of half a pair.
        """
        if self._half is not None:
            half, owner = self._half
            if owner == utterance and text and _is_low(text[0]):
                text, self._half = half + text, None
            elif text or owner != utterance:
                yield from self._give_up_half()
        if text and _is_high(text[-1]):
            self._half, text = (text[-1], utterance), text[:-1]
        yield msg.AppendText(_valid(text), utterance)

    def _give_up_half(self) -> Iterator[msg.Command]:
        if self._half is not None:
            owner, self._half = self._half[1], None
            yield msg.AppendText(_REPLACEMENT, owner)


def _is_high(char: str) -> bool:
    return "\ud800" <= char <= "\udbff"


def _is_low(char: str) -> bool:
    return "\udc00" <= char <= "\udfff"


def _valid(text: str) -> str:
    """Join surrogate pairs; a lone one becomes U+FFFD. One character stays one character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _command(message: wire.ClientMessage) -> msg.Command:
    match message:
        case wire.StartMessage():
            return msg.StartSession(_options(message))
        case wire.UpdateMessage():
            return msg.UpdateSession(_options(message))
        case wire.TextMessage(text, utterance):
            return msg.AppendText(text, utterance)
        case wire.FlushMessage(utterance):
            return msg.Flush(utterance)
        case wire.EndMessage(utterance):
            return msg.End(utterance)
        case wire.CancelMessage(utterance, played_ms):
            return msg.Cancel(utterance, played_ms)
        case wire.KeepAliveMessage():
            return msg.KeepAlive()
        case wire.CloseMessage():
            return msg.Close()


def _options(message: wire.OptionsPart) -> SessionOptions:
    form, sampling = message.format, message.sampling
    return SessionOptions(
        voice=message.voice,
        format=FormatRequest(**{name: getattr(form, name) for name in form.__struct_fields__}),
        ttfp_budget_ms=message.ttfp_budget_ms,
        on_budget_miss=message.on_budget_miss,
        words=message.words,
        sampling=Sampling(**{name: getattr(sampling, name) for name in sampling.__struct_fields__}),
        language=message.language,
        speed=message.speed,
        segment_mode=message.segment.mode,
        min_chars=message.segment.min_chars,
    )


# --- session to client ---


def _body(event: msg.Event) -> dict[str, Any]:
    match event:
        case msg.SessionReady():
            return _ready(event)
        case msg.UtteranceStarted(utterance, index):
            return {"type": "utterance.start", "utterance": utterance, "index": index}
        case msg.WordsSpoken(utterance, _, words):
            return {"type": "words", "utterance": utterance, "words": [_word(word) for word in words]}
        case msg.UtteranceDone():
            return _done(event)
        case msg.UtteranceCancelled():
            return _cancelled(event)
        case msg.Warned(code, message):
            return {"type": "warning", "code": code, "message": message}
        case msg.Failed(fault, utterance):
            return _failed(fault, utterance)
        case _:
            raise TypeError(f"{type(event).__name__} is not a JSON message")


def _ready(event: msg.SessionReady) -> dict[str, Any]:
    form = event.format
    return {
        "type": "session.ready",
        "session": event.session,
        "protocol": PROTOCOL,
        "model": event.model,
        "voice": event.voice,
        "format": {
            "encoding": form.encoding,
            "sample_rate": form.sample_rate,
            "frame_ms": form.frame_ms,
            "bitrate": form.bitrate,
            "pre_skip": event.pre_skip,
        },
        "prefix": {"tokens": event.prefix.tokens, "cached": event.prefix.cached},
        "limits": dict(event.limits),
    }


def _word(word: msg.Word) -> dict[str, Any]:
    return {
        "text": word.text,
        "start_ms": _ms(word.start_ms),
        "end_ms": _ms(word.end_ms),
        "char_start": word.char_start,
        "char_end": word.char_end,
    }


def _done(event: msg.UtteranceDone) -> dict[str, Any]:
    parts = None
    if event.ttfp_parts is not None:
        parts = {name: _ms(value) for name, value in asdict(event.ttfp_parts).items()}
    return {
        "type": "utterance.done",
        "utterance": event.utterance,
        "reason": event.reason,
        "audio_ms": _ms(event.audio_ms),
        "samples": event.samples,
        "frames": event.frames,
        "crc32": event.crc32,
        "ttfp_ms": None if event.ttfp_ms is None else _ms(event.ttfp_ms),
        "ttfp_parts": parts,
        "budget_met": event.budget_met,
        "text_chars": event.text_chars,
        "usage": asdict(event.usage),
    }


def _cancelled(event: msg.UtteranceCancelled) -> dict[str, Any]:
    return {
        "type": "utterance.cancelled",
        "utterance": event.utterance,
        "sent_ms": _ms(event.sent_ms),
        "heard_ms": _ms(event.heard_ms),
        "heard_text": event.heard_text,
        "unheard_text": event.unheard_text,
        "clock": event.clock,
    }


def _failed(fault: Fault, utterance: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": "error",
        "code": fault.code.value,
        "message": fault.message,
        "utterance": utterance,
        "retryable": fault.retryable,
    }
    if fault.field is not None:
        body["field"] = fault.field
    if fault.retry_after_s is not None:
        body["retry_after_s"] = fault.retry_after_s
    return body


def _ms(value: float) -> float:
    """To the microsecond: a sample at 48 kHz is 20.8 of them."""
    return round(value, 3)


def error_frame(error: Exception) -> tuple[str, int, str]:
    """The `error` message for a connection without a session, its close code and close reason."""
    fault = fault_of(error)
    return json.dumps(_failed(fault, None), separators=(",", ":")), fault.close, fault.code.value


__all__: Sequence[str] = ("PROTOCOL", "NativeAdapter", "error_frame")
