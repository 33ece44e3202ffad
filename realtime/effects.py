"""What a session asks its driver to do, and what it hears back. Values only.

The driver performs the effects of a call in order, at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.contract import SegmentDone, SpeechBegun, SpeechDone, SpeechRequest, SpokenWord, WordStarted
from realtime.audio.formats import AudioFormat
from realtime.audio.packets import AudioPacket
from realtime.errors import Fault
from realtime.reports import UtteranceReport


@dataclass(frozen=True, slots=True)
class Prewarm:
    """Put the voice into the prefix cache; answered by ``Session.prewarmed``. ``format`` is the session's."""

    voice: str
    format: AudioFormat


@dataclass(frozen=True, slots=True)
class OpenStream:
    """Open an engine stream and an encoder and pump both; answered by `StreamOpened`."""

    index: int
    request: SpeechRequest
    format: AudioFormat


@dataclass(frozen=True, slots=True)
class PushWords:
    """Give words to the utterance's stream."""

    index: int
    words: Sequence[SpokenWord]
    end_segment: bool


@dataclass(frozen=True, slots=True)
class FinishWords:
    """No more words for the utterance's stream."""

    index: int


@dataclass(frozen=True, slots=True)
class Grant:
    """Allow audio up to sample ``until`` (model rate) of the utterance."""

    index: int
    until: int


@dataclass(frozen=True, slots=True)
class CloseStream:
    """Free the utterance's stream and encoder at once."""

    index: int


@dataclass(frozen=True, slots=True)
class ReportUtterance:
    """An utterance is over: measure it."""

    report: UtteranceReport


@dataclass(frozen=True, slots=True)
class CountWarning:
    """A warning of this code goes to the client."""

    code: str


@dataclass(frozen=True, slots=True)
class EndSession:
    """Nothing more will happen but for what is still to be sent. ``fault`` is what it failed with, if so."""

    fault: Fault | None


Effect = (
    Prewarm
    | OpenStream
    | PushWords
    | FinishWords
    | Grant
    | CloseStream
    | ReportUtterance
    | CountWarning
    | EndSession
)


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The engine has taken the utterance and gets its words now."""


@dataclass(frozen=True, slots=True)
class EncoderReady:
    """The client drops ``pre_skip`` decoded samples (format's rate). Comes before any `Encoded`."""

    pre_skip: int


@dataclass(frozen=True, slots=True)
class PcmMade:
    """The engine made ``samples`` (model rate) from ``start`` on; they go to the encoder."""

    start: int
    samples: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """The encoder gave packets."""

    packets: Sequence[AudioPacket]


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """The engine has spoken everything and the encoder is finished; ``length`` is at the format's rate."""

    done: SpeechDone
    length: int


StreamEvent = (
    StreamOpened | SpeechBegun | EncoderReady | PcmMade | Encoded | WordStarted | SegmentDone | SpeechEnded
)
