"""The binary audio frame of the native protocol: a 16-byte header, big endian, and one codec packet.

| bytes | field |
|---|---|
| 0 | version = 1 |
| 1 | flags: bit 0 EOS (the sentinel), bit 1 FIRST, bit 2 DISCONTINUITY |
| 2-3 | utterance index in the session (u16, wraps) |
| 4-7 | sequence number in the utterance (u32, from 0, no gaps) |
| 8-15 | presentation time of the first sample, in samples at the format's rate (u64) |
"""

import struct
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, Self

VERSION: Final = 1
HEADER: Final = struct.Struct(">BBHIQ")
INDEX_MODULUS: Final = 1 << 16


class Flags(IntFlag):
    """Flags of a frame."""

    NONE = 0
    EOS = 1
    FIRST = 2
    DISCONTINUITY = 4


class FrameError(ValueError):
    """Bytes that are no audio frame."""


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """One binary message. ``index`` is taken modulo 65536 when written."""

    index: int
    sequence: int
    pts: int
    payload: bytes = b""
    flags: Flags = Flags.NONE

    def to_bytes(self) -> bytes:
        """The frame on the wire."""
        header = HEADER.pack(VERSION, self.flags, self.index % INDEX_MODULUS, self.sequence, self.pts)
        return header + self.payload

    @classmethod
    def parse(cls, message: bytes) -> Self:
        """Read a frame. Raises `FrameError`."""
        if len(message) < HEADER.size:
            raise FrameError(f"{len(message)} bytes are less than a header of {HEADER.size}")
        version, flags, index, sequence, pts = HEADER.unpack_from(message)
        if version != VERSION:
            raise FrameError(f"version {version}, expected {VERSION}")
        if flags & ~0x07:
            raise FrameError(f"unknown flags {flags:#x}")
        return cls(index, sequence, pts, message[HEADER.size :], Flags(flags))
