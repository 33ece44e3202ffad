"""Opus: one port, two bindings.

- ``pyav`` (default): libopus through PyAV's encoder. Options are fixed once it is open, and there is no DTX.
- ``libopus``: the library itself, chosen explicitly. Bitrate, FEC and DTX can be changed between two frames.

Neither needs a system package: where no libopus is installed, the second takes the one inside PyAV. Both
release the GIL while they encode.
"""

from fractions import Fraction
from typing import Any, Final, Literal, Protocol

import av

from engine.contract import Samples
from realtime.audio.formats import AudioFormat
from realtime.audio.libopus import LibOpus, OpusUnavailable

Backend = Literal["pyav", "libopus"]

_HEAD_PRE_SKIP: Final = slice(10, 12)
"""Where an OpusHead holds its pre-skip: 16 bits, little endian, at 48 kHz whatever the rate."""


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


class PyAvOpus:
    """libopus through PyAV. Raises `OpusUnavailable` for options that this PyAV does not pass on.

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
            **({"dtx": "1"} if fmt.dtx else {}),
        }
        codec.open()
        if codec.options:  # what the codec did not take
            raise OpusUnavailable(f"PyAV's libopus has no {', '.join(codec.options)}; backend libopus has")
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


def open_opus(fmt: AudioFormat, backend: Backend = "pyav") -> OpusPort:
    """An encoder for ``fmt``. Raises `OpusUnavailable` for what ``backend`` does not have here."""
    return PyAvOpus(fmt) if backend == "pyav" else open_live_opus(fmt)


def open_live_opus(fmt: AudioFormat) -> LiveOpusPort:
    """An encoder that can be steered. Raises `OpusUnavailable` where there is no libopus to load."""
    return LibOpus(fmt)
