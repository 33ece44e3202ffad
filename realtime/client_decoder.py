"""A client's decoding of packets to PCM, exact to the sample."""

from fractions import Fraction

import av
import numpy as np
import numpy.typing as npt

from realtime.client_errors import ProtocolViolation
from realtime.client_stream import Packet, StreamFormat

Pcm = npt.NDArray[np.float32]

_OPUS_RATE = 48_000


def decoded_rate(fmt: StreamFormat) -> int:
    """Sample rate of the decoded audio: Opus always decodes at 48 kHz, everything else as it was sent."""
    return _OPUS_RATE if fmt.encoding == "opus" else fmt.sample_rate


class Decoder:
    """Decodes one utterance. One packet is held back, because only the end tells how much of it is padding.

    Concatenated, what `decode` and `finish` give is exactly the utterance: pre-skip and padding are gone.
    """

    def __init__(self, fmt: StreamFormat) -> None:
        self.sample_rate = decoded_rate(fmt)
        self._format = fmt
        self._scale = Fraction(self.sample_rate, fmt.sample_rate)
        self._skip = int(fmt.pre_skip * self._scale)
        self._held: Pcm = np.zeros(0, np.float32)
        self._given = 0
        self._opus = _opus_decoder() if fmt.encoding == "opus" else None

    def decode(self, packet: Packet) -> Pcm:
        """Samples that are certain to be heard, float32 in [-1, 1], shape [N] at ``sample_rate``."""
        pcm = self._samples(packet.payload)
        drop = min(self._skip, len(pcm))
        self._skip -= drop
        ready, self._held = self._held, pcm[drop:]
        self._given += len(ready)
        return ready

    def finish(self, length: int) -> Pcm:
        """The rest, cut so that all samples together are ``length`` (at the format's rate)."""
        rest = int(length * self._scale) - self._given
        if not 0 <= rest <= len(self._held):
            raise ProtocolViolation(
                f"{length} samples were announced, {self._given + len(self._held)} decoded"
            )
        self._given += rest
        return self._held[:rest]

    def _samples(self, payload: bytes) -> Pcm:
        if self._opus is not None:
            try:
                frames = self._opus.decode(av.Packet(payload))
            except av.error.FFmpegError as error:
                raise ProtocolViolation(f"a packet is not Opus: {error}") from error
            return _unit(np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]))
        if self._format.encoding == "pcm_f32le":
            return np.frombuffer(payload, "<f4").astype(np.float32)
        if self._format.encoding == "pcm_s16le":
            return _unit(np.frombuffer(payload, "<i2"))
        return _G711[self._format.encoding][np.frombuffer(payload, np.uint8)]


def _opus_decoder() -> av.AudioCodecContext:
    context = av.CodecContext.create("libopus", "r")
    context.sample_rate = _OPUS_RATE
    context.layout = "mono"
    return context


def _unit(integers: npt.NDArray[np.signedinteger[npt.NBitBase]]) -> Pcm:
    return (integers / np.float32(32768)).astype(np.float32)


def _mulaw_table() -> Pcm:
    code = ~np.arange(256, dtype=np.uint8)
    magnitude = (((code & 0x0F).astype(np.int32) << 3) + 0x84 << ((code & 0x70).astype(np.int32) >> 4)) - 0x84
    return _unit(np.where(code & 0x80, -magnitude, magnitude))


def _alaw_table() -> Pcm:
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent = (code & 0x70).astype(np.int32) >> 4
    magnitude = ((code & 0x0F).astype(np.int32) << 4) + 8
    magnitude = np.where(exponent > 0, magnitude + 0x100 << np.maximum(exponent - 1, 0), magnitude)
    return _unit(np.where(code & 0x80, magnitude, -magnitude))


_G711 = {"mulaw": _mulaw_table(), "alaw": _alaw_table()}
