"""The speech codec of the embedded voice: 24 kHz, 50 codes a second, one codebook of 8000.

    wave -> Encoder (not causal) -> FSQ -> codes        -> Decoder (causal, no look-ahead) -> wave
    reference wave -> SpeakerEncoder -> speaker vector --^

One code gives 480 samples. Arrays are time-major, `(B, T, C)`, where B is the batch, T the time and C
the channels. Everything that streams keeps its history in an explicit `DecoderState`, one row a stream.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

_MAX_LOG_MAGNITUDE = 5.0
_SHORT = 32


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """Shape of the codec; lengths are in samples unless named otherwise."""

    sample_rate: int = 24_000
    levels: tuple[int, ...] = (8, 8, 5, 5, 5)
    n_mels: int = 100
    mel_fft: int = 1024
    hop: int = 240
    n_fft: int = 960
    dim: int = 384
    inner: int = 1152
    kernel: int = 7
    encoder_high: int = 3
    encoder_low: int = 5
    decoder_low: int = 4
    decoder_high: int = 6
    encoder_shift: int = 480
    tail_pad: int = 15_360
    speaker_dim: int = 192
    speaker_width: int = 256

    @property
    def code_samples(self) -> int:
        """Samples of one code: two spectral frames."""
        return 2 * self.hop

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads `config.json`."""
        values = json.loads(path.read_text())
        return cls(**{**values, "levels": tuple(values["levels"])})

    def write(self, path: Path) -> None:
        """Writes `config.json`."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def mel_filters(n_mels: int, n_fft: int, sample_rate: int) -> Tensor:
    """Triangular mel filters, `(n_mels, n_fft // 2 + 1)`."""
    top = 2595 * math.log10(1 + sample_rate / 2 / 700)
    edges = 700 * (10 ** (torch.linspace(0, top, n_mels + 2) / 2595) - 1)
    bins = torch.linspace(0, sample_rate / 2, n_fft // 2 + 1)
    left, centre, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising = (bins - left) / (centre - left)
    falling = (right - bins) / (right - centre)
    return torch.minimum(rising, falling).clamp(min=0)


class Quantiser(nn.Module):
    """Finite scalar quantiser: each dimension is rounded to one of a few levels, no codebook is learnt."""

    half_range: Tensor
    offset: Tensor
    shift: Tensor
    width: Tensor
    count: Tensor
    basis: Tensor

    def __init__(self, levels: tuple[int, ...]) -> None:
        super().__init__()
        count = torch.tensor(levels, dtype=torch.float32)
        half = (count - 1) * (1 + 1e-3) / 2
        offset = torch.where(count % 2 == 0, 0.5, 0.0)
        basis = torch.cumprod(torch.tensor([1, *levels[:-1]]), 0)
        for name, value in {
            "half_range": half,
            "offset": offset,
            "shift": torch.atanh(offset / half),
            "width": torch.div(count, 2, rounding_mode="floor"),
            "count": count.long(),
            "basis": basis,
        }.items():
            self.register_buffer(name, value, persistent=False)
        self.size = math.prod(levels)

    def forward(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """Quantises `(B, T, D)` to vectors (gradients pass straight through) and codes `(B, T)`."""
        bounded = torch.tanh(latent.float() + self.shift) * self.half_range - self.offset
        rounded = torch.round(bounded)
        vectors = (bounded + (rounded - bounded).detach()) / self.width
        codes = ((rounded + self.width) * self.basis).sum(-1).round().long()
        return vectors, codes

    def vectors(self, codes: Tensor) -> Tensor:
        """Codes `(B, T)` to vectors `(B, T, D)`."""
        digits = torch.div(codes[..., None], self.basis, rounding_mode="floor") % self.count
        return (digits.float() - self.width) / self.width


class Depthwise(nn.Module):
    """Depthwise convolution over time as shifted multiply-adds, without padding."""

    def __init__(self, dim: int, kernel: int) -> None:
        super().__init__()
        bound = 1 / math.sqrt(kernel)
        self.weight = nn.Parameter(torch.empty(kernel, dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(dim).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        """`(B, T + kernel - 1, C)` to `(B, T, C)`."""
        kernel = self.weight.shape[0]
        length = x.shape[1] - kernel + 1
        if length <= _SHORT:  # a streaming step: three operations instead of seven
            return (x.unfold(1, kernel, 1).transpose(2, 3) * self.weight).sum(2) + self.bias
        y = torch.addcmul(self.bias, x[:, :length], self.weight[0])
        for i in range(1, kernel):
            y = torch.addcmul(y, x[:, i : i + length], self.weight[i])
        return y


class Block(nn.Module):
    """ConvNeXt block whose caller supplies the time padding, and optionally a scale and shift."""

    def __init__(self, dim: int, inner: int, kernel: int, depth: int) -> None:
        super().__init__()
        self.depthwise = Depthwise(dim, kernel)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.expand = nn.Linear(dim, inner)
        self.project = nn.Linear(inner, dim)
        self.gain = nn.Parameter(torch.full((dim,), 1 / depth))

    def forward(self, x: Tensor, padded: Tensor, film: Tensor | None = None) -> Tensor:
        """One block.

        Args:
            x: `(B, T, C)`, the residual stream.
            padded: `(B, T + kernel - 1, C)`, the same with its neighbours in time.
            film: `(B, 2, C)`, scale and shift of the normalised activations.
        """
        y: Tensor = self.norm(self.depthwise(padded))
        if film is not None:
            y = torch.addcmul(film[:, 1, None], y, 1 + film[:, 0, None])
        y = self.project(F.gelu(self.expand(y)))
        return x + y * self.gain


def _centred(x: Tensor, kernel: int) -> Tensor:
    return F.pad(x, (0, 0, kernel // 2, kernel // 2))


def _conv(layer: nn.Module, x: Tensor) -> Tensor:
    y: Tensor = layer(x.transpose(1, 2))
    return y.transpose(1, 2)


class LogMel(nn.Module):
    """Log-mel spectrogram, `(B, N)` samples to `(B, N // hop, n_mels)`."""

    filters: Tensor
    window: Tensor

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        self.fft, self.hop = config.mel_fft, config.hop
        filters = mel_filters(config.n_mels, config.mel_fft, config.sample_rate)
        self.register_buffer("filters", filters, persistent=False)
        self.register_buffer("window", torch.hann_window(config.mel_fft), persistent=False)

    def forward(self, wave: Tensor) -> Tensor:
        side = (self.fft - self.hop) // 2
        with torch.autocast(wave.device.type, enabled=False):
            padded = F.pad(wave.float(), (side, side))
            bins = torch.stft(
                padded, self.fft, self.hop, window=self.window, center=False, return_complex=True
            )
            magnitude = torch.sqrt(bins.real**2 + bins.imag**2 + 1e-9)
            return torch.log((self.filters @ magnitude).clamp(min=1e-4)).transpose(1, 2)


class Encoder(nn.Module):
    """Wave to latent vectors at 50 a second; sees about 0.45 s to both sides."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        dim, depth = config.dim, config.encoder_high + config.encoder_low
        self.config = config
        self.mel = LogMel(config)
        self.inp = nn.Conv1d(config.n_mels, dim, 7, padding=3)
        self.norm_in = nn.LayerNorm(dim, eps=1e-6)
        self.high = _blocks(config, config.encoder_high, depth)
        self.down = nn.Conv1d(dim, dim, 4, stride=2, padding=1)
        self.low = _blocks(config, config.encoder_low, depth)
        self.norm_out = nn.LayerNorm(dim, eps=1e-6)
        self.out = nn.Linear(dim, len(config.levels))

    def features(self, wave: Tensor) -> Tensor:
        """Log-mels of the signal advanced by `encoder_shift`, so that code t is fully heard."""
        shift = self.config.encoder_shift
        mel: Tensor = self.mel(F.pad(wave, (0, shift))[:, shift:])
        return mel

    def network(self, mel: Tensor) -> Tensor:
        """Log-mels `(B, 2T, n_mels)` to latents `(B, T, D)`."""
        kernel = self.config.kernel
        h = self.norm_in(_conv(self.inp, (mel + 4) / 3))
        for block in self.high:
            h = block(h, _centred(h, kernel))
        h = _conv(self.down, h)
        for block in self.low:
            h = block(h, _centred(h, kernel))
        latents: Tensor = self.out(self.norm_out(h))
        return latents

    def forward(self, wave: Tensor) -> Tensor:
        return self.network(self.features(wave))


