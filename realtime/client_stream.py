"""What a client checks of one utterance's audio: framing, order, times, length and checksum.

Pure: no sockets, no clock. `realtime.client` feeds it; it is written apart from the server's framing so that
each is a test of the other.
"""

import struct
import zlib
from dataclasses import dataclass, field

import msgspec

from realtime.client_errors import ProtocolViolation, StreamTruncated

HEADER = struct.Struct(">BBHIQ")
"""version, flags, utterance index, sequence number, presentation time: 16 bytes, big endian."""
VERSION = 1
EOS, FIRST, DISCONTINUITY = 1, 2, 4

_PCM_WIDTH = {"pcm_s16le": 2, "pcm_f32le": 4, "mulaw": 1, "alaw": 1}
_OPUS_RATE = 48_000
_SILK_MS, _HYBRID_MS, _CELT_MS = (10.0, 20.0, 40.0, 60.0), (10.0, 20.0), (2.5, 5.0, 10.0, 20.0)


class StreamFormat(msgspec.Struct, frozen=True):
    """The audio format a session agreed on. ``pre_skip`` samples of the decoded audio are to be dropped."""

    encoding: str
    sample_rate: int
    frame_ms: float = 20.0
    bitrate: int | None = None
    pre_skip: int = 0

    def packet_samples(self, payload: bytes) -> int:
        """Length of one packet in samples at ``sample_rate``. Raises `ProtocolViolation`."""
        if self.encoding == "opus":
            return opus_samples(payload) * self.sample_rate // _OPUS_RATE
        width = _PCM_WIDTH.get(self.encoding)
        if width is None:
            raise ProtocolViolation(f"unknown encoding {self.encoding!r}")
        samples, rest = divmod(len(payload), width)
        if rest:
            raise ProtocolViolation(f"{len(payload)} bytes are not whole samples of {self.encoding}")
        return samples


@dataclass(frozen=True, slots=True)
class Frame:
    """A binary message: the header's fields and the payload."""

    flags: int
    index: int
    sequence: int
    pts: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Packet:
    """One checked codec packet. ``pts`` and ``samples`` are in samples at the format's rate."""

    payload: bytes
    sequence: int
    pts: int
    samples: int


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one utterance."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    codec_tokens: int = 0


class Done(msgspec.Struct, frozen=True):
    """The `utterance.done` message. ``ttfp_parts`` are milliseconds by stage."""

    utterance: str
    reason: str
    samples: int
    frames: int
    crc32: int
    audio_ms: float = 0.0
    ttfp_ms: float | None = None
    ttfp_parts: dict[str, float] | None = None
    budget_met: bool | None = None
    text_chars: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)


def parse_frame(message: bytes) -> Frame:
    """Read a binary message. Raises `ProtocolViolation` when it is not a version 1 frame."""
    if len(message) < HEADER.size:
        raise ProtocolViolation(f"a binary message of {len(message)} bytes is shorter than its header")
    version, flags, index, sequence, pts = HEADER.unpack_from(message)
    if version != VERSION:
        raise ProtocolViolation(f"frame version {version}, expected {VERSION}")
    return Frame(flags, index, sequence, pts, message[HEADER.size :])


def opus_samples(payload: bytes) -> int:
    """Duration of an Opus packet in samples at 48 kHz (RFC 6716, section 3.1)."""
    if not payload:
        raise ProtocolViolation("an Opus packet cannot be empty")
    toc = payload[0]
    config = toc >> 3
    if config < 12:
        frame_ms = _SILK_MS[config & 3]
    elif config < 16:
        frame_ms = _HYBRID_MS[config & 1]
    else:
        frame_ms = _CELT_MS[config & 3]
    if toc & 3 == 3:
        if len(payload) < 2:
            raise ProtocolViolation("an Opus packet of code 3 has no frame count")
        count = payload[1] & 0x3F
    else:
        count = 1 if toc & 3 == 0 else 2
    return int(frame_ms * _OPUS_RATE / 1000) * count


@dataclass(slots=True)
class StreamCheck:
    """The running check of one utterance, from its first frame to its `utterance.done`."""

    format: StreamFormat
    sequence: int = 0
    """Number of audio packets so far; the next frame's sequence number."""
    position: int = 0
    """End of the last packet, in samples."""
    length: int | None = None
    """The sentinel's presentation time, once it came."""
    crc32: int = 0
    _longest: int = field(default=0, repr=False)

    def frame(self, frame: Frame) -> Packet | None:
        """Check the next frame; None for the sentinel. Raises `ProtocolViolation`."""
        if self.length is not None:
            raise ProtocolViolation(f"a frame (sequence {frame.sequence}) follows the sentinel")
        if frame.sequence != self.sequence:
            raise ProtocolViolation(f"sequence number {frame.sequence}, expected {self.sequence}")
        if frame.flags & FIRST and frame.sequence:
            raise ProtocolViolation(f"frame {frame.sequence} says it is the first")
        if frame.flags & EOS:
            self._sentinel(frame)
            return None
        samples = self.format.packet_samples(frame.payload)
        if samples == 0:
            raise ProtocolViolation(f"frame {frame.sequence} is empty and not a sentinel")
        if frame.pts != self.position and not (frame.flags & DISCONTINUITY and frame.pts > self.position):
            raise ProtocolViolation(f"frame {frame.sequence} begins at {frame.pts}, expected {self.position}")
        self.sequence += 1
        self.position = frame.pts + samples
        self._longest = max(self._longest, samples)
        self.crc32 = zlib.crc32(frame.payload, self.crc32)
        return Packet(frame.payload, frame.sequence, frame.pts, samples)

    def done(self, done: Done) -> None:
        """Check what the server says it sent against what came.

        Raises `StreamTruncated`, `ProtocolViolation`.
        """
        if self.length is None:
            raise StreamTruncated("utterance.done came without a sentinel")
        for name, said, came in (
            ("samples", done.samples, self.length),
            ("frames", done.frames, self.sequence),
            ("crc32", done.crc32, self.crc32),
        ):
            if said != came:
                raise ProtocolViolation(f"utterance.done says {name} {said}, what came has {came}")

    def _sentinel(self, frame: Frame) -> None:
        if frame.payload:
            raise ProtocolViolation("the sentinel carries a payload")
        # The last packet may be padded to a whole one, and the decoder's start is to be dropped.
        padding = self.position - self.format.pre_skip - frame.pts if self.sequence else -frame.pts
        if padding < 0 or (padding and padding >= self._longest):
            raise ProtocolViolation(
                f"the sentinel says {frame.pts} samples, {self.position} came, {self.format.pre_skip} to skip"
            )
        self.length = frame.pts
