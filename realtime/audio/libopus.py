"""libopus by ctypes: the one that PyAV brings, else the system's.

A binding of our own because the packaged ones look for a system library only, and fail on import without it.
Set up alike, it gives the same bytes as PyAV's encoder over the same library.
"""

import ctypes
from ctypes.util import find_library
from functools import cache
from pathlib import Path
from typing import Final

import av

from engine.contract import Samples
from realtime.audio.formats import AudioFormat

# opus_defines.h
_APPLICATION: Final = {"voip": 2048, "audio": 2049, "lowdelay": 2051}
_SET_BITRATE: Final = 4002
_SET_VBR: Final = 4006
_SET_COMPLEXITY: Final = 4010
_SET_INBAND_FEC: Final = 4012
_SET_PACKET_LOSS: Final = 4014
_SET_DTX: Final = 4016
_SET_VBR_CONSTRAINT: Final = 4020
_GET_LOOKAHEAD: Final = 4027

_MAX_PACKET: Final = 4_000
"""Bytes: the room that libopus asks for."""
_BUNDLED: Final = ("../av.libs/libopus*", "../av.libs/opus*", ".dylibs/libopus*")
"""Where wheels of PyAV keep it, from the package: Linux, Windows, macOS."""


class OpusUnavailable(RuntimeError):
    """Something was asked of Opus that is not there on this machine. The message says what would help."""


class OpusFault(RuntimeError):
    """libopus refused a call; ``code`` is its error code."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"libopus: {call} failed with code {code}")
        self.code = code


@cache  # looking for a library runs programs and takes tens of milliseconds
def load_libopus() -> ctypes.CDLL:
    """The library, with the types of the calls that are used. Raises `OpusUnavailable`."""
    home = Path(av.__file__).parent
    bundled = [str(path) for pattern in _BUNDLED for path in sorted(home.glob(pattern))]
    name = next(iter(bundled), None) or find_library("opus")
    if name is None:
        raise OpusUnavailable("no libopus: none inside this PyAV and none on the system (Debian: libopus0)")
    library = ctypes.CDLL(name)
    library.opus_encoder_create.restype = ctypes.c_void_p
    library.opus_encoder_create.argtypes = [ctypes.c_int32, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    library.opus_encoder_destroy.restype = None
    library.opus_encoder_destroy.argtypes = [ctypes.c_void_p]
    library.opus_encode_float.restype = ctypes.c_int32
    library.opus_encode_float.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int32,
    ]  # fmt: skip
    # Variadic: the types of the fixed arguments must be known for the rest to be passed rightly everywhere.
    library.opus_encoder_ctl.restype = ctypes.c_int
    library.opus_encoder_ctl.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return library


class LibOpus:
    """A `LiveOpusPort`. Raises `OpusUnavailable` where there is no libopus."""

    def __init__(self, fmt: AudioFormat) -> None:
        self._state: int | None = None
        self._library = load_libopus()
        error = ctypes.c_int()
        # Frames under 10 ms are CELT only, which needs 2.5 ms of look-ahead instead of 6.5 when told so.
        application = _APPLICATION[fmt.application if fmt.frame_ms >= 10 else "lowdelay"]
        state = self._library.opus_encoder_create(fmt.sample_rate, 1, application, ctypes.byref(error))
        if error.value:
            raise OpusFault("opus_encoder_create", error.value)
        self._state = state
        self._packet = ctypes.create_string_buffer(_MAX_PACKET)
        self._frame_samples = fmt.frame_samples
        self._set(_SET_COMPLEXITY, fmt.complexity)
        self._set(_SET_VBR, int(fmt.vbr))
        self._set(_SET_VBR_CONSTRAINT, 0)
        if fmt.bitrate is not None:
            self.set_bitrate(fmt.bitrate)
        self.set_fec(fmt.fec, fmt.packet_loss)
        self.set_dtx(fmt.dtx)
        lookahead = ctypes.c_int32()
        self._check(
            "look-ahead", self._library.opus_encoder_ctl(state, _GET_LOOKAHEAD, ctypes.byref(lookahead))
        )
        self.pre_skip = lookahead.value

    def __del__(self) -> None:
        if self._state is not None:
            self._library.opus_encoder_destroy(self._state)

    def encode(self, frame: Samples) -> bytes:
        """See `OpusPort`."""
        if frame.dtype != "float32" or frame.shape != (self._frame_samples,) or not frame.flags.c_contiguous:
            # libopus would read past what is there.
            raise ValueError(f"frame: {frame.dtype} {frame.shape}, must be float32 ({self._frame_samples},)")
        size = self._library.opus_encode_float(
            self._state, frame.ctypes.data, len(frame), self._packet, _MAX_PACKET
        )
        self._check("opus_encode_float", size)
        return self._packet.raw[:size]

    def set_bitrate(self, bitrate: int) -> None:
        """See `LiveOpusPort`."""
        self._set(_SET_BITRATE, bitrate)

    def set_fec(self, on: bool, packet_loss: int) -> None:
        """See `LiveOpusPort`."""
        self._set(_SET_INBAND_FEC, int(on))
        self._set(_SET_PACKET_LOSS, packet_loss)

    def set_dtx(self, on: bool) -> None:
        """See `LiveOpusPort`."""
        self._set(_SET_DTX, int(on))

    def _set(self, request: int, value: int) -> None:
        self._check(
            f"request {request}", self._library.opus_encoder_ctl(self._state, request, ctypes.c_int32(value))
        )

    @staticmethod
    def _check(call: str, result: int) -> None:
        if result < 0:
            raise OpusFault(call, result)
