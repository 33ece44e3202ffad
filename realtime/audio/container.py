"""Containers for HTTP: every byte as early as its codec allows.

| name | bytes of the first audio after | silence before the audio when decoded |
|---|---|---|
| wav, pcm | the first chunk | none |
| opus (Ogg) | one frame, 20 ms | none (the pre-skip is in the header) |
| flac | 576 samples, 24 ms at 24 kHz | none |
| mp3 | 2 frames, 48 ms at 24 kHz | 1,105 samples |
| aac (ADTS) | 2 frames, 85 ms at 24 kHz | 1,024 samples |
"""

from dataclasses import dataclass
from typing import Final, Protocol

from engine.contract import Samples
from realtime.audio.av_stream import AAC, FLAC, MP3, AvFormat, AvStream
from realtime.audio.encoder import make_encoder
from realtime.audio.formats import FormatError, FormatRequest
from realtime.audio.intake import Intake
from realtime.audio.ogg import OggOpusWriter
from realtime.audio.packets import AudioPacket
from realtime.audio.pcm import s16le
from realtime.audio.wav import wav_header

CONTAINERS: Final = ("mp3", "opus", "aac", "flac", "wav", "pcm")
_BITRATES: Final = {"mp3": (16_000, 160_000), "aac": (16_000, 160_000), "opus": (6_000, 128_000)}
_LOSSY_BITRATE: Final = 64_000
_PCM_RATE: Final = 24_000
"""Headerless samples have a rate by agreement only; this is the one clients of the speech API expect."""


class ContainerWriter(Protocol):
    """Writes one utterance as a stream of bytes. Not thread-safe."""

    @property
    def content_type(self) -> str:
        """For the HTTP header."""

    @property
    def sample_rate(self) -> int:
        """Hz, of the audio inside."""

    @property
    def delay(self) -> int:
        """Samples of near-silence that a decoder puts before the audio and the stream does not say."""

    @property
    def length(self) -> int:
        """Samples of audio so far at ``sample_rate``."""

    def write(self, pcm: Samples) -> bytes:
        """Bytes that ``pcm`` (mono float32 at the model's rate, shape [N]) completes.

        Headers come before the first. Raises `NotFinite`, and ``RuntimeError`` after `finish`.
        """

    def finish(self) -> bytes:
        """The rest. Without any audio: a valid stream of length 0, as far as the format has one."""


class Body(Protocol):
    """What differs between containers: samples at the container's rate to bytes.

    ``header`` is called once, before anything else.
    """

    def header(self) -> bytes: ...

    def write(self, samples: Samples) -> bytes: ...

    def finish(self) -> bytes: ...


class PcmBody:
    """16-bit samples after ``header``. With ``promised`` samples in it, another length is an error."""

    def __init__(self, header: bytes = b"", promised: int | None = None) -> None:
        self._header = header
        self._promised = promised
        self._samples = 0

    def header(self) -> bytes:
        """See `Body`."""
        return self._header

    def write(self, samples: Samples) -> bytes:
        """See `Body`."""
        self._samples += len(samples)
        return s16le(samples)

    def finish(self) -> bytes:
        """See `Body`. Raises ``ValueError`` when the header lied."""
        if self._promised is not None and self._samples != self._promised:
            raise ValueError(f"the header says {self._promised} samples, but there were {self._samples}")
        return b""


class OggOpusBody:
    """Opus packets, each on a page of its own."""

    def __init__(self, rate: int, bitrate: int | None) -> None:
        fmt = FormatRequest("opus", rate, bitrate=bitrate).resolve()
        self._encoder = make_encoder(fmt, rate)
        self._pages = OggOpusWriter(rate, self._encoder.pre_skip)

    def header(self) -> bytes:
        """See `Body`."""
        return self._pages.headers()

    def write(self, samples: Samples) -> bytes:
        """See `Body`."""
        return b"".join(self._page(packet) for packet in self._encoder.encode(samples))

    def finish(self) -> bytes:
        """See `Body`."""
        packets = self._encoder.finish()
        if not packets:
            return self._pages.end()
        return b"".join(self._page(packet, last=packet is packets[-1]) for packet in packets)

    def _page(self, packet: AudioPacket, *, last: bool = False) -> bytes:
        return self._pages.packet(packet.payload, packet.pts + packet.samples, last=last)


