"""The teacher (Kokoro-82M) as a batched PyTorch model.

Every utterance of a batch may have its own length: padding is masked out of the attention, the recurrent
layers and the instance normalisation, so a batch gives what its rows give alone.  The export this project
uses has no noise in its excitation, so the output is deterministic.

Rates: phoneme tokens -> frames of 600 samples (40 a second) -> F0 frames of 300 samples (80 a second) ->
4800 spectral frames a second -> 24 kHz.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SAMPLE_RATE = 24000
FRAME = 600
FFT, HOP = 20, 5


@dataclass(frozen=True)
class Mask:
    """Which steps of a padded time axis are real: `keep` [B, 1, T] of 0/1 and `count` [B, 1, 1]."""

    keep: Tensor
    count: Tensor

    @classmethod
    def of(cls, lengths: Tensor, size: int) -> Mask:
        steps = torch.arange(size, device=lengths.device)
        keep = (steps[None] < lengths[:, None]).float()[:, None]
        return cls(keep, lengths.float()[:, None, None])


def normalise(x: Tensor, gamma: Tensor, beta: Tensor, keep: Tensor, count: Tensor) -> Tensor:
    """Instance norm over the real steps, scaled and shifted by the style; padding is left undefined."""
    mean = (x * keep).sum(-1, keepdim=True) / count
    centred = (x - mean) * keep
    var = (centred * centred).sum(-1, keepdim=True) / count
    return centred * ((1 + gamma) * torch.rsqrt(var + 1e-5)) + beta


def norm_leaky(x: Tensor, gamma: Tensor, beta: Tensor, keep: Tensor, count: Tensor) -> Tensor:
    return F.leaky_relu(normalise(x, gamma, beta, keep, count), 0.2) * keep


def norm_snake(x: Tensor, gamma: Tensor, beta: Tensor, alpha: Tensor, keep: Tensor, count: Tensor) -> Tensor:
    h = normalise(x, gamma, beta, keep, count)
    s = torch.sin(alpha * h)
    return (h + s * s / alpha) * keep


class Kernels:
    """The memory-bound functions above; `fuse()` swaps in compiled versions, `plain()` takes them back."""

    leaky: Callable[..., Tensor] = staticmethod(norm_leaky)
    snake: Callable[..., Tensor] = staticmethod(norm_snake)

    @classmethod
    def fuse(cls) -> None:
        cls.leaky = staticmethod(torch.compile(norm_leaky, dynamic=True))
        cls.snake = staticmethod(torch.compile(norm_snake, dynamic=True))

    @classmethod
    def plain(cls) -> None:
        cls.leaky, cls.snake = staticmethod(norm_leaky), staticmethod(norm_snake)


class StyleNorm(nn.Module):
    """The affine map from a style vector to the scale and shift of one normalisation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(128, 2 * channels)

    def forward(self, style: Tensor) -> tuple[Tensor, Tensor]:
        gamma, beta = self.fc(style)[:, :, None].chunk(2, 1)
        return gamma, beta


class StyledBlock(nn.Module):
    """Two convolutions with style-dependent normalisation and a shortcut; may double the frame rate."""

    def __init__(self, dim_in: int, dim_out: int, up: bool = False) -> None:
        super().__init__()
        self.norm1, self.norm2 = StyleNorm(dim_in), StyleNorm(dim_out)
        self.conv1 = nn.Conv1d(dim_in, dim_out, 3, padding=1)
        self.conv2 = nn.Conv1d(dim_out, dim_out, 3, padding=1)
        self.conv1x1 = nn.Conv1d(dim_in, dim_out, 1, bias=False) if dim_in != dim_out else None
        self.pool = (
            nn.ConvTranspose1d(dim_in, dim_in, 3, 2, 1, output_padding=1, groups=dim_in) if up else None
        )

    def forward(self, x: Tensor, style: Tensor, mask: Mask, wide: Mask) -> Tensor:
        """`mask` belongs to the input, `wide` to the output; they differ where the frame rate doubles."""
        short = x
        h = Kernels.leaky(x, *self.norm1(style), mask.keep, mask.count)
        if self.pool is not None:
            h = self.pool(h) * wide.keep
            short = short.repeat_interleave(2, -1)
        if self.conv1x1 is not None:
            short = self.conv1x1(short)
        h = Kernels.leaky(self.conv1(h), *self.norm2(style), wide.keep, wide.count)
        return (self.conv2(h) + short) / math.sqrt(2) * wide.keep


