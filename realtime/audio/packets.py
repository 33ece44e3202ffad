"""What an encoder gives and is."""

from dataclasses import dataclass
from typing import Protocol

from engine.contract import Samples


@dataclass(frozen=True, slots=True)
class AudioPacket:
    """One codec packet, or whole samples of PCM or G.711.

    ``pts`` and ``samples`` are at the format's rate. Packets have no gaps: each begins where the one before
    it ends, the first at 0. For Opus they count decoded samples, which begin with ``pre_skip`` samples before
    the audio; of an utterance's last Opus packet only ``samples`` belong to it, though it decodes to a whole
    frame.
    """

    payload: bytes
    pts: int
    samples: int


class PacketEncoder(Protocol):
    """Encodes one utterance. Not thread-safe: one call at a time, from any thread."""

    @property
    def pre_skip(self) -> int:
        """Samples at the format's rate to drop from the start of the decoded audio; 0 except for Opus."""

    @property
    def length(self) -> int:
        """Samples of audio so far at the format's rate; after `finish`, the utterance's length."""

    @property
    def clipped(self) -> int:
        """Samples outside [-1, 1] so far."""

    def encode(self, pcm: Samples) -> list[AudioPacket]:
        """Packets that ``pcm`` completes. ``pcm`` is mono float32 at the model's rate, shape [N], any N >= 0.

        The array may be reused after the call. Raises `NotFinite`, and ``RuntimeError`` after `finish`.
        """

    def finish(self) -> list[AudioPacket]:
        """The rest: decoding it all yields ``pre_skip + length`` samples (and the last Opus frame's padding).

        Raises ``RuntimeError`` when called twice.
        """


class NotFinite(ValueError):
    """Samples contain NaN or infinity: nothing that could be encoded."""

    def __init__(self, start: int) -> None:
        super().__init__(f"samples from {start} on contain NaN or infinity")
        self.start = start
