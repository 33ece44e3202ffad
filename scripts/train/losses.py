"""Losses of the codec: multi-scale spectra, hinge GAN, feature matching, phonemes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.ember.codec import mel_filters
from scripts.train.disc import Judgement
from scripts.train.teacher_audio import NO_LABEL


class SpectralLoss(nn.Module):
    """L1 of log-mels and log-magnitudes at several resolutions."""

    SCALES = ((256, 20), (512, 40), (1024, 100), (2048, 160))

    def __init__(self, sample_rate: int) -> None:
        super().__init__()
        for size, n_mels in self.SCALES:
            self.register_buffer(f"mel_{size}", mel_filters(n_mels, size, sample_rate))
            self.register_buffer(f"window_{size}", torch.hann_window(size))

    def spectra(self, wave: Tensor) -> list[Tensor]:
        """Short-time spectra of `(B, N)` as real tensors `(B, bins, frames, 2)`."""
        return [
            torch.view_as_real(
                torch.stft(
                    wave.float(),
                    size,
                    size // 4,
                    window=self.get_buffer(f"window_{size}"),
                    center=True,
                    return_complex=True,
                )
            )
            for size, _ in self.SCALES
        ]

    def distance(self, made: list[Tensor], true: list[Tensor]) -> Tensor:
        """The loss between two results of `spectra`; pure arithmetic, so it compiles well."""
        total = made[0].new_zeros(())
        for (size, _), a, b in zip(self.SCALES, made, true, strict=True):
            filters = self.get_buffer(f"mel_{size}")
            a = torch.sqrt(a.square().sum(-1) + 1e-9)
            b = torch.sqrt(b.square().sum(-1) + 1e-9)
            mel_a = torch.log((filters @ a).clamp(min=1e-5))
            mel_b = torch.log((filters @ b).clamp(min=1e-5))
            total = total + F.l1_loss(mel_a, mel_b)
            total = total + 0.25 * F.l1_loss(torch.log(a + 1e-4), torch.log(b + 1e-4))
        return total / len(self.SCALES)


class PhonemeHead(nn.Module):
    """Reads the phoneme of every 20 ms frame off the quantised vectors, so that they must carry it."""

    def __init__(self, dim: int, width: int = 256, classes: int = 256) -> None:
        super().__init__()
        self.inp = nn.Linear(dim, width)
        self.conv = nn.Conv1d(width, width, 5, padding=2)
        self.out = nn.Linear(width, classes)

    def forward(self, vectors: Tensor) -> Tensor:
        """`(B, T, dim)` to logits `(B, T, classes)`."""
        h = F.gelu(self.inp(vectors))
        h = F.gelu(self.conv(h.transpose(1, 2)).transpose(1, 2))
        return self.out(h)


def phoneme_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean cross entropy over the labelled frames of `(B, T, classes)` against `(B, T)`."""
    known = (labels != NO_LABEL).float()
    each = F.cross_entropy(logits.float().transpose(1, 2), labels.clamp(max=NO_LABEL - 1), reduction="none")
    return (each * known).sum() / (known.sum() + 1)


def phoneme_accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of labelled frames whose phoneme is read right."""
    known = labels != NO_LABEL
    return ((logits.argmax(-1) == labels) & known).sum() / known.sum().clamp(min=1)


def discriminator_loss(judged: list[Judgement], real: int) -> Tensor:
    """Hinge loss; the first `real` rows are true audio, the others made by the codec."""
    each = [
        F.relu(1 - score[:real].float()).mean() + F.relu(1 + score[real:].float()).mean()
        for score, _ in judged
    ]
    return torch.stack(each).mean()


def adversarial_loss(judged: list[Judgement]) -> Tensor:
    """Generator's hinge loss."""
    return torch.stack([F.relu(1 - score.float()).mean() for score, _ in judged]).mean()


def feature_loss(real: list[Judgement], made: list[Judgement]) -> Tensor:
    """Distance of the discriminators' activations, each divided by its own size."""
    parts = []
    for (_, true), (_, fake) in zip(real, made, strict=True):
        layers = [
            (a.float() - b.float()).abs().mean() / (a.float().abs().mean() + 1e-3)
            for a, b in zip(true, fake, strict=True)
        ]
        parts.append(torch.stack(layers).mean())
    return torch.stack(parts).mean()
