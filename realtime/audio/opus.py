"""Opus: one port, two bindings.

- ``pyav`` (default): the libopus inside PyAV, newest, no system package. Options are fixed once it is open.
- ``libopus``: a system libopus through opuslib-next, chosen explicitly. Bitrate, FEC and DTX can be changed
  between two frames. Importing this module needs neither the package nor the library.

Both release the GIL while they encode.
"""

from ctypes.util import find_library
from fractions import Fraction
from functools import cache
from typing import Any, Final, Literal, Protocol

import av

from engine.contract import Samples
from realtime.audio.formats import AudioFormat

Backend = Literal["pyav", "libopus"]

_HEAD_PRE_SKIP: Final = slice(10, 12)
"""Where an OpusHead holds its pre-skip: 16 bits, little endian, at 48 kHz whatever the rate."""
_MAX_PACKET: Final = 4_000
"""Bytes; libopus asks for this much room."""


class OpusPort(Protocol):
    """Encodes one mono stream frame by frame."""

    @property
    def pre_skip(self) -> int:
        """Samples at the format's rate that the decoder puts before the audio (the encoder's look-ahead)."""

    def encode(self, frame: Samples) -> bytes:
        """The packet of one whole frame: float32, shape [frame_samples]."""


class LiveOpusPort(OpusPort, Protocol):
    """A port that can be steered while it runs. A change holds from the next frame on."""

    def set_bitrate(self, bitrate: int) -> None:
        """Bit/s, 6,000 to 128,000."""

    def set_fec(self, on: bool, packet_loss: int) -> None:
        """In-band FEC against ``packet_loss`` percent of lost packets."""

    def set_dtx(self, on: bool) -> None:
        """Send next to nothing during silence."""


class OpusUnavailable(RuntimeError):
    """The direct binding was asked for and is not there. The message says what to install."""


class PyAvOpus:
    """libopus through PyAV.

    Frames go to the codec directly. ``CodecContext.encode`` would first lay a filter graph, which holds a
    thread for each core in every encoder and costs milliseconds at the first frame, only to cut frames that
    are already cut.
    """

    def __init__(self, fmt: AudioFormat) -> None:
        self._rate = fmt.sample_rate
        self._time_base = Fraction(1, fmt.sample_rate)
        self._pts = 0
        codec: Any = av.CodecContext.create("libopus", "w")
        codec.sample_rate = fmt.sample_rate
        codec.layout = "mono"
        codec.format = "flt"
        codec.time_base = self._time_base
        codec.bit_rate = fmt.bitrate
        codec.options = {
            "frame_duration": f"{fmt.frame_ms:g}",
            "application": fmt.application,
            "compression_level": str(fmt.complexity),
            "vbr": "on" if fmt.vbr else "off",
            "fec": str(int(fmt.fec)),
            "packet_loss": str(fmt.packet_loss),
            "dtx": str(int(fmt.dtx)),
        }
        codec.open()
        try:
            self._send: Any = codec._send_frame_and_recv
        except AttributeError:
            # A PyAV that does not show it: same packets, but slower to the first and with the threads.
            self._send = codec.encode
        pre_skip_48k = int.from_bytes(codec.extradata[_HEAD_PRE_SKIP], "little")
        self.pre_skip = pre_skip_48k * fmt.sample_rate // 48_000

    def encode(self, frame: Samples) -> bytes:
        """See `OpusPort`."""
        audio: Any = av.AudioFrame(format="flt", layout="mono", samples=len(frame))
        audio.planes[0].update(frame)
        audio.sample_rate = self._rate
        audio.time_base = self._time_base
        audio.pts = self._pts
        self._pts += len(frame)
        (packet,) = self._send(audio)
        return bytes(packet)


class SystemOpus:
    """The system's libopus through opuslib-next. Raises `OpusUnavailable` where either is missing."""

    def __init__(self, fmt: AudioFormat) -> None:
        binding = _binding()
        # The low-level call: the package's Encoder gives packets only as much room as the input has bytes.
        self._encode_float: Any = binding.api.encoder.encode_float
        application = {
            "voip": binding.APPLICATION_VOIP,
            "audio": binding.APPLICATION_AUDIO,
            "lowdelay": binding.APPLICATION_RESTRICTED_LOWDELAY,
        }[fmt.application]
        self._owner: Any = binding.Encoder(fmt.sample_rate, 1, application)
        self._state: Any = self._owner.encoder_state
        self._owner.complexity = fmt.complexity
        self._owner.vbr = int(fmt.vbr)
        if fmt.bitrate is not None:
            self.set_bitrate(fmt.bitrate)
        self.set_fec(fmt.fec, fmt.packet_loss)
        self.set_dtx(fmt.dtx)
        self.pre_skip = int(self._owner.lookahead)

    def encode(self, frame: Samples) -> bytes:
        """See `OpusPort`."""
        return bytes(self._encode_float(self._state, frame.tobytes(), len(frame), _MAX_PACKET))

    def set_bitrate(self, bitrate: int) -> None:
        """See `LiveOpusPort`."""
        self._owner.bitrate = bitrate

    def set_fec(self, on: bool, packet_loss: int) -> None:
        """See `LiveOpusPort`."""
        self._owner.inband_fec = int(on)
        self._owner.packet_loss_perc = packet_loss

    def set_dtx(self, on: bool) -> None:
        """See `LiveOpusPort`."""
        self._owner.dtx = int(on)


def open_opus(fmt: AudioFormat, backend: Backend = "pyav") -> OpusPort:
    """An encoder for ``fmt``. Raises `OpusUnavailable` for ``libopus`` where it is not installed."""
    return PyAvOpus(fmt) if backend == "pyav" else SystemOpus(fmt)


@cache  # looking for a library runs programs and takes tens of milliseconds
def _binding() -> Any:
    # opuslib-next looks for the library as it is imported and raises a bare Exception when there is none.
    if find_library("opus") is None:
        raise OpusUnavailable("no system libopus found (Debian: libopus0); backend pyav needs none")
    try:
        import opuslib_next
        import opuslib_next.api.encoder
    except ImportError as error:
        raise OpusUnavailable(
            "install the package opuslib-next (extra 'opus') to use backend libopus"
        ) from error
    return opuslib_next
