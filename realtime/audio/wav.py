"""WAV headers of mono streams."""

import struct
from typing import Final, Literal

UNKNOWN: Final = 0xFFFF_FFFF
"""What both size fields say when the length is not known yet: readers then read to the end of the file."""
MAX_DATA_BYTES: Final = UNKNOWN - 1 - 36

_FORMAT_TAG: Final = {"s16": 1, "f32": 3}
_SAMPLE_BYTES: Final = {"s16": 2, "f32": 4}
_HEADER: Final = struct.Struct("<4sI4s4sIHHIIHH4sI")


def wav_header(
    sample_rate: int, samples: int | None = None, sample_format: Literal["s16", "f32"] = "s16"
) -> bytes:
    """The 44 bytes before the samples. ``samples`` is the length, ``None`` if it is not known yet.

    Raises ``ValueError`` for a length that a WAV file cannot hold (4 GiB).
    """
    width = _SAMPLE_BYTES[sample_format]
    data_size, riff_size = UNKNOWN, UNKNOWN
    if samples is not None:
        data_size = samples * width
        riff_size = data_size + 36
        if not 0 <= data_size <= MAX_DATA_BYTES:
            raise ValueError(f"samples: {samples} is not a length that a WAV file can hold")
    return _HEADER.pack(
        b"RIFF", riff_size, b"WAVE", b"fmt ", 16,
        _FORMAT_TAG[sample_format], 1, sample_rate, sample_rate * width, width, width * 8,
        b"data", data_size,
    )  # fmt: skip
