"""Audio formats a client can ask for: what they are, what is allowed, what the defaults are."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, Self, get_args

Encoding = Literal["opus", "pcm_s16le", "pcm_f32le", "mulaw", "alaw"]
Application = Literal["voip", "audio", "lowdelay"]

DEFAULT_ENCODING: Final = "opus"
ENCODINGS: Final[tuple[str, ...]] = get_args(Encoding)
APPLICATIONS: Final[tuple[str, ...]] = get_args(Application)

OPUS_RATES: Final = (8_000, 12_000, 16_000, 24_000, 48_000)
PCM_RATES: Final = (8_000, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
G711_RATES: Final = (8_000,)
OPUS_FRAMES_MS: Final = (2.5, 5.0, 10.0, 20.0, 40.0, 60.0)
PACKET_MS: Final = (5.0, 100.0)
"""Shortest and longest packet of the encodings without a codec frame of their own."""
OPUS_BITRATES: Final = (6_000, 128_000)

_RATES: Final[dict[str, tuple[int, ...]]] = {
    "opus": OPUS_RATES,
    "pcm_s16le": PCM_RATES,
    "pcm_f32le": PCM_RATES,
    "mulaw": G711_RATES,
    "alaw": G711_RATES,
}
_OPUS_BITRATE: Final = {8_000: 16_000, 12_000: 20_000, 16_000: 24_000, 24_000: 32_000, 48_000: 32_000}
_OPUS_ONLY: Final = ("bitrate", "complexity", "vbr", "application", "fec", "packet_loss", "dtx")


class FormatError(ValueError):
    """A format that cannot be served.

    ``field`` names what is wrong; the message says what was given and what is allowed.
    """

    def __init__(self, field: str, given: object, allowed: str) -> None:
        super().__init__(f"{field}: {given!r} is not possible; allowed: {allowed}")
        self.field = field
        self.given = given
        self.allowed = allowed


def _one_of(values: Iterable[object]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _check_int(field: str, value: object, low: int, high: int) -> None:
    if type(value) is not int or not low <= value <= high:
        raise FormatError(field, value, f"a whole number from {low} to {high}")


def _check_bool(field: str, value: object) -> None:
    if type(value) is not bool:
        raise FormatError(field, value, "true or false")


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """A complete, checked format. Raises `FormatError` on anything that cannot be encoded.

    ``bitrate`` is in bit/s; for Opus it is never ``None`` once made (the default of the rate is filled in),
    for every other encoding it always is. The fields after it are Opus's own: ``complexity`` 0 to 10, ``vbr``
    or constant bitrate, ``fec`` in-band for ``packet_loss`` percent, ``dtx`` no bits for silence.

    Complexity 5 with ``voip`` is the default for speech: PESQ 4.46 at 32 kbit/s in 110 us a frame, where
    complexity 10 has 4.49 in 147 us and ``audio`` below complexity 7 (CELT only) 4.00 in 39 us.
    """

    encoding: Encoding = "opus"
    sample_rate: int = 24_000
    frame_ms: float = 20.0
    bitrate: int | None = None
    complexity: int = 5
    vbr: bool = True
    application: Application = "voip"
    fec: bool = False
    packet_loss: int = 0
    dtx: bool = False

    def __post_init__(self) -> None:
        if self.encoding not in ENCODINGS:
            raise FormatError("encoding", self.encoding, _one_of(ENCODINGS))
        rates = _RATES[self.encoding]
        if type(self.sample_rate) is not int or self.sample_rate not in rates:
            raise FormatError("sample_rate", self.sample_rate, f"{_one_of(rates)} Hz for {self.encoding}")
        self._check_frame()
        if self.encoding == "opus":
            self._check_opus()
        elif self.bitrate is not None:
            raise FormatError(
                "bitrate", self.bitrate, f"nothing for {self.encoding}: only opus has a bitrate"
            )

    def _check_frame(self) -> None:
        given = self.frame_ms
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise FormatError("frame_ms", given, "a number of milliseconds")
        if self.encoding == "opus":
            if given not in OPUS_FRAMES_MS:
                raise FormatError("frame_ms", given, f"{_one_of(OPUS_FRAMES_MS)} for opus")
            return
        low, high = PACKET_MS
        if not low <= given <= high:
            raise FormatError("frame_ms", given, f"{low:g} to {high:g} for {self.encoding}")
        if not (self.sample_rate * given / 1000).is_integer():
            raise FormatError("frame_ms", given, f"a length that is whole samples at {self.sample_rate} Hz")

    def _check_opus(self) -> None:
        if self.bitrate is None:
            object.__setattr__(self, "bitrate", _OPUS_BITRATE[self.sample_rate])
        _check_int("bitrate", self.bitrate, *OPUS_BITRATES)
        _check_int("complexity", self.complexity, 0, 10)
        _check_int("packet_loss", self.packet_loss, 0, 100)
        for name, flag in (("vbr", self.vbr), ("fec", self.fec), ("dtx", self.dtx)):
            _check_bool(name, flag)
        if self.application not in APPLICATIONS:
            raise FormatError("application", self.application, _one_of(APPLICATIONS))
        if self.fec and (self.frame_ms < 10 or self.application == "lowdelay"):
            # Opus carries FEC in its SILK layer, which these settings never use.
            raise FormatError("fec", self.fec, "frames of 10 ms or more and application voip or audio")

    @property
    def frame_samples(self) -> int:
        """Samples of one packet at ``sample_rate``."""
        return round(self.sample_rate * self.frame_ms / 1000)


@dataclass(frozen=True, slots=True)
class FormatRequest:
    """What somebody asked for: ``None`` is what they left open. Fields are those of `AudioFormat`."""

    encoding: str | None = None
    sample_rate: int | None = None
    frame_ms: float | None = None
    bitrate: int | None = None
    complexity: int | None = None
    vbr: bool | None = None
    application: str | None = None
    fec: bool | None = None
    packet_loss: int | None = None
    dtx: bool | None = None

    @property
    def explicit(self) -> frozenset[str]:
        """Names of the fields that were set."""
        return frozenset(self._set())

    def over(self, defaults: Self) -> Self:
        """These wishes, and ``defaults`` where one is open.

        Another encoding than the default's drops the defaults that were meant for that one.
        """
        base = defaults._set()
        if self.encoding is not None and self.encoding != (defaults.encoding or DEFAULT_ENCODING):
            base = {}
        return type(self)(**(base | self._set()))

    def resolve(self, model_rate: int = 24_000) -> AudioFormat:
        """Fill what is open: Opus, 20 ms, and of the rates allowed the one nearest above ``model_rate``.

        Raises `FormatError`.
        """
        chosen = self._set()
        encoding = chosen.setdefault("encoding", DEFAULT_ENCODING)
        if encoding not in ENCODINGS:
            raise FormatError("encoding", encoding, _one_of(ENCODINGS))
        if encoding != "opus":
            for name in _OPUS_ONLY:
                if name in chosen:
                    raise FormatError(name, chosen[name], f"nothing for {encoding}: it is an option of opus")
        rates = _RATES[encoding]
        chosen.setdefault(
            "sample_rate", min((rate for rate in rates if rate >= model_rate), default=rates[-1])
        )
        return AudioFormat(**chosen)

    def _set(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}