@dataclass(frozen=True, slots=True)
class _Kind:
    content_type: str
    delay: int = 0
    av: AvFormat | None = None


_KINDS: Final = {
    "mp3": _Kind("audio/mpeg", 1_105, MP3),
    "opus": _Kind("audio/opus"),
    "aac": _Kind("audio/aac", 1_024, AAC),
    "flac": _Kind("audio/flac", 0, FLAC),
    "wav": _Kind("audio/wav"),
    "pcm": _Kind("audio/pcm"),
}


class Container:
    """The `ContainerWriter` of every format; ``body`` is what differs."""

    def __init__(self, kind: _Kind, body: Body, intake: Intake, sample_rate: int) -> None:
        self.content_type = kind.content_type
        self.delay = kind.delay
        self.sample_rate = sample_rate
        self._body = body
        self._intake = intake
        # Kept back until there is audio: a header alone would pass for the first byte of speech.
        self._header = body.header()

    @property
    def length(self) -> int:
        """See `ContainerWriter`."""
        return self._intake.length

    def write(self, pcm: Samples) -> bytes:
        """See `ContainerWriter`."""
        data = self._body.write(self._intake.take(pcm))
        return self._with_header(data) if data else b""

    def finish(self) -> bytes:
        """See `ContainerWriter`."""
        data = self._body.write(self._intake.close())
        return self._with_header(data + self._body.finish())

    def _with_header(self, data: bytes) -> bytes:
        header, self._header = self._header, b""
        return header + data


def content_type(name: str) -> str:
    """For the HTTP header of container ``name``. Raises `FormatError` for an unknown one."""
    return _kind(name).content_type


def make_container(
    name: str,
    model_rate: int,
    *,
    sample_rate: int | None = None,
    bitrate: int | None = None,
    samples: int | None = None,
) -> ContainerWriter:
    """A writer for one utterance of samples at ``model_rate`` Hz.

    ``sample_rate`` is that of what is written; open, it is the model's (24 kHz for pcm), or the next one that
    the format has. ``bitrate`` in bit/s is for mp3, aac and opus. ``samples`` is the length of a wav, at its
    rate, if it is known before. Raises `FormatError`.
    """
    kind = _kind(name)
    rate = _rate(name, model_rate, sample_rate)
    if bitrate is not None:
        _check_bitrate(name, bitrate)
    body: Body
    if kind.av is not None:
        body = AvStream(kind.av, rate, (bitrate or _LOSSY_BITRATE) if name in _BITRATES else None)
    elif name == "opus":
        body = OggOpusBody(rate, bitrate)
    elif name == "wav":
        body = PcmBody(wav_header(rate, samples), samples)
    else:
        body = PcmBody()
    return Container(kind, body, Intake(model_rate, rate), rate)


def _kind(name: str) -> _Kind:
    if name not in _KINDS:
        raise FormatError("response_format", name, ", ".join(CONTAINERS))
    return _KINDS[name]


def _rate(name: str, model_rate: int, asked: int | None) -> int:
    if name == "opus":
        return FormatRequest("opus", asked).resolve(model_rate).sample_rate
    if name == "pcm" and asked is None:
        return _PCM_RATE
    # PCM's rates are also those that MP3, ADTS and FLAC have.
    return FormatRequest("pcm_s16le", asked).resolve(model_rate).sample_rate


def _check_bitrate(name: str, bitrate: int) -> None:
    if name not in _BITRATES:
        raise FormatError("bitrate", bitrate, f"nothing for {name}: it has no bitrate to choose")
    low, high = _BITRATES[name]
    if type(bitrate) is not int or not low <= bitrate <= high:
        raise FormatError("bitrate", bitrate, f"a whole number from {low} to {high} for {name}")
