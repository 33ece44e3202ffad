"""What goes into a session (commands) and what comes out for the client (events). No protocol, no transport.

A protocol adapter turns a client's message into commands and each event into frames; every dialect is put
on this one set. An utterance is known to the client by its name and on the media side by its index.
Audio positions and lengths are samples at the session format's rate, from the utterance's start.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.contract import PrefixUsage, Usage
from realtime.audio.formats import AudioFormat
from realtime.audio.packets import AudioPacket
from realtime.errors import Fault, RealtimeError
from realtime.options import SessionOptions

# --- commands: client to session ---


@dataclass(frozen=True, slots=True)
class StartSession:
    """Must be the first command. ``options`` holds what the client set, and only that."""

    options: SessionOptions = field(default_factory=SessionOptions)


@dataclass(frozen=True, slots=True)
class UpdateSession:
    """Change what is given, from the next utterance on."""

    options: SessionOptions


@dataclass(frozen=True, slots=True)
class AppendText:
    """A piece of text, cut anywhere. Without a name: the utterance that is still open, else a new one.

    ``more`` characters of the same message follow at once: limits are checked for all of it first.
    """

    text: str
    utterance: str | None = None
    more: int = 0

    def slices(self, size: int) -> Iterator["AppendText"]:
        """The same text in pieces of ``size`` characters: reading a long one must not hold up others."""
        if len(self.text) <= size:
            yield self
            return
        for at in range(0, len(self.text), size):
            yield AppendText(self.text[at : at + size], self.utterance, max(0, len(self.text) - at - size))


@dataclass(frozen=True, slots=True)
class Flush:
    """Speak all text pending now; the utterance goes on."""

    utterance: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """No more text for the utterance."""

    utterance: str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop now. Without a name: every utterance without a terminal.

    ``played_ms`` is how much of the utterance the client has played (without a name: of the one it hears).
    """

    utterance: str | None = None
    played_ms: float | None = None


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Resets the idle timer."""


@dataclass(frozen=True, slots=True)
class Close:
    """Finish what is pending, then close."""


@dataclass(frozen=True, slots=True)
class Played:
    """A paced transport's own clock: ``samples`` of utterance ``index`` were really played."""

    index: int
    samples: int


@dataclass(frozen=True, slots=True)
class Reject:
    """The client sent something its adapter could not accept."""

    error: RealtimeError


Command = (
    StartSession | UpdateSession | AppendText | Flush | End | Cancel | KeepAlive | Close | Played | Reject
)

# --- events: session to client ---


@dataclass(frozen=True, slots=True)
class SessionReady:
    """The session can speak. The client drops the first ``pre_skip`` decoded samples of each utterance."""

    session: str
    model: str
    voice: str
    format: AudioFormat
    pre_skip: int
    prefix: PrefixUsage
    limits: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class UtteranceStarted:
    """The first event of every utterance."""

    utterance: str
    index: int


@dataclass(frozen=True, slots=True)
class AudioReady:
    """One codec packet. ``sequence`` counts from 0 without gaps."""

    index: int
    sequence: int
    packet: AudioPacket


@dataclass(frozen=True, slots=True)
class AudioEnded:
    """The sentinel: every sample before ``samples`` was sent. It has the next sequence number."""

    index: int
    sequence: int
    samples: int


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is heard; ``text`` is the client's own, characters ``char_start`` to ``char_end``."""

    text: str
    start_ms: float
    end_ms: float
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class WordsSpoken:
    """Words whose times are certain now, in order; each word of an utterance comes once."""

    utterance: str
    index: int
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class TtfpParts:
    """Where the time to the first packet went, in ms; the parts add up to the whole."""

    segment: float
    queue: float
    prefill: float
    decode: float
    vocode: float
    encode: float
    send: float


@dataclass(frozen=True, slots=True)
class UtteranceDone:
    """Terminal: the utterance is complete. ``frames`` are the audio packets, the sentinel not counted."""

    utterance: str
    index: int
    reason: Literal["complete", "empty"]
    audio_ms: float
    samples: int
    frames: int
    crc32: int
    ttfp_ms: float | None
    ttfp_parts: TtfpParts | None
    budget_met: bool | None
    text_chars: int
    usage: Usage


HeardClock = Literal["client", "transport", "sent"]


@dataclass(frozen=True, slots=True)
class UtteranceCancelled:
    """Terminal: stopped by the client. ``heard_text + unheard_text`` is the utterance's text."""

    utterance: str
    index: int
    sent_ms: float
    heard_ms: float
    heard_text: str
    unheard_text: str
    clock: HeardClock


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the client should know; nothing stopped. ``code`` is for machines."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a session that failed; the connection closes right after it."""

    fault: Fault
    utterance: str | None = None


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the connection now. Not a message: it is the close itself."""

    code: int
    reason: str = ""


Event = (
    SessionReady
    | UtteranceStarted
    | AudioReady
    | AudioEnded
    | WordsSpoken
    | UtteranceDone
    | UtteranceCancelled
    | Warned
    | Failed
    | CloseConnection
)
