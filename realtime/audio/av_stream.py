"""MP3, AAC and FLAC through PyAV's encoders, as streams of whole frames."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import av

from engine.contract import Samples
from realtime.audio.framer import Framer
from realtime.audio.pcm import to_int16

ADTS_RATES: Final = (
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
)  # fmt: skip
"""In the order of their four-bit index."""
_ADTS_BYTES: Final = 7


def adts_header(rate: int, payload_bytes: int) -> bytes:
    """Header of one AAC-LC frame, mono, no checksum."""
    profile, channels, size = 1, 1, payload_bytes + _ADTS_BYTES
    bits = 0xFFF << 44 | 0b0001 << 40  # sync word; MPEG-4, layer 0, no CRC
    bits |= profile << 38 | ADTS_RATES.index(rate) << 34 | channels << 30
    bits |= size << 13 | 0x7FF << 2  # buffer fullness: variable rate
    return bits.to_bytes(_ADTS_BYTES, "big")


def flac_header(stream_info: bytes) -> bytes:
    """Start of a FLAC stream of unknown length: the marker and STREAMINFO as the last metadata block."""
    return b"fLaC" + bytes([0x80]) + len(stream_info).to_bytes(3, "big") + stream_info


@dataclass(frozen=True, slots=True)
class AvFormat:
    """How PyAV is told to make one of these streams."""

    codec: str
    sample_format: str
    options: dict[str, str] = field(default_factory=dict)
    frame_prefix: Callable[[int, int], bytes] | None = None
    """From rate and packet size; `None` for packets that are complete."""
    stream_prefix: Callable[[bytes], bytes] | None = None
    """From the codec's extra data."""


MP3: Final = AvFormat("libmp3lame", "fltp", {"reservoir": "0"})
"""Without the bit reservoir every frame stands for itself, and the first leaves one frame (24 ms) sooner."""
AAC: Final = AvFormat("aac", "fltp", {"aac_coder": "fast"}, frame_prefix=adts_header)
FLAC: Final = AvFormat("flac", "s16", {"frame_size": "576"}, stream_prefix=flac_header)
"""576 samples are 24 ms at 24 kHz; the codec's own choice would be 96 ms."""


class AvStream:
    """One mono stream. ``bitrate`` in bit/s, ``None`` where there is nothing to choose."""

    def __init__(self, fmt: AvFormat, rate: int, bitrate: int | None) -> None:
        codec: Any = av.CodecContext.create(fmt.codec, "w")
        codec.sample_rate = rate
        codec.layout = "mono"
        codec.format = fmt.sample_format
        codec.time_base = Fraction(1, rate)
        if bitrate is not None:
            codec.bit_rate = bitrate
        codec.options = dict(fmt.options)
        # One thread: these encoders gain nothing from more, and each would hold its own.
        codec.thread_count = 1
        codec.open()
        try:
            self._send: Any = codec._send_frame_and_recv
        except AttributeError:
            self._send = codec.encode
        self._format = fmt
        self._rate = rate
        self._time_base = Fraction(1, rate)
        self._framer = Framer(int(codec.frame_size))
        self._pts = 0
        self._header = fmt.stream_prefix(bytes(codec.extradata)) if fmt.stream_prefix else b""

    def header(self) -> bytes:
        """What comes before the first frame; empty for MP3 and AAC."""
        return self._header

    def write(self, samples: Samples) -> bytes:
        """Frames that are complete."""
        return b"".join(self._encode(frame) for frame in self._framer.push(samples))

    def finish(self) -> bytes:
        """The last frames."""
        rest = self._framer.finish()
        last = self._encode(rest) if len(rest) else b""
        return last + self._joined(self._send(None))

    def _encode(self, frame: Samples) -> bytes:
        fmt = self._format
        audio: Any = av.AudioFrame(format=fmt.sample_format, layout="mono", samples=len(frame))
        audio.planes[0].update(frame if fmt.sample_format == "fltp" else to_int16(frame))
        audio.sample_rate = self._rate
        audio.time_base = self._time_base
        audio.pts = self._pts
        self._pts += len(frame)
        return self._joined(self._send(audio))

    def _joined(self, packets: Any) -> bytes:
        prefix = self._format.frame_prefix
        parts: list[bytes] = []
        for packet in packets:
            payload = bytes(packet)
            if prefix and payload:
                parts.append(prefix(self._rate, len(payload)))
            parts.append(payload)
        return b"".join(parts)