class SpeakerEncoder(nn.Module):
    """Reference wave to one unit-length speaker vector; indifferent to loudness."""

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        width = config.speaker_width
        self.mel = LogMel(config)
        self.convs = nn.ModuleList(
            [
                nn.Conv1d(config.n_mels, width, 5, stride=2, padding=2),
                nn.Conv1d(width, width, 5, stride=2, padding=2),
                nn.Conv1d(width, width, 5, padding=2),
            ]
        )
        self.norms = nn.ModuleList([nn.LayerNorm(width, eps=1e-6) for _ in self.convs])
        self.out = nn.Linear(2 * width, config.speaker_dim)

    def network(self, mel: Tensor) -> Tensor:
        """Log-mels `(B, T, n_mels)` to speaker vectors `(B, speaker_dim)`."""
        h = (mel - mel.mean((1, 2), keepdim=True)) / 3
        for conv, norm in zip(self.convs, self.norms, strict=True):
            h = F.gelu(norm(_conv(conv, h)))
        h = h.float()
        mean = h.mean(1)
        spread = torch.sqrt((h - mean[:, None]).square().mean(1) + 1e-5)
        return F.normalize(self.out(torch.cat([mean, spread], -1)).float(), dim=-1)

    def forward(self, wave: Tensor) -> Tensor:
        return self.network(self.mel(wave))


