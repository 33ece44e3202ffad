"""Reads the shards of teacher audio (see `shards.py`, which writes them) the way training needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.models.ember.layout import SAMPLES_PER_CODE

SENTENCE, SPEAKER, SAMPLES, WORD_OFFSET, WORD_COUNT, LABEL_OFFSET = range(6)

NO_LABEL = 255
"""Phoneme id of a frame without a label."""

_VALIDATION_EVERY = 100


def is_validation(sentence: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Sentences that no stage trains on; codec and language model agree on them."""
    return sentence % _VALIDATION_EVERY == 7


class Recording(NamedTuple):
    """One sentence spoken by one speaker: audio, start sample of each word, phoneme of each 20 ms."""

    sentence: int
    speaker: int
    audio: NDArray[np.int16]
    words: NDArray[np.int32]
    labels: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Shard:
    """One shard in memory, arrays as in the files."""

    audio: NDArray[np.int16]
    meta: NDArray[np.int64]
    words: NDArray[np.int32]
    labels: NDArray[np.uint8]

    def __iter__(self) -> Iterator[Recording]:
        start = 0
        for sentence, speaker, samples, word, words, label in self.meta.tolist():
            frames = -(-samples // SAMPLES_PER_CODE)
            yield Recording(
                sentence,
                speaker,
                self.audio[start : start + samples],
                self.words[word : word + words],
                self.labels[label : label + frames],
            )
            start += samples

    def aligned(self) -> tuple[NDArray[np.int16], NDArray[np.uint8], NDArray[np.int64]]:
        """The shard with every utterance padded to whole codes.

        Returns:
            Audio, labels, and the length of each utterance in codes.
        """
        frames = -(-self.meta[:, SAMPLES] // SAMPLES_PER_CODE)
        audio = np.zeros(int(frames.sum()) * SAMPLES_PER_CODE, np.int16)
        labels = np.full(int(frames.sum()), NO_LABEL, np.uint8)
        at = 0
        for recording, count in zip(self, frames.tolist(), strict=True):
            begin = at * SAMPLES_PER_CODE
            audio[begin : begin + len(recording.audio)] = recording.audio
            labels[at : at + len(recording.labels)] = recording.labels
            at += count
        return audio, labels, frames


def complete(folder: Path) -> list[Path]:
    """Meta files of the finished shards, in a stable order."""
    return sorted(folder.glob("[!.]*.m.npy"))


def load(meta: Path) -> Shard:
    """Reads one finished shard."""
    stem = str(meta).removesuffix(".m.npy")
    return Shard(np.load(stem + ".a.npy"), np.load(meta), np.load(stem + ".w.npy"), np.load(stem + ".l.npy"))
