"""Ogg Opus pages (RFC 3533, RFC 7845), one packet a page so that nothing waits for a page to fill.

A page costs 28 bytes. Granule positions count samples at 48 kHz, the pre-skip included, up to the end of the
page's packet; the last page's may be less than its packet holds, which is how the end is trimmed.
"""

import struct
import zlib
from typing import Final

_BIT_REVERSED: Final = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_NO_PACKET_ENDS: Final = 0xFFFF_FFFF_FFFF_FFFF
_FIRST: Final = 0x02
_LAST: Final = 0x04
_GRANULE_RATE: Final = 48_000
_PAGE: Final = struct.Struct("<4sBBQIIIB")
_CRC: Final = slice(22, 26)


def ogg_crc(data: bytes) -> int:
    """Ogg's CRC-32: polynomial 0x04C11DB7, most significant bit first, no inversion.

    zlib's is the same polynomial least significant bit first and inverted at both ends, so turning the bits
    of every byte around before and of the sum after gives Ogg's, at C speed.
    """
    turned = zlib.crc32(data.translate(_BIT_REVERSED), 0xFFFF_FFFF) ^ 0xFFFF_FFFF
    return int.from_bytes(turned.to_bytes(4, "little").translate(_BIT_REVERSED), "big")


def opus_head(pre_skip: int, input_rate: int) -> bytes:
    """OpusHead of a mono stream. ``pre_skip`` is in samples at 48 kHz; ``input_rate`` (Hz) only informs."""
    return struct.pack("<8sBBHIhB", b"OpusHead", 1, 1, pre_skip, input_rate, 0, 0)


def opus_tags(vendor: str, comments: tuple[str, ...] = ()) -> bytes:
    """OpusTags with ``comments`` of the form ``NAME=value``."""
    parts = [b"OpusTags", _counted(vendor), struct.pack("<I", len(comments))]
    return b"".join(parts + [_counted(comment) for comment in comments])


def _counted(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<I", len(data)) + data


class OggOpusWriter:
    """Pages of one logical stream.

    ``rate`` (Hz) is that of ``pre_skip`` and of the packets' times; it divides 48,000. ``serial`` tells
    streams apart when files are chained.
    """

    def __init__(
        self, rate: int, pre_skip: int, *, serial: int = 0x564F5857, vendor: str = "voxwire"
    ) -> None:
        if _GRANULE_RATE % rate:
            raise ValueError(f"rate: {rate} does not divide {_GRANULE_RATE}")
        self._rate = rate
        self._pre_skip = pre_skip
        self._serial = serial
        self._vendor = vendor
        self._sequence = 2  # after the two headers

    def headers(self) -> bytes:
        """The two header pages; must come first, whenever they are asked for."""
        head = opus_head(self._pre_skip * (_GRANULE_RATE // self._rate), self._rate)
        return self._page(head, 0, _FIRST, 0) + self._page(opus_tags(self._vendor), 0, 0, 1)

    def packet(self, payload: bytes, end: int, *, last: bool = False) -> bytes:
        """The page of one packet. ``end`` is the decoded sample after its last that belongs to the stream."""
        return self._next_page(payload, end * (_GRANULE_RATE // self._rate), _LAST if last else 0)

    def end(self) -> bytes:
        """An empty last page, for a stream whose last packet left before it was known to be the last."""
        return self._next_page(None, _NO_PACKET_ENDS, _LAST)

    def _next_page(self, packet: bytes | None, granule: int, flags: int) -> bytes:
        self._sequence += 1
        return self._page(packet, granule, flags, self._sequence - 1)

    def _page(self, packet: bytes | None, granule: int, flags: int, sequence: int) -> bytes:
        lacing = b""
        if packet is not None:
            # A packet ends with the first segment shorter than 255, so a multiple of 255 needs an empty one.
            full, rest = divmod(len(packet), 255)
            lacing = b"\xff" * full + bytes([rest])
        if len(lacing) > 255:
            raise ValueError(f"a packet of {len(packet or b'')} bytes does not fit a page of 65,024")
        fixed = _PAGE.pack(b"OggS", 0, flags, granule, self._serial, sequence, 0, len(lacing))
        page = bytearray(fixed + lacing + (packet or b""))
        page[_CRC] = ogg_crc(bytes(page)).to_bytes(4, "little")
        return bytes(page)