class SnakeBlock(nn.Module):
    """The generator's residual block: three pairs of dilated convolutions with a periodic activation."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        pad = [(kernel - 1) * d // 2 for d in (1, 3, 5)]
        conv = nn.Conv1d
        self.convs1 = nn.ModuleList(
            conv(channels, channels, kernel, padding=p, dilation=d)
            for p, d in zip(pad, (1, 3, 5), strict=True)
        )
        self.convs2 = nn.ModuleList(conv(channels, channels, kernel, padding=pad[0]) for _ in range(3))
        self.adain1 = nn.ModuleList(StyleNorm(channels) for _ in range(3))
        self.adain2 = nn.ModuleList(StyleNorm(channels) for _ in range(3))
        self.alpha1 = nn.ParameterList(torch.ones(1, channels, 1) for _ in range(3))
        self.alpha2 = nn.ParameterList(torch.ones(1, channels, 1) for _ in range(3))

    def forward(self, x: Tensor, style: Tensor, mask: Mask) -> Tensor:
        for k in range(3):
            h = Kernels.snake(x, *self.adain1[k](style), self.alpha1[k], mask.keep, mask.count)
            h = self.convs1[k](h)
            h = Kernels.snake(h, *self.adain2[k](style), self.alpha2[k], mask.keep, mask.count)
            x = x + self.convs2[k](h)
        return x


class Recurrent(nn.LSTM):
    """A bidirectional LSTM over padded rows: [B, T, in] -> [B, T, 512]."""

    def __init__(self, size: int) -> None:
        super().__init__(size, 256, batch_first=True, bidirectional=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:  # type: ignore[override]
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        y, _ = super().forward(packed)
        return pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0]


class SharedLayer(nn.Module):
    """The transformer layer that the phoneme encoder applies twelve times."""

    def __init__(self, dim: int = 768, heads: int = 12, inner: int = 2048) -> None:
        super().__init__()
        self.heads = heads
        self.attention = nn.ModuleDict({k: nn.Linear(dim, dim) for k in ("query", "key", "value", "dense")})
        self.attention["LayerNorm"] = nn.LayerNorm(dim, 1e-12)
        self.ffn, self.ffn_output = nn.Linear(dim, inner), nn.Linear(inner, dim)
        self.full_layer_layer_norm = nn.LayerNorm(dim, 1e-12)

    def forward(self, x: Tensor, allowed: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = (
            self.attention[n](x).view(b, t, self.heads, -1).transpose(1, 2) for n in ("query", "key", "value")
        )
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed).transpose(1, 2).reshape(b, t, -1)
        x = self.attention["LayerNorm"](x + self.attention["dense"](y))
        y = self.ffn_output(F.gelu(self.ffn(x), approximate="tanh"))
        return self.full_layer_layer_norm(x + y)


class PhonemeEncoder(nn.Module):
    """Phoneme tokens [B, T] -> contextual vectors [B, T, 768]."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(178, 128),
                "position_embeddings": nn.Embedding(512, 128),
                "token_type_embeddings": nn.Embedding(2, 128),
                "LayerNorm": nn.LayerNorm(128, 1e-12),
            }
        )
        group = nn.ModuleDict({"albert_layers": nn.ModuleList([SharedLayer()])})
        self.encoder = nn.ModuleDict(
            {
                "embedding_hidden_mapping_in": nn.Linear(128, 768),
                "albert_layer_groups": nn.ModuleList([group]),
            }
        )

    def forward(self, tokens: Tensor, keep: Tensor) -> Tensor:
        e = self.embeddings
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = e["word_embeddings"](tokens) + e["position_embeddings"](positions)
        x = e["LayerNorm"](x + e["token_type_embeddings"].weight[0])
        x = self.encoder["embedding_hidden_mapping_in"](x)
        layer = self.encoder["albert_layer_groups"][0]["albert_layers"][0]
        for _ in range(12):
            x = layer(x, keep[:, :, None].bool())
        return x


