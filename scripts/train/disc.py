"""Discriminators of the codec's adversarial loss: several periods, and several multi-band spectrograms."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_SLOPE = 0.1

Judgement = tuple[Tensor, list[Tensor]]
"""Scores of one discriminator and the activations of its layers."""


class PeriodDiscriminator(nn.Module):
    """Looks at every p-th sample side by side (HiFi-GAN, narrow)."""

    def __init__(self, period: int, channels: tuple[int, ...] = (32, 128, 256, 512)) -> None:
        super().__init__()
        self.period = period
        widths = (1, *channels)
        self.convs = nn.ModuleList(
            [nn.Conv2d(a, b, (5, 1), (3, 1), (2, 0)) for a, b in itertools.pairwise(widths)]
            + [nn.Conv2d(channels[-1], channels[-1], (5, 1), 1, (2, 0))]
        )
        self.out = nn.Conv2d(channels[-1], 1, (3, 1), 1, (1, 0))

    def forward(self, wave: Tensor) -> Judgement:
        """`(B, N)` samples."""
        x = F.pad(wave[:, None], (0, -wave.shape[-1] % self.period), mode="reflect")
        x = x.reshape(wave.shape[0], 1, -1, self.period)
        features = []
        for conv in self.convs:
            x = F.leaky_relu(conv(x), _SLOPE)
            features.append(x)
        return self.out(x), features


class BandDiscriminator(nn.Module):
    """Looks at the complex spectrogram, every frequency band with weights of its own (Descript)."""

    EDGES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)

    def __init__(self, size: int, width: int = 32) -> None:
        super().__init__()
        self.size = size
        bins = size // 2 + 1
        edges = [int(edge * bins) for edge in self.EDGES]
        self.bands = list(itertools.pairwise(edges))
        self.register_buffer("window", torch.hann_window(size), persistent=False)
        self.stacks = nn.ModuleList([self._stack(width) for _ in self.bands])
        self.out = nn.Conv2d(width, 1, (3, 3), 1, 1)

    @staticmethod
    def _stack(width: int) -> nn.ModuleList:
        return nn.ModuleList(
            [
                nn.Conv2d(2, width, (3, 9), 1, (1, 4)),
                nn.Conv2d(width, width, (3, 9), (1, 2), (1, 4)),
                nn.Conv2d(width, width, (3, 9), (1, 2), (1, 4)),
                nn.Conv2d(width, width, (3, 3), 1, 1),
            ]
        )

    def forward(self, wave: Tensor) -> Judgement:
        """`(B, N)` samples."""
        with torch.autocast(wave.device.type, enabled=False):
            bins = torch.stft(
                wave.float(),
                self.size,
                self.size // 4,
                window=self.window,
                center=True,
                return_complex=True,
            )
            spectrum = torch.stack([bins.real, bins.imag], 1).transpose(2, 3)
        features, tops = [], []
        for (low, high), stack in zip(self.bands, self.stacks, strict=True):
            x = spectrum[..., low:high]
            for conv in stack:
                x = F.leaky_relu(conv(x), _SLOPE)
                features.append(x)
            tops.append(x)
        return self.out(torch.cat(tops, -1)), features


class Discriminators(nn.Module):
    """All of them; plain convolutions without weight norm, which keeps the number of kernels low."""

    def __init__(
        self,
        periods: tuple[int, ...] = (2, 3, 5, 7, 11),
        sizes: tuple[int, ...] = (2048, 1024, 512),
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            [*(PeriodDiscriminator(p) for p in periods), *(BandDiscriminator(n) for n in sizes)]
        )

    def forward(self, wave: Tensor) -> list[Judgement]:
        return [part(wave) for part in self.parts]
