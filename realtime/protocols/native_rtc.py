"""The native protocol where audio goes its own way: RTP for the packets, a data channel for the rest. Pure.

Frames are the native protocol's. Binary ones that are no sentinel are for the transport itself: an audio
packet for RTP, or, with `Flags.DISCONTINUITY` and without a payload, the order to drop an utterance's audio.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from realtime import messages as msg
from realtime.audio.formats import AudioFormat, FormatRequest
from realtime.errors import InvalidRequest
from realtime.protocols.base import Frame
from realtime.protocols.frames import AudioFrame, Flags
from realtime.protocols.native import NativeAdapter

_OPUS_20_MS = FormatRequest(encoding="opus", frame_ms=20.0)


class RtcAdapter:
    """See `Adapter`. ``heard_s`` tells how many seconds of an utterance the listener has, if known."""

    def __init__(self, max_bytes: int, heard_s: Callable[[int], float | None]) -> None:
        self._native = NativeAdapter(max_bytes)
        self._heard_s = heard_s
        self._format: AudioFormat | None = None
        self._pre_skip = 0
        self._spoken: tuple[str, int] | None = None

    def receive(self, message: Frame) -> list[msg.Command]:
        """See `Adapter`."""
        return [told for command in self._native.receive(message) for told in self._tell(command)]

    def render(self, event: msg.Event) -> list[Frame]:
        """See `Adapter`."""
        frames = self._native.render(event)
        match event:
            case msg.SessionReady():
                self._format, self._pre_skip = event.format, event.pre_skip
            case msg.UtteranceStarted(name, index):
                self._spoken = name, index
            case msg.UtteranceCancelled(index=index):
                return [AudioFrame(index, 0, 0, flags=Flags.DISCONTINUITY).to_bytes(), *frames]
        return frames

    def _tell(self, command: msg.Command) -> Iterator[msg.Command]:
        match command:
            case msg.StartSession(options):
                wanted = options.format.over(_OPUS_20_MS)
                if (wanted.encoding, wanted.frame_ms) != ("opus", 20.0):
                    yield msg.Reject(InvalidRequest("WebRTC carries opus in frames of 20 ms", "format"))
                else:
                    yield msg.StartSession(replace(options, format=wanted))
            case msg.UpdateSession(options) if options.format.explicit:
                yield msg.Reject(InvalidRequest("a WebRTC session keeps its format", "format"))
            case msg.Cancel(name):
                yield from self._played(name)
                yield command
            case _:
                yield command

    def _played(self, name: str | None) -> Iterator[msg.Played]:
        """How far the listener is, just before it is asked; else the session reckons by itself."""
        if self._spoken is None or self._format is None or name not in (None, self._spoken[0]):
            return
        index = self._spoken[1]
        heard_s = self._heard_s(index)
        if heard_s is not None:
            samples = round(heard_s * self._format.sample_rate) - self._pre_skip
            yield msg.Played(index, max(0, samples))