class DurationEncoder(nn.Module):
    """Alternating recurrent layers and style-dependent layer norms over the tokens: -> [B, T, 640]."""

    def __init__(self) -> None:
        super().__init__()
        self.lstms = nn.ModuleList(Recurrent(640) if k % 2 == 0 else StyleNorm(512) for k in range(6))

    def forward(self, x: Tensor, style: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        wide = style[:, None].expand(-1, x.shape[1], -1)
        x = torch.cat([x, wide], -1) * keep
        for block in self.lstms:
            if isinstance(block, Recurrent):
                x = block(x, lengths)
            else:
                gamma, beta = block(style)
                x = F.layer_norm(x, x.shape[-1:]) * (1 + gamma.mT) + beta.mT
                x = torch.cat([x, wide], -1) * keep
        return x


class Predictor(nn.Module):
    """Durations of the tokens, then pitch and energy of the frames."""

    def __init__(self) -> None:
        super().__init__()
        self.text_encoder = DurationEncoder()
        self.lstm, self.shared = Recurrent(640), Recurrent(640)
        self.duration_proj = nn.ModuleDict({"linear_layer": nn.Linear(512, 50)})
        stack = [(512, 512, False), (512, 256, True), (256, 256, False)]
        self.F0 = nn.ModuleList(StyledBlock(*s) for s in stack)
        self.N = nn.ModuleList(StyledBlock(*s) for s in stack)
        self.F0_proj, self.N_proj = nn.Conv1d(256, 1, 1), nn.Conv1d(256, 1, 1)

    def durations(self, d: Tensor, lengths: Tensor, speed: Tensor, keep: Tensor) -> Tensor:
        x = self.duration_proj["linear_layer"](self.lstm(d, lengths))
        frames = torch.round(torch.sigmoid(x).sum(-1) / speed[:, None]).clamp(min=1)
        return (frames * keep).long()

    def curves(
        self, x: Tensor, style: Tensor, lengths: Tensor, mask: Mask, wide: Mask
    ) -> tuple[Tensor, Tensor]:
        h = self.shared(x, lengths).mT * mask.keep
        out = []
        for stack, proj in ((self.F0, self.F0_proj), (self.N, self.N_proj)):
            y = stack[0](h, style, mask, mask)
            y = stack[2](stack[1](y, style, mask, wide), style, wide, wide)
            out.append(proj(y) * wide.keep)
        return out[0], out[1]


class TextEncoder(nn.Module):
    """Phoneme tokens -> the vectors that the decoder renders: [B, 512, T]."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(178, 512)
        self.cnn = nn.ModuleList(
            nn.ModuleList([nn.Conv1d(512, 512, 5, padding=2), ChannelNorm()]) for _ in range(3)
        )
        self.lstm = Recurrent(512)

    def forward(self, tokens: Tensor, lengths: Tensor, mask: Mask) -> Tensor:
        x = self.embedding(tokens).mT * mask.keep
        for conv, norm in self.cnn:  # type: ignore[misc]
            x = F.leaky_relu(norm(conv(x)), 0.2) * mask.keep
        return self.lstm(x.mT, lengths).mT * mask.keep


class ChannelNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(512)), nn.Parameter(torch.zeros(512))

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x.mT, (512,), self.gamma, self.beta).mT


class Generator(nn.Module):
    """Frames at 80 a second and the pitch curve -> waveform, by two upsamplings and a small inverse STFT."""

    def __init__(self) -> None:
        super().__init__()
        self.m_source = nn.Linear(9, 1)
        self.ups = nn.ModuleList(
            [nn.ConvTranspose1d(512, 256, 20, 10, 5), nn.ConvTranspose1d(256, 128, 12, 6, 3)]
        )
        self.noise_convs = nn.ModuleList([nn.Conv1d(22, 256, 12, 6, 3), nn.Conv1d(22, 128, 1)])
        self.noise_res = nn.ModuleList([SnakeBlock(256, 7), SnakeBlock(128, 11)])
        self.resblocks = nn.ModuleList(SnakeBlock(c, k) for c in (256, 128) for k in (3, 7, 11))
        self.conv_post = nn.Conv1d(128, 22, 7, padding=3)
        self.register_buffer("window", torch.hann_window(FFT), persistent=False)

    def excitation(self, f0: Tensor, keep: Tensor) -> Tensor:
        """Nine harmonics of the pitch curve f0 [B, 1, T], mixed to one signal [B, 300 T]."""
        harmonics = torch.arange(1, 10, device=f0.device, dtype=torch.float64)[None, :, None]
        turns = torch.cumsum(torch.remainder(f0.double() * harmonics / SAMPLE_RATE, 1), -1) * 300
        turns = F.interpolate(turns, scale_factor=300, mode="linear")
        waves = torch.sin(torch.remainder(turns, 1).float() * (2 * math.pi)) * 0.1
        voiced = (f0 > 10).float().repeat_interleave(300, -1)
        mixed = F.conv1d(waves * voiced, self.m_source.weight[:, :, None], self.m_source.bias)
        return (torch.tanh(mixed) * keep.repeat_interleave(300, -1))[:, 0]

    def forward(self, x: Tensor, style: Tensor, f0: Tensor, lengths: Tensor) -> Tensor:
        size = x.shape[-1]
        masks = [Mask.of(lengths * 10, size * 10), Mask.of(lengths * 60 + 1, size * 60 + 1)]
        source = self.excitation(f0, Mask.of(lengths, size).keep)
        spectrum = torch.stft(source, FFT, HOP, FFT, self.window, center=True, return_complex=True)
        source = torch.cat([spectrum.abs(), spectrum.angle()], 1) * masks[1].keep
        for i, mask in enumerate(masks):
            noise = self.noise_res[i](self.noise_convs[i](source) * mask.keep, style, mask)
            x = self.ups[i](F.leaky_relu(x, 0.1))
            if i == 1:
                x = F.pad(x, (1, 0), mode="reflect")
            x = (x + noise) * mask.keep
            y = self.resblocks[3 * i](x, style, mask)
            for k in (1, 2):
                y += self.resblocks[3 * i + k](x, style, mask)
            x = y.div_(3) * mask.keep
        x = self.conv_post(F.leaky_relu(x))
        magnitude = torch.exp(x[:, :11]) * masks[1].keep
        return torch.istft(torch.polar(magnitude, torch.sin(x[:, 11:])), FFT, HOP, FFT, self.window)


class Decoder(nn.Module):
    """Token vectors stretched to frames, pitch and energy -> waveform."""

    def __init__(self) -> None:
        super().__init__()
        self.F0_conv, self.N_conv = nn.Conv1d(1, 1, 3, 2, 1), nn.Conv1d(1, 1, 3, 2, 1)
        self.asr_res = nn.ModuleList([nn.Conv1d(512, 64, 1)])
        self.encode = StyledBlock(514, 1024)
        self.decode = nn.ModuleList(StyledBlock(1090, 1024 if k < 3 else 512, k == 3) for k in range(4))
        self.generator = Generator()

    def forward(self, text: Tensor, f0: Tensor, energy: Tensor, style: Tensor, frames: Tensor) -> Tensor:
        mask, wide = Mask.of(frames, text.shape[-1]), Mask.of(2 * frames, 2 * text.shape[-1])
        f, n = self.F0_conv(f0) * mask.keep, self.N_conv(energy) * mask.keep
        side = torch.cat([self.asr_res[0](text) * mask.keep, f, n], 1)
        x = self.encode(torch.cat([text, f, n], 1), style, mask, mask)
        for k, block in enumerate(self.decode):
            x = block(torch.cat([x, side], 1), style, mask, wide if k == 3 else mask)
        return self.generator(x, style, f0, 2 * frames)


class KokoroTeacher(nn.Module):
    """`forward` gives padded audio [B, samples] and the duration of every token in frames [B, T]."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = PhonemeEncoder()
        self.bert_encoder = nn.Linear(768, 512)
        self.predictor, self.text_encoder, self.decoder = Predictor(), TextEncoder(), Decoder()

    @torch.inference_mode()
    def forward(
        self, tokens: Tensor, lengths: Tensor, style: Tensor, speed: Tensor, multiple: int = 1
    ) -> tuple[Tensor, Tensor]:
        """tokens [B, T] (0 at both ends and in the padding), style [B, 256], speed [B].

        The frame axis is padded to a multiple of `multiple`, so that few different shapes occur.
        """
        mask = Mask.of(lengths, tokens.shape[1])
        keep = mask.keep[:, 0]
        render, prosody = style[:, :128], style[:, 128:]
        d = self.bert_encoder(self.bert(tokens, mask.keep))
        d = self.predictor.text_encoder(d, prosody, lengths, keep[:, :, None])
        durations = self.predictor.durations(d, lengths, speed, keep)
        frames = durations.sum(1)
        size = -(-int(frames.max()) // multiple) * multiple
        ends = durations.cumsum(1)
        index = torch.searchsorted(
            ends, torch.arange(size, device=ends.device).expand(len(ends), -1).contiguous(), right=True
        )
        index = index.clamp(max=tokens.shape[1] - 1)[:, :, None]
        narrow, wide = Mask.of(frames, size), Mask.of(2 * frames, 2 * size)
        stretched = d.gather(1, index.expand(-1, -1, d.shape[-1])) * narrow.keep.mT
        f0, energy = self.predictor.curves(stretched, prosody, frames, narrow, wide)
        text = self.text_encoder(tokens, lengths, mask)
        text = text.gather(2, index.mT.expand(-1, text.shape[1], -1)) * narrow.keep
        return self.decoder(text, f0, energy, render, frames), durations


def build(state: dict[str, Tensor], device: torch.device | str = "cpu") -> KokoroTeacher:
    """A teacher with the given weights, checked for missing and left-over tensors, ready to run."""
    model = KokoroTeacher()
    model.load_state_dict(state)
    return model.eval().to(device)