@dataclass(slots=True)
class DecoderState:
    """History of the streaming decoder; row b of every tensor belongs to stream b.

    Attributes:
        low: `(B, decoder_low, kernel - 1, C)`, last inputs of each block at the code rate.
        high: `(B, decoder_high, kernel - 1, C)`, the same at the frame rate.
        overlap: `(B, n_fft - hop)`, the sounding tail of past frames.
    """

    low: Tensor
    high: Tensor
    overlap: Tensor

    @property
    def rows(self) -> int:
        """Number of streams."""
        return self.overlap.shape[0]

    @classmethod
    def stack(cls, states: list[DecoderState]) -> DecoderState:
        """Joins the rows of several states."""
        return cls(
            torch.cat([state.low for state in states]),
            torch.cat([state.high for state in states]),
            torch.cat([state.overlap for state in states]),
        )

    def split(self) -> list[DecoderState]:
        """One single-row state a stream; each owns its memory."""
        return [
            DecoderState(
                self.low[row : row + 1].clone(),
                self.high[row : row + 1].clone(),
                self.overlap[row : row + 1].clone(),
            )
            for row in range(self.rows)
        ]

    def reset(self, row: int) -> None:
        """Starts stream `row` afresh; the others are not touched."""
        for tensor in (self.low, self.high, self.overlap):
            tensor[row] = 0


