"""Training audio in the GPU's memory: grows while the synthesis runs, draws batches without the host."""

from __future__ import annotations

import queue
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.models.ember.layout import SAMPLE_RATE_HZ, SAMPLES_PER_CODE
from scripts.train import teacher_audio
from scripts.train.teacher_audio import NO_LABEL

_POLL_S = 1.0
_MAX_WAITING_SHARDS = 4


@dataclass(frozen=True, slots=True)
class Batch:
    """Segments `(B, N)`, their phoneme labels `(B, T)`, and other audio of the same speakers `(B, M)`."""

    wave: Tensor
    labels: Tensor
    reference: Tensor


class ShardWatcher:
    """Reads finished shards in a thread, each once, and hands them over already aligned."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ready: queue.Queue[tuple[np.ndarray, ...]] = queue.Queue(_MAX_WAITING_SHARDS)
        self._stop = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        seen: set[Path] = set()
        while not self._stop.wait(0 if not seen else _POLL_S):
            for meta in teacher_audio.complete(self._folder):
                if meta not in seen:
                    shard = teacher_audio.load(meta)
                    self._ready.put((*shard.aligned(), shard.meta))
                    seen.add(meta)

    def take(self) -> tuple[np.ndarray, ...] | None:
        """One new shard as (audio, labels, frames, meta), or None."""
        try:
            return self._ready.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Stops watching."""
        self._stop.set()


class _Part:
    """Index of the utterances of one split (training or validation)."""

    def __init__(self) -> None:
        self.start = np.zeros(0, np.int64)
        self.frames = np.zeros(0, np.int64)
        self.speaker = np.zeros(0, np.int64)

    def add(self, start: np.ndarray, frames: np.ndarray, speaker: np.ndarray) -> None:
        self.start = np.concatenate([self.start, start])
        self.frames = np.concatenate([self.frames, frames])
        self.speaker = np.concatenate([self.speaker, speaker])
        order = np.argsort(self.speaker, kind="stable")
        self.start, self.frames = self.start[order], self.frames[order]
        self.speaker = self.speaker[order]

    def upload(self, device: str) -> None:
        first = np.searchsorted(self.speaker, self.speaker, "left")
        count = np.searchsorted(self.speaker, self.speaker, "right") - first
        to = lambda array: torch.from_numpy(array).to(device)  # noqa: E731
        self.t_start, self.t_frames = to(self.start), to(self.frames)
        self.t_first, self.t_count = to(first), to(count)
        self.t_ends = torch.cumsum(self.t_frames, 0)


class AudioPool:
    """Audio as int16 on the device, with an index from which batches are drawn there."""

    def __init__(self, folder: Path, device: str, hours: float) -> None:
        codes = int(hours * 3600 * SAMPLE_RATE_HZ) // SAMPLES_PER_CODE
        self.device = device
        self.audio = torch.zeros(codes * SAMPLES_PER_CODE, dtype=torch.int16, device=device)
        self.labels = torch.full((codes,), NO_LABEL, dtype=torch.uint8, device=device)
        self.used = 0
        self.parts = {False: _Part(), True: _Part()}
        self._watcher = ShardWatcher(folder)

    @property
    def hours(self) -> float:
        """Hours of audio held."""
        return self.used * SAMPLES_PER_CODE / SAMPLE_RATE_HZ / 3600

    @property
    def ready(self) -> bool:
        """Whether both splits have something to draw from."""
        return all(len(part.frames) > 0 for part in self.parts.values())

    def refresh(self) -> bool:
        """Takes over at most one new shard; returns whether there was one."""
        item = self._watcher.take()
        if item is None:
            return False
        audio, labels, frames, meta = item
        total = len(labels)
        if self.used + total > len(self.labels):
            return False
        begin = self.used * SAMPLES_PER_CODE
        self.audio[begin : begin + len(audio)] = torch.from_numpy(audio).to(self.device)
        self.labels[self.used : self.used + total] = torch.from_numpy(labels).to(self.device)
        start = self.used + np.cumsum(frames) - frames
        held_out = teacher_audio.is_validation(meta[:, teacher_audio.SENTENCE])
        for validation, part in self.parts.items():
            rows = held_out == validation
            part.add(start[rows], frames[rows], meta[rows, teacher_audio.SPEAKER])
            if rows.any():
                part.upload(self.device)
        self.used += total
        return True

    def close(self) -> None:
        """Stops picking up shards."""
        self._watcher.close()

    def draw(
        self,
        rows: int,
        samples: int,
        reference_samples: int,
        *,
        validation: bool = False,
        generator: torch.Generator | None = None,
    ) -> Batch:
        """Random segments, long utterances as likely as their length, at random loudness.

        The reference is a random piece of a different utterance of the same speaker (of the same one
        where a speaker has no other), at a loudness of its own.
        """
        part = self.parts[validation]
        rand = lambda: torch.rand(rows, device=self.device, generator=generator)  # noqa: E731
        point = (rand().double() * part.t_ends[-1]).long()
        pick = torch.searchsorted(part.t_ends, point, right=True).clamp(max=len(part.frames) - 1)
        other = part.t_count[pick] - 1
        step = 1 + (rand() * other).long().clamp(max=(other - 1).clamp(min=0))
        partner = part.t_first[pick] + (pick - part.t_first[pick] + step) % part.t_count[pick]
        wave, at, left = self._segments(part, pick, samples, rand())
        reference, _, _ = self._segments(part, partner, reference_samples, rand())
        frame = torch.arange(samples // SAMPLES_PER_CODE, device=self.device)
        labels = self.labels[(at[:, None] + frame).clamp(max=len(self.labels) - 1)].long()
        labels = torch.where(frame < left[:, None], labels, NO_LABEL)
        return Batch(wave * self._gain(rand()), labels, reference * self._gain(rand()))

    @staticmethod
    def _gain(uniform: Tensor) -> Tensor:
        return (10 ** ((uniform * 13 - 10) / 20))[:, None]

    def _segments(
        self, part: _Part, pick: Tensor, samples: int, uniform: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        frames = part.t_frames[pick]
        room = (frames - samples // SAMPLES_PER_CODE + 1).clamp(min=1)
        skip = (uniform * room).long().clamp(max=room - 1)
        at, left = part.t_start[pick] + skip, frames - skip
        offset = torch.arange(samples, device=self.device)
        index = (at[:, None] * SAMPLES_PER_CODE + offset).clamp(max=len(self.audio) - 1)
        wave = self.audio[index].float() / 32768
        return wave * (offset < left[:, None] * SAMPLES_PER_CODE), at, left
