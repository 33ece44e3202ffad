"""Trains the language model on encoded speech, for a fixed time.

The process may start before the tokens exist: it compiles on made-up rows and waits for the file
`TOKENS/ready`. Every minute it saves the averaged weights to `OUT/last`, and the best by validation
loss (of the averaged weights, on sentences never trained on) to `OUT/best`.

    python -m scripts.train.train_lm TOKENS SENTENCES.tsv.xz OUT --until 1500
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from engine.models.ember import layout
from scripts.train import rows
from scripts.train.clock import Clock
from scripts.train.llama import Attention, Layer, Llama, LlamaConfig, masked_loss, save_hf
from scripts.train.muon import Muon
from scripts.train.rows import Rows

_WARM_UP_STEPS = 150
_FULL_RATE_SHARE = 0.1
_LOWEST_RATE = 0.02
_EMA_EVERY = 5
_EMA = 0.985
_POLL_S = 0.5
_QUEUED_BATCHES = 24


def produce(args: argparse.Namespace, seed: int, out: multiprocessing.Queue[Rows]) -> None:
    """Worker: waits for the tokens, then makes batches for ever."""
    while not (args.tokens / "ready").exists():
        time.sleep(_POLL_S)
    corpus = rows.load_corpus(args.tokens, args.sentences)
    for batch in corpus.batches(corpus.training, args.rows, args.length, seed):
        out.put(batch)


def flex_attention() -> tuple[Attention, Callable[[Tensor], object]]:
    """Attention that skips masked blocks; needs compilation to be fast."""
    from torch.nn.attention import flex_attention as flex

    def make_mask(document: Tensor) -> object:
        def same(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return (q >= k) & (document[b, q] == document[b, k])

        batch, length = document.shape
        return flex.create_block_mask(same, batch, None, length, length, device=document.device)

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: object) -> Tensor:
        return flex.flex_attention(query, key, value, block_mask=mask, enable_gqa=True)

    return attend, make_mask


def dense_attention() -> tuple[Attention, Callable[[Tensor], object]]:
    """Plain scaled dot-product attention with a full mask; works everywhere."""

    def make_mask(document: Tensor) -> object:
        length = document.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=document.device).tril()
        return ((document[:, :, None] == document[:, None, :]) & causal)[:, None]

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: object) -> Tensor:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return attend, make_mask


class Training:
    """Model, optimisers and schedule."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.clock = Clock(args.t0, args.clock, lm_end=args.until)
        self.log = self.clock.log
        torch.manual_seed(args.seed)
        torch.set_float32_matmul_precision("high")
        self.cuda = args.device.startswith("cuda")
        attention, self.make_mask = flex_attention() if args.mode == "flex" else dense_attention()
        self.config = LlamaConfig(
            args.hidden, args.layers, args.heads, args.kv_heads, args.inner, args.dropout
        )
        self.model = Llama(self.config, attention, args.length).to(args.device)
        if args.init:
            self.model.load_hf(args.init)
        if args.mode != "eager":
            Layer.forward = torch.compile(Layer.forward, dynamic=False)  # type: ignore[method-assign]
            self.model.loss = torch.compile(masked_loss, dynamic=False)
        self.muon = Muon(self.model.matrices(), args.muon_lr, decay=0.05)
        self.adam = torch.optim.AdamW(
            [
                {"params": [p for p in self.model.others() if p.dim() == 2], "weight_decay": 0.01},
                {"params": [p for p in self.model.others() if p.dim() < 2], "weight_decay": 0.0},
            ],
            lr=args.lr,
            betas=(0.9, 0.98),
            eps=1e-9,
            fused=self.cuda,
        )
        self.raw = self.model.hf_state()
        self.average = {name: value.detach().clone() for name, value in self.raw.items()}
        self.steps, self.best = 0, math.inf
        parameters = sum(p.numel() for p in self.model.parameters())
        self.log(f"{parameters / 1e6:.1f} M parameters, mode {args.mode}")

    def to_device(self, batch: Rows) -> tuple[Tensor, Tensor, Tensor]:
        tensors = [torch.from_numpy(part) for part in (batch.ids, batch.loss, batch.document)]
        if self.cuda:
            tensors = [t.pin_memory().to(self.args.device, non_blocking=True) for t in tensors]
        ids, loss, document = tensors
        return ids.long(), loss.float(), document

    def _noisy(self, ids: Tensor) -> Tensor:
        """Replaces a few input codes at random, so that the model learns to recover from its errors."""
        uniform = torch.rand(ids.shape[0], 1, device=ids.device)
        share = torch.where(uniform < 0.4, 0.0, uniform * self.args.noise)
        hit = (torch.rand(ids.shape, device=ids.device) < share) & (ids >= layout.CODE_BASE)
        codes = (layout.CODE_BASE, layout.CODE_BASE + layout.CODE_COUNT)
        return torch.where(hit, torch.randint(*codes, ids.shape, device=ids.device), ids)

    def loss(self, batch: tuple[Tensor, Tensor, Tensor], *, noise: bool) -> Tensor:
        """Loss of one batch of rows."""
        row, loss, document = batch
        ids, target = row[:, :-1].contiguous(), row[:, 1:].contiguous()
        mask = self.make_mask(document[:, :-1].contiguous())
        with torch.autocast(self.args.device.split(":")[0], torch.bfloat16, enabled=self.cuda):
            return self.model(self._noisy(ids) if noise else ids, target, loss[:, 1:].contiguous(), mask)

    def warm_up(self) -> None:
        """Compiles both the training and the validation program on made-up rows."""
        args = self.args
        rng = np.random.default_rng(0)
        shape = (args.rows, args.length + 1)
        document = np.sort(rng.integers(0, 4, shape).astype(np.int32), 1)
        ids = rng.integers(0, layout.VOCAB_SIZE, shape).astype(np.int32)
        batch = self.to_device(Rows(ids, np.ones(shape, np.bool_), document))
        for _ in range(2):
            self.model.train()
            self.loss(batch, noise=True).backward()
            self.model.zero_grad(set_to_none=True)
            self.validate_raw([batch])
        self.log("compiled")

    @torch.no_grad()
    def validate_raw(self, batches: list[tuple[Tensor, Tensor, Tensor]]) -> float:
        """Mean loss of the current weights, without dropout and noise."""
        self.model.eval()
        return float(torch.stack([self.loss(b, noise=False) for b in batches]).mean())

    @torch.no_grad()
    def validate_average(self, batches: list[tuple[Tensor, Tensor, Tensor]]) -> float:
        """The same with the averaged weights."""
        kept = {name: value.detach().clone() for name, value in self.raw.items()}
        for name, value in self.raw.items():
            value.copy_(self.average[name])
        loss = self.validate_raw(batches)
        for name, value in self.raw.items():
            value.copy_(kept[name])
        return loss

    def step(self, batch: Rows, scale: float) -> Tensor:
        """One update at `scale` times the learning rates."""
        for group in self.adam.param_groups:
            group["lr"] = self.args.lr * scale
        self.model.train()
        loss = self.loss(self.to_device(batch), noise=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step()
        self.muon.step(scale)
        self.model.zero_grad(set_to_none=True)
        self.steps += 1
        if self.steps % _EMA_EVERY == 0:
            decay = min(_EMA, (self.steps + 1) / (self.steps + 20))
            with torch.no_grad():
                now = [value.detach() for value in self.raw.values()]
                torch._foreach_lerp_(list(self.average.values()), now, 1 - decay)
        return loss.detach()

    def scale(self, began: float) -> float:
        """Learning-rate factor: warm-up by steps, then flat, then cosine by the clock."""
        done = (self.clock.elapsed() - began) / max(1e-6, self.clock.end("lm_end") - began)
        falling = min(1.0, max(0.0, (done - _FULL_RATE_SHARE) / (1 - _FULL_RATE_SHARE)))
        shape = 0.5 * (1 + math.cos(math.pi * falling))
        warm = min(1.0, (self.steps + 1) / _WARM_UP_STEPS)
        return warm * (_LOWEST_RATE + (1 - _LOWEST_RATE) * shape)

    def check(self, batches: list[tuple[Tensor, Tensor, Tensor]]) -> None:
        """Validates and saves."""
        raw, averaged = self.validate_raw(batches), self.validate_average(batches)
        save_hf(self.average, self.config, self.args.out / "last")
        better = averaged < self.best
        if better:
            self.best = averaged
            save_hf(self.average, self.config, self.args.out / "best")
        self.log(
            f"validation after {self.steps}: raw {raw:.4f} averaged {averaged:.4f}"
            + (" best" if better else "")
        )

    def run(self, batches: multiprocessing.Queue[Rows]) -> None:
        """Warm-up, wait, train until the clock says so."""
        args = self.args
        self.warm_up()
        while not (args.tokens / "ready").exists():
            time.sleep(_POLL_S)
        corpus = rows.load_corpus(args.tokens, args.sentences)
        self.log(
            f"{corpus.hours:.1f} hours, {len(corpus.training)} utterances to train on, "
            f"{len(corpus.validation)} held out"
        )
        held_out = corpus.batches(corpus.validation, args.rows, args.length, seed=5)
        validation = [self.to_device(next(held_out)) for _ in range(args.validation_batches)]
        began = checked = self.clock.elapsed()
        said, said_steps = time.time(), 0
        while self.clock.elapsed() < self.clock.end("lm_end") and self.steps < args.max_steps:
            scale = self.scale(began)
            loss = self.step(batches.get(), scale)
            if self.steps % args.log_every == 0:
                value = float(loss)
                rate = (self.steps - said_steps) * args.rows * args.length / (time.time() - said)
                said, said_steps = time.time(), self.steps
                self.log(
                    f"step {self.steps} loss {value:.4f} rate x{scale:.3f} "
                    f"{rate / 1e3:.0f}k tokens/s, {batches.qsize()} queued"
                )
                if not math.isfinite(value):
                    raise SystemExit("loss is not finite")
            if self.clock.elapsed() - checked > args.check_every:
                self.check(validation)
                checked = self.clock.elapsed()
        self.check(validation)
        tokens = self.steps * args.rows * args.length / 1e6
        self.log(f"done after {self.steps} steps, {tokens:.0f} M tokens")


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tokens", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--init", type=Path, help="folder of weights to start from")
    parser.add_argument("--t0", type=float, default=time.time(), help="unix time the clock starts")
    parser.add_argument("--until", type=float, default=1500, help="seconds since t0")
    parser.add_argument("--clock", type=Path, help="file that overrides the end")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--mode", choices=["flex", "dense", "eager"], default="flex")
    for name in ("hidden", "layers", "heads", "inner"):
        parser.add_argument(f"--{name}", type=int, default=getattr(LlamaConfig, name))
    parser.add_argument("--kv-heads", type=int, default=LlamaConfig.kv_heads)
    parser.add_argument("--dropout", type=float, default=LlamaConfig.dropout)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--length", type=int, default=1536)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--noise", type=float, default=0.06, help="largest share of replaced codes")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--max-steps", type=int, default=10**9)
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--check-every", type=float, default=45, help="seconds")
    parser.add_argument("--validation-batches", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(argv)


def main() -> int:
    args = parse()
    # Forked before the GPU is touched; the workers never touch it.
    context = multiprocessing.get_context("fork")
    batches = context.Queue(_QUEUED_BATCHES)
    workers = [
        context.Process(target=produce, args=(args, args.seed * 1000 + 100 + i, batches), daemon=True)
        for i in range(args.workers)
    ]
    for worker in workers:
        worker.start()
    try:
        Training(args).run(batches)
    finally:
        for worker in workers:
            worker.kill()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # Queue threads of killed workers would keep the process alive.
