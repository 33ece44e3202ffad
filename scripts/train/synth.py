"""One synthesis worker: jobs npz -> shards of teacher audio (see `shards.py`), until a given time.

    python -m scripts.train.synth --jobs jobs.npz --weights teacher.npz.xz --out shards/ \
        --rank 0 --workers 3 --device cuda:0 --until 1767225600

Worker `rank` of `workers` takes every `workers`-th pass.  When the jobs are used up it goes round again with
other speakers.  On a GPU it first tries a few execution modes on real work and keeps the fastest.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from scripts.train import jobs as job_file
from scripts.train import teacher_weights
from scripts.train.jobs import Pack
from scripts.train.kokoro import Kernels, KokoroTeacher, build
from scripts.train.segments import Utterance, pack_ids, resample, split
from scripts.train.shards import ShardWriter

WINDOW = 8  # batches that are sorted by length together
FRAMES_MULTIPLE, TOKENS_MULTIPLE = 128, 32


def rounds(packs: Sequence[Pack], once: bool) -> Iterator[list[Pack]]:
    """The passes, then the same passes with the speakers moved on, and so on."""
    number = 0
    while True:
        shift = number * (len(packs) // 3 + 1)
        moved = [packs[(k + shift) % len(packs)] for k in range(len(packs))]
        yield [replace(p, speaker=m.speaker, speed=m.speed) for p, m in zip(packs, moved, strict=True)]
        number += 1
        if once:
            return


def batches(packs: Sequence[Pack], size: int) -> Iterator[list[Pack]]:
    """Batches of passes of similar length, near their original order."""
    for start in range(0, len(packs), size * WINDOW):
        window = sorted(packs[start : start + size * WINDOW], key=lambda p: p.tokens / p.speed)
        groups = [window[k : k + size] for k in range(0, len(window), size)]
        yield from groups


class Synthesiser:
    """Runs batches of passes through the teacher and cuts them into utterances."""

    def __init__(self, model: KokoroTeacher, styles: np.ndarray, device: torch.device) -> None:
        self.model, self.styles, self.device = model, styles, device
        self.most = 10_000  # passes at once; shrinks when memory runs out

    def __call__(self, batch: Sequence[Pack]) -> list[tuple[Utterance, int]]:
        out: list[tuple[Utterance, int]] = []
        at = 0
        while at < len(batch):
            part = batch[at : at + self.most]
            try:
                out += self.run(part)
            except torch.OutOfMemoryError:
                if len(part) == 1:
                    raise
                self.most = len(part) // 2
                torch.cuda.empty_cache()
                print(f"out of memory: at most {self.most} passes at once from here on", flush=True)
                continue
            at += len(part)
        return out

    def run(self, batch: Sequence[Pack]) -> list[tuple[Utterance, int]]:
        rows = [pack_ids([i.spoken for i in p.items]) for p in batch]
        lengths = torch.tensor([len(r) for r in rows])
        width = -(-int(lengths.max()) // TOKENS_MULTIPLE) * TOKENS_MULTIPLE
        tokens = torch.zeros(len(rows), width, dtype=torch.long)
        for k, row in enumerate(rows):
            tokens[k, : len(row)] = torch.tensor(row)
        style = np.stack(
            [p.speaker.style(self.styles, n - 2) for p, n in zip(batch, lengths.tolist(), strict=True)]
        )
        speed = torch.tensor([p.speed / p.speaker.factor for p in batch])
        inputs = (tokens, lengths, torch.from_numpy(style).float(), speed)
        audio, durations = self.model(*(x.to(self.device) for x in inputs), multiple=FRAMES_MULTIPLE)
        samples = (durations.sum(1) * 600).tolist()
        frames = durations.cpu().numpy()
        out: list[tuple[Utterance, int]] = []
        for k, p in enumerate(batch):
            wave = resample(audio[k, : samples[k]].float(), p.speaker.factor).cpu().numpy()
            if not np.isfinite(wave).all():
                continue
            spoken, numbers = [i.spoken for i in p.items], [i.id for i in p.items]
            cut = split(wave, frames[k, : len(rows[k])], spoken, numbers, p.speaker.factor)
            out += [(u, p.speaker.id) for u in cut]
        return out


def fuse() -> None:
    Kernels.fuse()


def search() -> None:
    torch.backends.cudnn.benchmark = True


def plain() -> None:
    Kernels.plain()
    torch.backends.cudnn.benchmark = False


@dataclass
class Tuner:
    """Tries execution modes on real batches, a few each, and keeps the one with most audio per second."""

    modes: tuple[tuple[str, tuple[Callable[[], None], ...]], ...] = (
        ("plain", ()),
        ("search", (search,)),
        ("fused", (fuse,)),
        ("fused+search", (fuse, search)),
    )
    warm: int = 3
    measured: int = 4
    seen: int = 0
    done: bool = False

    def __post_init__(self) -> None:
        self.rates: dict[str, float] = {}
        self.audio = self.wall = 0.0

    def start(self) -> None:
        """Called before a batch."""
        if not self.done and self.seen % (self.warm + self.measured) == 0:
            self._switch(self.seen // (self.warm + self.measured))

    def _switch(self, index: int) -> None:
        plain()
        for act in self.modes[index][1]:
            act()
        self.audio = self.wall = 0.0

    def result(self, audio: float, wall: float) -> None:
        """Called after a batch with its seconds of audio and of wall time."""
        if self.done:
            return
        index, step = divmod(self.seen, self.warm + self.measured)
        self.seen += 1
        if step >= self.warm:
            self.audio += audio
            self.wall += wall
        if step == self.warm + self.measured - 1:
            self.rates[self.modes[index][0]] = self.audio / max(self.wall, 1e-9)
            if index == len(self.modes) - 1:
                self.finish()

    def failed(self) -> None:
        """The current mode broke: settle for the best mode measured so far, or for plain execution."""
        if not self.done and self.rates:
            self.finish()
        else:
            self.finish(only="plain")

    def finish(self, only: str | None = None) -> None:
        best = only or max(self.rates, key=lambda name: self.rates[name])
        self._switch([name for name, _ in self.modes].index(best))
        self.done = True
        print("modes", {k: round(v) for k, v in self.rates.items()}, "->", best, flush=True)


@dataclass
class Limits:
    until: float
    hours: float
    once: bool


def work(
    run: Synthesiser, packs: Sequence[Pack], writer: ShardWriter, size: int, tuner: Tuner, limits: Limits
) -> float:
    """Synthesise until the limits are met; return the seconds of audio made."""
    total, began, last, said, errors = 0.0, time.time(), 0.0, time.time(), 0
    for whole in rounds(packs, limits.once):
        for batch in batches(whole, size):
            if time.time() + last * 1.5 > limits.until or total > limits.hours * 3600:
                writer.flush()
                return total
            t = time.time()
            try:
                tuner.start()
                made = run(batch)
            except (RuntimeError, ValueError, IndexError) as error:  # a bad pass must not end the worker
                errors += 1
                print("error", type(error).__name__, str(error)[:300], flush=True)
                tuner.failed()
                if errors > 20:
                    raise
                if run.device.type == "cuda":
                    torch.cuda.empty_cache()
                continue
            seconds = 0.0
            for utterance, speaker in made:
                writer.add(utterance, speaker)
                seconds += len(utterance.audio) / 24000
            if writer.full():
                writer.flush()
            last = time.time() - t
            total += seconds
            tuner.result(seconds, last)
            if time.time() - said > 15:
                said = time.time()
                print(
                    f"{writer.prefix}: {total / 3600:.2f} h, {total / (said - began):.0f} x real time",
                    flush=True,
                )
    writer.flush()
    return total


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("jobs", "weights", "out"):
        parser.add_argument("--" + name, type=Path, required=True)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--until", type=float, default=float("inf"), help="stop by this time (seconds since 1970)"
    )
    parser.add_argument("--hours", type=float, default=float("inf"), help="stop after so much audio")
    parser.add_argument("--batch", type=int, default=16, help="passes in a batch")
    parser.add_argument("--prefix", default="k")
    parser.add_argument("--shard-seconds", type=float, default=600.0)
    parser.add_argument("--once", action="store_true", help="go through the jobs once only")
    parser.add_argument(
        "--mode", choices=("auto", "plain", "search", "fused", "fused+search"), default="auto"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    device = torch.device(args.device)
    packs, styles = job_file.load(args.jobs)
    run = Synthesiser(build(teacher_weights.load(args.weights), device), styles, device)
    writer = ShardWriter(args.out, f"{args.prefix}{args.rank:02d}", args.shard_seconds)
    tuner = Tuner()
    if args.mode != "auto" or device.type != "cuda" or args.once:
        tuner.finish(only="plain" if args.mode == "auto" else args.mode)
    print(f"{writer.prefix}: ready", flush=True)
    began = time.time()
    total = work(
        run,
        packs[args.rank :: args.workers],
        writer,
        args.batch,
        tuner,
        Limits(args.until, args.hours, args.once),
    )
    print(f"{writer.prefix}: done, {total / 3600:.3f} h in {time.time() - began:.0f} s", flush=True)
    (args.out / f"{writer.prefix}.done").touch()


if __name__ == "__main__":
    main()
