"""Encoded speech on disk: packed codes, word positions and phonemes of many utterances, in small files.

A file `tokens_*.npz` holds
    codes     uint8   codes packed at 13 bits each, utterances back to back
    lengths   uint16  codes of each utterance
    sentence  uint32, speaker uint16  of each utterance
    words     uint16  words of each utterance
    word_at   uint16  for each word the code it begins at, counted from the utterance's start
    labels    uint8   phoneme of every code, 255 where unknown
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_BITS = 13
_CODES_PER_FILE = 6_000_000


def pack(codes: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Packs codes below 8192 at 13 bits each."""
    bits = (codes[:, None] >> np.arange(_BITS, dtype=np.uint16)) & 1
    return np.packbits(bits.astype(np.uint8).reshape(-1))


def unpack(packed: NDArray[np.uint8], count: int) -> NDArray[np.uint16]:
    """Undoes `pack`."""
    bits = np.unpackbits(packed, count=count * _BITS).reshape(count, _BITS).astype(np.uint16)
    return (bits << np.arange(_BITS, dtype=np.uint16)).sum(1).astype(np.uint16)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Encoded utterances; flat arrays with a length for each utterance."""

    codes: NDArray[np.uint16]
    lengths: NDArray[np.int64]
    sentence: NDArray[np.int64]
    speaker: NDArray[np.int64]
    words: NDArray[np.int64]
    word_at: NDArray[np.int64]
    labels: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.lengths)

    def save(self, folder: Path, prefix: str = "tokens") -> list[Path]:
        """Writes files of at most about 10 MB."""
        folder.mkdir(parents=True, exist_ok=True)
        part = np.cumsum(self.lengths) // _CODES_PER_FILE
        code_end, word_end = np.cumsum(self.lengths), np.cumsum(self.words)
        paths = []
        for index in range(int(part[-1]) + 1 if len(self) else 0):
            rows = np.nonzero(part == index)[0]
            if not len(rows):
                continue
            first, last = rows[0], rows[-1]
            codes = slice(code_end[first] - self.lengths[first], code_end[last])
            words = slice(word_end[first] - self.words[first], word_end[last])
            path = folder / f"{prefix}_{index:02d}.npz"
            np.savez_compressed(
                path,
                codes=pack(self.codes[codes]),
                lengths=self.lengths[rows].astype(np.uint16),
                sentence=self.sentence[rows].astype(np.uint32),
                speaker=self.speaker[rows].astype(np.uint16),
                words=self.words[rows].astype(np.uint16),
                word_at=self.word_at[words].astype(np.uint16),
                labels=self.labels[codes],
            )
            paths.append(path)
        return paths


def load(folder: Path) -> Tokens:
    """Reads all token files of a folder."""
    parts = []
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as f:
            lengths = f["lengths"].astype(np.int64)
            parts.append(
                Tokens(
                    unpack(f["codes"], int(lengths.sum())),
                    lengths,
                    f["sentence"].astype(np.int64),
                    f["speaker"].astype(np.int64),
                    f["words"].astype(np.int64),
                    f["word_at"].astype(np.int64),
                    f["labels"],
                )
            )
    if not parts:
        raise FileNotFoundError(f"no token files in {folder}")
    fields = Tokens.__dataclass_fields__
    return Tokens(*(np.concatenate([getattr(p, name) for p in parts]) for name in fields))


def word_codes(starts: NDArray[np.integer], code_samples: int, length: int) -> NDArray[np.int64]:
    """Code index of each word from its start sample: nearest code, at least one code a word."""
    nearest = (np.asarray(starts, np.int64) + code_samples // 2) // code_samples
    order = np.arange(len(nearest))
    at = np.maximum.accumulate(nearest - order) + order if len(nearest) else nearest
    last = length - len(at) + order
    return np.minimum(at, last)
