"""Trains the codec on teacher audio that is still being made.

Three phases by the wall clock since `--t0`: wait for the first shards, train everything until
`--freeze-at`, then keep the encoder fixed (its codes stay valid) and go on with the decoder until
`--until`. The averaged weights are saved every minute; `frozen/` holds those whose codes count, and
`frozen/done` appears when they are complete.

    python -m scripts.train.train_codec SHARDS OUT --init FOLDER --freeze-at 900 --until 1500
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from engine.models.ember.codec import EmberCodec
from scripts.train.accelerate import Mode, prepare
from scripts.train.audio_pool import AudioPool, Batch
from scripts.train.clock import Clock
from scripts.train.codec_step import STATISTICS, CodecTrainer, StepShape

_WARM_UP_STEPS = 150
_GAN_RAMP_STEPS = 500
_LOWEST_RATE = 0.03
_SAVE_EVERY_S = 60.0
_REFRESH_EVERY = 10


def save(codec: EmberCodec, folder: Path) -> None:
    """Writes half-precision weights and the config, renamed into place."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {k: v.half().contiguous().cpu() for k, v in codec.state_dict().items()}
    part = folder / "model.safetensors.tmp"
    save_file(weights, part)
    os.replace(part, folder / "model.safetensors")
    codec.config.write(folder / "config.json")


def cosine(now: float, start: float, end: float) -> float:
    """Falls from 1 at `start` to the lowest rate at `end`."""
    done = min(1.0, max(0.0, (now - start) / max(1e-6, end - start)))
    return _LOWEST_RATE + (1 - _LOWEST_RATE) * 0.5 * (1 + math.cos(math.pi * done))


class Run:
    """The training loop and its clock."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.clock = Clock(args.t0, args.clock, freeze=args.freeze_at, codec_end=args.until)
        self.log = self.clock.log
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        torch.backends.cudnn.allow_tf32 = True
        shape = StepShape(
            rows=args.rows,
            judged_rows=args.judged_rows,
            segment=args.segment,
            crop=args.crop,
            reference=args.reference,
        )
        codec = EmberCodec.load(args.init).train().requires_grad_(True)
        self.pool = AudioPool(args.shards, args.device, args.hours)
        self.trainer = CodecTrainer(codec, shape, args.device)
        self.frozen = (args.out / "frozen" / "done").exists() or args.freeze_encoder
        self.steps = 0
        self.began = 0.0
        self.said, self.said_steps = time.time(), 0

    def train(self) -> None:
        args, trainer = self.args, self.trainer
        run = prepare(trainer, args.mode)
        self.log(f"step ready, mode {args.mode}")
        while not self.pool.ready:
            if not self.pool.refresh():
                time.sleep(0.2)
        if self.frozen:
            trainer.freeze_encoder()
        self.began = saved = self.clock.elapsed()
        self.log(f"training starts with {self.pool.hours:.2f} hours")
        while (now := self.clock.elapsed()) < self.clock.end("codec_end") and self.steps < args.max_steps:
            if not self.frozen and now >= self.clock.end("freeze"):
                self.freeze()
            self.set_rates(now)
            self.fill(self.pool.draw(args.rows, args.segment, args.reference))
            run()
            self.steps += 1
            if self.steps % _REFRESH_EVERY == 0:
                self.pool.refresh()
            if self.steps % args.log_every == 0:
                self.report()
            if now - saved > _SAVE_EVERY_S:
                save(trainer.average, args.out)
                self.validate()
                saved = now
        if not self.frozen:
            self.freeze()
        save(trainer.average, args.out)
        self.validate()
        self.log(f"done after {self.steps} steps")
        self.pool.close()

    def fill(self, batch: Batch) -> None:
        trainer = self.trainer
        trainer.wave.copy_(batch.wave)
        trainer.labels.copy_(batch.labels)
        trainer.reference.copy_(batch.reference)
        room = max(1, self.args.segment - self.args.crop + 1)
        trainer.crop_at.copy_((torch.rand((), device=self.args.device) * room).long())

    def set_rates(self, now: float) -> None:
        args, trainer = self.args, self.trainer
        warm = min(1.0, (self.steps + 1) / _WARM_UP_STEPS)
        rest = warm * cosine(now, self.began, self.clock.end("codec_end"))
        listening = warm * cosine(now, self.began, self.clock.end("freeze"))
        if self.frozen:
            listening = 0.0
        trainer.encoder_lr.fill_(args.lr * listening)
        trainer.decoder_lr.fill_(args.lr * rest)
        trainer.disc_lr.fill_(args.disc_lr * rest)
        trainer.gan_weight.fill_(min(1.0, 0.05 + self.steps / _GAN_RAMP_STEPS))

    def freeze(self) -> None:
        """Ends the encoder's training and publishes the codec that makes the tokens."""
        self.trainer.freeze_encoder()
        self.frozen = True
        folder = self.args.out / "frozen"
        save(self.trainer.average, folder)
        (folder / "done").touch()
        self.validate()
        self.log(f"encoder frozen after {self.steps} steps")

    def report(self) -> None:
        values = self.trainer.statistics.tolist()
        used = int((self.trainer.code_count > 0).sum())
        self.trainer.code_count.zero_()
        now = time.time()
        rate = (self.steps - self.said_steps) / max(1e-6, now - self.said)
        self.said, self.said_steps = now, self.steps
        figures = " ".join(f"{k} {v:.3f}" for k, v in zip(STATISTICS, values, strict=True))
        self.log(
            f"step {self.steps} {rate:.1f}/s {figures} codes {used} "
            f"lr {self.trainer.decoder_lr.item():.1e} hours {self.pool.hours:.1f}"
        )
        if not all(map(math.isfinite, values)):
            self.log("not finite, stopped")
            sys.exit(3)

    def validate(self) -> None:
        """Losses of the averaged codec on sentences it never trains on, always the same pieces."""
        args, trainer = self.args, self.trainer
        generator = torch.Generator(args.device).manual_seed(1)
        totals = torch.zeros(2, device=args.device)
        for _ in range(args.validation_batches):
            batch = self.pool.draw(
                args.rows, args.segment, args.reference, validation=True, generator=generator
            )
            self.fill(batch)
            totals += torch.stack(trainer.evaluate())
        loss, accuracy = (totals / args.validation_batches).tolist()
        self.log(f"validation: spectral loss {loss:.4f}, phoneme accuracy {accuracy:.4f}")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--init", type=Path, required=True, help="codec folder to start from")
    parser.add_argument("--t0", type=float, default=time.time(), help="unix time the clock starts")
    parser.add_argument("--freeze-at", type=float, default=900, help="seconds since t0")
    parser.add_argument("--until", type=float, default=1500, help="seconds since t0")
    parser.add_argument("--clock", type=Path, help="file that overrides the two ends")
    parser.add_argument("--freeze-encoder", action="store_true", help="train the decoder only")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.FULL)
    parser.add_argument("--hours", type=float, default=150, help="room for this much audio")
    parser.add_argument("--rows", type=int, default=StepShape.rows)
    parser.add_argument("--judged-rows", type=int, default=StepShape.judged_rows)
    parser.add_argument("--segment", type=int, default=StepShape.segment)
    parser.add_argument("--crop", type=int, default=StepShape.crop)
    parser.add_argument("--reference", type=int, default=StepShape.reference)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--disc-lr", type=float, default=3e-4)
    parser.add_argument("--max-steps", type=int, default=10**9)
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--validation-batches", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(argv)


if __name__ == "__main__":
    Run(parse()).train()
