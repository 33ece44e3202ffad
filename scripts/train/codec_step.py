"""One training step of the codec, as a single function without host reads, so that it fits one CUDA graph."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.models.ember.codec import EmberCodec
from scripts.train import losses
from scripts.train.disc import Discriminators
from scripts.train.teacher_audio import NO_LABEL

SPECTRAL_WEIGHT = 15.0
ADVERSARIAL_WEIGHT = 1.5
FEATURE_WEIGHT = 6.0
_GENERATOR_CLIP, _DISCRIMINATOR_CLIP = 50.0, 10.0

STATISTICS = ("rec", "disc", "adv", "fm", "phon", "again", "grad")


@dataclass(frozen=True)
class StepShape:
    """Sizes and weights of a step; lengths in samples."""

    rows: int = 48
    judged_rows: int = 24
    segment: int = 23_040
    crop: int = 8_640
    reference: int = 48_000
    phoneme_weight: float = 1.0
    again_weight: float = 0.5
    ema: float = 0.999


class CodecTrainer(nn.Module):
    """Networks, optimisers and fixed input buffers of the training step.

    Inputs are the buffers `wave`, `labels`, `reference` and `crop_at`, outputs `statistics` and the
    running `code_count`; rates are the tensors `encoder_lr`, `decoder_lr`, `disc_lr`, `gan_weight`.
    Nothing is read back to the host, so a captured graph of `step` can be replayed.
    """

    def __init__(self, codec: EmberCodec, shape: StepShape, device: str) -> None:
        super().__init__()
        self.shape, self.device = shape, device
        config = codec.config
        self.codec = codec.to(device)
        self.disc = Discriminators().to(device).to(memory_format=torch.channels_last)
        self.head = losses.PhonemeHead(len(config.levels)).to(device)
        self.spectral = losses.SpectralLoss(config.sample_rate).to(device)
        self.average = copy.deepcopy(self.codec).eval().requires_grad_(False)
        frames = shape.segment // config.code_samples
        self.wave = torch.zeros(shape.rows, shape.segment, device=device)
        self.labels = torch.full((shape.rows, frames), NO_LABEL, device=device)
        self.reference = torch.zeros(shape.rows, shape.reference, device=device)
        self.crop_at = torch.zeros((), dtype=torch.long, device=device)
        self.statistics = torch.zeros(len(STATISTICS), device=device)
        self.code_count = torch.zeros(self.codec.quantiser.size, device=device)
        scalar = lambda: torch.zeros((), device=device)  # noqa: E731
        self.encoder_lr, self.decoder_lr, self.disc_lr = scalar(), scalar(), scalar()
        self.gan_weight = scalar()
        self._make_optimisers()
        self._crop_index = torch.arange(min(shape.crop, shape.segment), device=device)
        self._zero = self.codec.init_state(shape.rows)
        self._one = torch.ones(shape.rows * frames, device=device)
        self.distance = self.spectral.distance

    def _make_optimisers(self) -> None:
        cuda = self.device.startswith("cuda")
        extra = {"fused": True, "capturable": True} if cuda else {}
        betas = (0.8, 0.99)
        listening = [*self.codec.encoder.parameters(), *self.head.parameters()]
        speaking = [*self.codec.decoder.parameters(), *self.codec.speaker_encoder.parameters()]
        self.generator_parameters = listening + speaking
        self.disc_parameters = list(self.disc.parameters())
        self.generator_optimiser = torch.optim.AdamW(
            [
                {"params": listening, "lr": self.encoder_lr},
                {"params": speaking, "lr": self.decoder_lr},
            ],
            betas=betas,
            weight_decay=0.01,
            **extra,
        )
        self.disc_optimiser = torch.optim.AdamW(self.disc_parameters, lr=self.disc_lr, betas=betas, **extra)
        self._raw = list(self.codec.parameters())
        self._averaged = list(self.average.parameters())

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.split(":")[0], dtype=torch.bfloat16)

    def reconstruct(self, codec: EmberCodec) -> tuple[Tensor, Tensor, Tensor]:
        """Runs `codec` on the input buffers: wave, phoneme logits and codes."""
        mel = codec.encoder.features(self.wave)
        voice = codec.speaker_encoder.mel(self.reference)
        with self._autocast():
            vectors, codes = codec.quantiser(codec.encoder.network(mel))
            speaker = codec.speaker_encoder.network(voice)
            spectrum, _, _ = codec.decoder.network(vectors, speaker, self._zero.low, self._zero.high)
            logits = self.head(vectors)
        made, _ = codec.decoder.synthesise(spectrum, self._zero.overlap)
        return made, logits, codes

    def _heard_again(self, made: Tensor) -> Tensor:
        """Phoneme loss of what the encoder hears in the codec's own output."""
        mel = self.codec.encoder.features(made)
        with self._autocast():
            vectors, _ = self.codec.quantiser(self.codec.encoder.network(mel))
            return losses.phoneme_loss(self.head(vectors), self.labels)

    def _judge(self, wave: Tensor) -> list[losses.Judgement]:
        with self._autocast():
            return self.disc(wave)

    def _train_discriminators(self, true: Tensor, made: Tensor) -> Tensor:
        judged = self._judge(torch.cat([true, made.detach()]))
        loss = losses.discriminator_loss(judged, true.shape[0])
        self.disc_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.disc_parameters, _DISCRIMINATOR_CLIP)
        self.disc_optimiser.step()
        return loss.detach()

    def step(self) -> None:
        """Discriminators first, then the codec, then the running average."""
        made, logits, codes = self.reconstruct(self.codec)
        crop = self.crop_at + self._crop_index
        judged_rows = self.shape.judged_rows
        true_crop = self.wave[:judged_rows].index_select(1, crop)
        made_crop = made[:judged_rows].index_select(1, crop)
        disc = self._train_discriminators(true_crop, made_crop)

        for parameter in self.disc_parameters:
            parameter.requires_grad_(False)
        with torch.no_grad():
            real = self._judge(true_crop)
        fake = self._judge(made_crop)
        adversarial, feature = losses.adversarial_loss(fake), losses.feature_loss(real, fake)
        for parameter in self.disc_parameters:
            parameter.requires_grad_(True)

        spectra = self.spectral.spectra
        reconstruction = self.distance(spectra(made), spectra(self.wave))
        phonemes = losses.phoneme_loss(logits, self.labels)
        again = self._heard_again(made)
        loss = (
            SPECTRAL_WEIGHT * reconstruction
            + self.gan_weight * (ADVERSARIAL_WEIGHT * adversarial + FEATURE_WEIGHT * feature)
            + self.shape.phoneme_weight * phonemes
            + self.shape.again_weight * again
        )
        self.generator_optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.generator_parameters, _GENERATOR_CLIP)
        self.generator_optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(self._averaged, self._raw, 1 - self.shape.ema)
            self.code_count.index_add_(0, codes.reshape(-1), self._one)
            parts = [reconstruction, disc, adversarial, feature, phonemes, again, norm]
            self.statistics.copy_(torch.stack([part.detach() for part in parts]))

    @torch.no_grad()
    def evaluate(self) -> tuple[Tensor, Tensor]:
        """Spectral loss and phoneme accuracy of the averaged codec on the input buffers."""
        made, logits, _ = self.reconstruct(self.average)
        spectra = self.spectral.spectra
        loss = self.spectral.distance(spectra(made), spectra(self.wave))
        return loss, losses.phoneme_accuracy(logits, self.labels)

    @torch.no_grad()
    def freeze_encoder(self) -> None:
        """Makes the averaged encoder, rounded to what is saved, the final one. Its rate must be 0 after."""
        averaged, raw = self.average.encoder.parameters(), self.codec.encoder.parameters()
        for final, current in zip(averaged, raw, strict=True):
            final.copy_(final.half().float())
            current.copy_(final)

    def networks(self) -> tuple[nn.Module, ...]:
        """Everything whose weights a warm-up would disturb."""
        return self.codec, self.disc, self.head, self.average

    @torch.no_grad()
    def snapshot(self) -> list[Tensor]:
        """Copies of all weights."""
        return [t.clone() for net in self.networks() for t in net.state_dict().values()]

    @torch.no_grad()
    def restore(self, saved: list[Tensor]) -> None:
        """Puts the weights of `snapshot` back and forgets the optimisers' moments."""
        live = [t for net in self.networks() for t in net.state_dict().values()]
        for tensor, value in zip(live, saved, strict=True):
            tensor.copy_(value)
        for optimiser in (self.generator_optimiser, self.disc_optimiser):
            for state in optimiser.state.values():
                for value in state.values():
                    value.zero_()
        self.code_count.zero_()
