"""Shards of teacher audio: four npy files each, put in place by renaming, the meta file last.

X.a.npy  int16 audio at 24 kHz, utterances back to back
X.w.npy  int32 start sample of every word
X.l.npy  uint8 phoneme label of every 20 ms
X.m.npy  int64 [U, 6]: sentence id, speaker id, samples, word offset, words, label offset
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from scripts.train.segments import Utterance


class ShardWriter:
    """Collects utterances and writes a shard whenever `seconds` of audio are there."""

    def __init__(self, folder: Path, prefix: str, seconds: float = 600.0, rate: int = 24000) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.prefix, self.limit = folder, prefix, int(seconds * rate)
        self.number = 0
        self._clear()

    def _clear(self) -> None:
        self.items: list[tuple[Utterance, int]] = []
        self.samples = 0

    def add(self, utterance: Utterance, speaker: int) -> None:
        self.items.append((utterance, speaker))
        self.samples += len(utterance.audio)

    def full(self) -> bool:
        return self.samples >= self.limit

    def flush(self) -> None:
        if not self.items:
            return
        meta = np.zeros((len(self.items), 6), np.int64)
        word = label = 0
        for k, (u, speaker) in enumerate(self.items):
            meta[k] = u.id, speaker, len(u.audio), word, len(u.words), label
            word += len(u.words)
            label += len(u.labels)
        us = [u for u, _ in self.items]
        parts = {"a": [u.audio for u in us], "w": [u.words for u in us], "l": [u.labels for u in us]}
        for kind, arrays in parts.items():
            self._write(kind, np.concatenate(arrays))
        self._write("m", meta)
        self.number += 1
        self._clear()

    def _write(self, kind: str, array: np.ndarray) -> None:
        final = self.folder / f"{self.prefix}_{self.number:04d}.{kind}.npy"
        temporary = self.folder / f".{final.name}.tmp"
        with temporary.open("wb") as file:
            np.save(file, array)
        temporary.replace(final)


def read(meta_path: Path) -> list[tuple[Utterance, int]]:
    """The utterances of a shard with their speakers."""
    stem = str(meta_path).removesuffix(".m.npy")
    meta = np.load(meta_path)
    audio, words, labels = (np.load(f"{stem}.{kind}.npy", mmap_mode="r") for kind in "awl")
    out = []
    at = 0
    for number, speaker, samples, word, count, label in meta.tolist():
        frames = -(-samples // 480)
        parts = audio[at : at + samples], words[word : word + count], labels[label : label + frames]
        out.append((Utterance(number, *(np.array(p) for p in parts)), speaker))
        at += samples
    return out
