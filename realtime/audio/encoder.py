"""Samples of one utterance to packets of any format: resample, cut into frames, encode, count."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from engine.contract import Samples
from realtime.audio.formats import AudioFormat
from realtime.audio.framer import Framer
from realtime.audio.g711 import encode_alaw, encode_mulaw
from realtime.audio.intake import Intake
from realtime.audio.opus import Backend, open_opus
from realtime.audio.packets import AudioPacket, PacketEncoder
from realtime.audio.pcm import f32le, s16le, to_int16


@dataclass(frozen=True, slots=True)
class FrameCodec:
    """How one frame becomes a payload.

    ``whole_frames``: the codec takes frames of one length only, so the last is padded. Otherwise a shorter
    one ends the stream.
    """

    encode: Callable[[Samples], bytes]
    pre_skip: int = 0
    whole_frames: bool = False


_SAMPLE_CODECS: Final = {
    "pcm_s16le": FrameCodec(s16le),
    "pcm_f32le": FrameCodec(f32le),
    "mulaw": FrameCodec(lambda frame: encode_mulaw(to_int16(frame))),
    "alaw": FrameCodec(lambda frame: encode_alaw(to_int16(frame))),
}


class FramingEncoder:
    """The `PacketEncoder` of every format; ``codec`` is what differs."""

    def __init__(self, codec: FrameCodec, frame_samples: int, intake: Intake) -> None:
        self.pre_skip = codec.pre_skip
        self._codec = codec
        self._intake = intake
        self._framer = Framer(frame_samples)
        self._pts = 0

    @property
    def length(self) -> int:
        """See `PacketEncoder`."""
        return self._intake.length

    @property
    def clipped(self) -> int:
        """See `PacketEncoder`."""
        return self._intake.clipped

    def encode(self, pcm: Samples) -> list[AudioPacket]:
        """See `PacketEncoder`."""
        return self._packets(self._intake.take(pcm))

    def finish(self) -> list[AudioPacket]:
        """See `PacketEncoder`."""
        packets = self._packets(self._intake.close())
        left = self.pre_skip + self.length - self._pts if self.length else 0
        if self._codec.whole_frames:
            tail = self._framer.finish_padded(left)
        else:
            tail = [self._framer.finish()] if left else []
        for frame in tail:
            packets.append(self._packet(frame, min(len(frame), left)))
            left -= len(frame)
        return packets

    def _packets(self, samples: Samples) -> list[AudioPacket]:
        return [self._packet(frame, len(frame)) for frame in self._framer.push(samples)]

    def _packet(self, frame: Samples, samples: int) -> AudioPacket:
        packet = AudioPacket(self._codec.encode(frame), self._pts, samples)
        self._pts += samples
        return packet


def make_encoder(fmt: AudioFormat, model_rate: int, *, backend: Backend | None = None) -> PacketEncoder:
    """An encoder for one utterance of samples at ``model_rate`` Hz. Takes about 0.1 ms.

    ``backend`` is the binding of Opus, by default the one that can do what ``fmt`` asks for; raises
    `OpusUnavailable` if it is ``libopus`` and there is none.
    """
    if fmt.encoding == "opus":
        port = open_opus(fmt, backend or ("libopus" if fmt.dtx else "pyav"))
        codec = FrameCodec(port.encode, port.pre_skip, whole_frames=True)
    else:
        codec = _SAMPLE_CODECS[fmt.encoding]
    return FramingEncoder(codec, fmt.frame_samples, Intake(model_rate, fmt.sample_rate))