class Decoder(nn.Module):
    """Latent vectors and a speaker vector to a wave; causal, code i gives samples 480i to 480i + 479."""

    window: Tensor

    def __init__(self, config: CodecConfig) -> None:
        super().__init__()
        dim, depth = config.dim, config.decoder_low + config.decoder_high
        self.config = config
        self.inp = nn.Linear(len(config.levels), dim)
        self.norm_in = nn.LayerNorm(dim, eps=1e-6)
        self.condition = nn.Linear(config.speaker_dim, dim * (1 + 2 * depth))
        self.low = _blocks(config, config.decoder_low, depth)
        self.up = nn.Linear(dim, 2 * dim)
        self.high = _blocks(config, config.decoder_high, depth)
        self.norm_out = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, config.n_fft + 2)
        self.register_buffer("window", torch.hann_window(config.n_fft) / 1.5, persistent=False)
        nn.init.zeros_(self.condition.weight)
        nn.init.zeros_(self.condition.bias)

    def init_state(self, batch: int) -> DecoderState:
        """Silence before the first code, for `batch` streams."""
        config = self.config
        history = (config.kernel - 1, config.dim)
        zeros = self.head.weight.new_zeros
        return DecoderState(
            zeros(batch, config.decoder_low, *history),
            zeros(batch, config.decoder_high, *history),
            zeros(batch, config.n_fft - config.hop),
        )

    def _stack(
        self, blocks: nn.ModuleList, h: Tensor, history: Tensor, film: Tensor
    ) -> tuple[Tensor, Tensor]:
        keep = self.config.kernel - 1
        new = []
        for i, block in enumerate(blocks):
            padded = torch.cat([history[:, i].to(h.dtype), h], 1)
            new.append(padded[:, -keep:])
            h = block(h, padded, film[:, i])
        return h, torch.stack(new, 1)

    def network(
        self, vectors: Tensor, speaker: Tensor, low: Tensor, high: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Everything up to the spectrum.

        Args:
            vectors: `(B, T, D)` quantised vectors.
            speaker: `(B, speaker_dim)`.
            low: block histories as in `DecoderState`.
            high: the same at the frame rate.

        Returns:
            Spectrum `(B, 2T, n_fft // 2 + 1, 2)` as real and imaginary part, and the new histories.
        """
        batch, length, _ = vectors.shape
        dim, n_low = self.config.dim, self.config.decoder_low
        condition = self.condition(speaker)
        film = condition[:, dim:].reshape(batch, -1, 2, dim)
        h = self.norm_in(self.inp(vectors)) + condition[:, None, :dim]
        h, low = self._stack(self.low, h, low, film[:, :n_low])
        h = self.up(h).reshape(batch, 2 * length, dim)
        h, high = self._stack(self.high, h, high, film[:, n_low:])
        log_magnitude, phase = self.head(self.norm_out(h)).float().chunk(2, -1)
        magnitude = torch.exp(log_magnitude.clamp(max=_MAX_LOG_MAGNITUDE))
        spectrum = torch.stack([magnitude * torch.cos(phase), magnitude * torch.sin(phase)], -1)
        return spectrum, low, high

    def synthesise(self, spectrum: Tensor, overlap: Tensor) -> tuple[Tensor, Tensor]:
        """Inverse transform and overlap-add; frame t completes the samples of hop t.

        Returns:
            Samples `(B, 2T * hop)` and the new overlap.
        """
        hop, size = self.config.hop, self.config.n_fft
        frames = torch.fft.irfft(torch.view_as_complex(spectrum.contiguous()), size) * self.window
        batch, count, _ = frames.shape
        per_frame = size // hop
        parts = frames.reshape(batch, count, per_frame, hop)
        total = F.pad(overlap.reshape(batch, per_frame - 1, hop), (0, 0, 0, count))
        for i in range(per_frame):
            total = total + F.pad(parts[:, :, i], (0, 0, i, per_frame - 1 - i))
        return (
            total[:, :count].reshape(batch, count * hop),
            total[:, count:].reshape(batch, size - hop),
        )

    def forward(self, vectors: Tensor, speaker: Tensor) -> Tensor:
        """Whole utterances: `(B, T, D)` to `(B, T * 480)`."""
        return self.step(vectors, speaker, self.init_state(vectors.shape[0]))

    def step(self, vectors: Tensor, speaker: Tensor, state: DecoderState) -> Tensor:
        """Next vectors `(B, n, D)` of every stream to samples `(B, n * 480)`; `state` is updated."""
        spectrum, state.low, state.high = self.network(vectors, speaker, state.low, state.high)
        wave, state.overlap = self.synthesise(spectrum, state.overlap)
        return wave


def _blocks(config: CodecConfig, count: int, depth: int) -> nn.ModuleList:
    return nn.ModuleList([Block(config.dim, config.inner, config.kernel, depth) for _ in range(count)])


class EmberCodec(nn.Module):
    """The whole codec. The public methods compute without gradients."""

    def __init__(self, config: CodecConfig | None = None) -> None:
        super().__init__()
        self.config = config or CodecConfig()
        self.encoder = Encoder(self.config)
        self.quantiser = Quantiser(self.config.levels)
        self.speaker_encoder = SpeakerEncoder(self.config)
        self.decoder = Decoder(self.config)

    @classmethod
    def load(cls, folder: str | Path, device: str = "cpu") -> Self:
        """Loads `config.json` and `model.safetensors` (stored in half precision, run in float32)."""
        folder = Path(folder)
        codec = cls(CodecConfig.read(folder / "config.json"))
        weights = load_file(folder / "model.safetensors")
        codec.load_state_dict({name: value.float() for name, value in weights.items()})
        return codec.to(device).eval().requires_grad_(False)

    @torch.no_grad()
    def encode(self, wave: Tensor) -> Tensor:
        """Samples `float32 (B, N)` at 24 kHz to codes `int64 (B, ceil(N / 480))`.

        Silence is appended, so that a row's codes do not depend on the padding of its batch.
        """
        samples = self.config.code_samples
        count = -(-wave.shape[1] // samples)
        padded = F.pad(wave, (0, count * samples - wave.shape[1] + self.config.tail_pad))
        codes: Tensor = self.quantiser(self.encoder(padded))[1]
        return codes[:, :count]

    @torch.no_grad()
    def speaker(self, wave: Tensor) -> Tensor:
        """Reference samples `float32 (B, N)` at 24 kHz, best 2 s or more, to vectors `(B, 192)`."""
        vectors: Tensor = self.speaker_encoder(wave)
        return vectors

    @torch.no_grad()
    def decode(self, codes: Tensor, spk: Tensor) -> Tensor:
        """Codes `int64 (B, T)` and speaker vectors `(B, 192)` to samples `float32 (B, T * 480)`."""
        wave: Tensor = self.decoder(self.quantiser.vectors(codes), spk)
        return wave

    def init_state(self, batch: int) -> DecoderState:
        """Streaming state of `batch` streams that have said nothing yet."""
        return self.decoder.init_state(batch)

    @torch.no_grad()
    def step(self, codes: Tensor, spk: Tensor, state: DecoderState) -> Tensor:
        """Next codes `int64 (B, n)` of every stream to samples `float32 (B, n * 480)`.

        The concatenation over steps equals `decode`, however the codes are cut. `state` is updated.
        """
        return self.decoder.step(self.quantiser.vectors(codes), spk, state)
