"""Batches for the language model: draws utterances, builds sequences, packs them into rows."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.models.ember.layout import PAD
from scripts.train import sequences, teacher_audio, tokens
from scripts.train.sequences import Sequence, Spoken

_FULL, _INTERLEAVED = 0.45, 0.40
_WITHOUT_VOICE = 0.05
_MOST_SEGMENTS = 3
_REFERENCE_CODES = (60, 320)
_REFERENCE_TRIES = 20
_OPEN_ROWS = 12
_CODES = (8, 800)
_CHARACTERS_PER_SECOND = (3, 30)


@dataclass(frozen=True, slots=True)
class Rows:
    """Packed rows: token ids, loss mask and document number, each `(B, length + 1)`."""

    ids: NDArray[np.int32]
    loss: NDArray[np.bool_]
    document: NDArray[np.int32]


def read_sentences(path: Path) -> dict[int, str]:
    """Spoken text of each sentence id from `id kind text` lines."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        fields = (line.rstrip("\n").split("\t") for line in lines)
        return {int(row[0]): row[2] for row in fields}


class Corpus:
    """Utterances by speaker, training and held-out ones apart."""

    def __init__(self, found: tokens.Tokens, texts: dict[int, str]) -> None:
        self._texts = texts
        self._codes = found
        self._code_at = np.cumsum(found.lengths) - found.lengths
        self._word_at = np.cumsum(found.words) - found.words
        characters = np.array([len(texts.get(int(s), "")) for s in found.sentence])
        words = np.array([len(sequences.layout.spoken_words(texts.get(int(s), ""))) for s in found.sentence])
        speed = characters / np.maximum(found.lengths / 50, 0.02)
        good = (found.lengths > _CODES[0]) & (found.lengths < _CODES[1])
        good &= (speed > _CHARACTERS_PER_SECOND[0]) & (speed < _CHARACTERS_PER_SECOND[1])
        good &= words == found.words
        held_out = teacher_audio.is_validation(found.sentence)
        self.training = np.nonzero(good & ~held_out)[0]
        self.validation = np.nonzero(good & held_out)[0]
        self._trainable = good & ~held_out
        self.hours = found.lengths[self.training].sum() / 50 / 3600
        speaker = found.speaker[self.training]
        self._by_speaker = {s: self.training[speaker == s] for s in np.unique(speaker)}

    def spoken(self, index: int) -> Spoken:
        """One utterance with its audio tokens."""
        found = self._codes
        code, word = self._code_at[index], self._word_at[index]
        audio = sequences.audio_tokens(
            found.codes[code : code + found.lengths[index]],
            found.word_at[word : word + found.words[index]],
        )
        return Spoken(self._texts[int(found.sentence[index])], audio)

    def reference(self, index: int, rng: np.random.Generator) -> int | None:
        """A training utterance of the same speaker, neither short nor long, other than `index`."""
        pool = self._by_speaker.get(self._codes.speaker[index])
        if pool is None:
            return None
        low, high = _REFERENCE_CODES
        for candidate in rng.choice(pool, _REFERENCE_TRIES):
            if candidate != index and low <= self._codes.lengths[candidate] <= high:
                return int(candidate)
        return None

    def _followers(self, index: int, count: int, reference: int | None) -> list[int]:
        """Up to `count` utterances that the teacher spoke right after `index`, in one breath with it."""
        found: list[int] = []
        if not self._trainable[index]:
            return found
        for following in range(index + 1, index + 1 + count):
            usable = following < len(self._codes) and self._trainable[following]
            if not usable or following == reference:
                break
            if self._codes.speaker[following] != self._codes.speaker[index]:
                break
            found.append(following)
        return found

    def sequence(self, index: int, rng: np.random.Generator) -> Sequence:
        """One training example that begins with utterance `index`."""
        made = Sequence()
        reference = None
        if rng.random() >= _WITHOUT_VOICE:
            reference = self.reference(index, rng)
        sequences.add_prefix(made, None if reference is None else self.spoken(reference))
        form = rng.random()
        if form < _FULL + _INTERLEAVED:
            interleaved = bool(form >= _FULL)
            sequences.add_segment(made, self.spoken(index), rng, interleaved=interleaved)
            return made
        chosen = [index, *self._followers(index, int(rng.integers(1, _MOST_SEGMENTS)), reference)]
        for each in chosen:
            interleaved = bool(rng.random() < 0.5)
            sequences.add_segment(made, self.spoken(each), rng, interleaved=interleaved)
        return made

    def rows(self, order: NDArray[np.int64], length: int, seed: int) -> Iterator[Rows]:
        """Packed rows of `length` + 1 tokens, one at a time, `order` shuffled anew each epoch."""
        rng = np.random.default_rng(seed)
        order = order.copy()
        packer = _Packer(length + 1)
        while True:
            rng.shuffle(order)
            for index in order:
                yield from packer.add(self.sequence(int(index), rng))

    def batches(self, order: NDArray[np.int64], rows: int, length: int, seed: int) -> Iterator[Rows]:
        """Batches of `rows` packed rows, without end."""
        stream = self.rows(order, length, seed)
        while True:
            chosen = [next(stream) for _ in range(rows)]
            yield Rows(
                np.stack([row.ids for row in chosen]),
                np.stack([row.loss for row in chosen]),
                np.stack([row.document for row in chosen]),
            )


class _Packer:
    """Fills several open rows with whole sequences, each into the row it fills best.

    Sequences longer than a row are dropped.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._open: list[list[Sequence]] = []
        self._used: list[int] = []

    def add(self, sequence: Sequence) -> Iterator[Rows]:
        """Takes a sequence; yields the fullest row when there is room in none."""
        size = len(sequence.ids)
        if size > self._length:
            return
        fitting = [i for i, used in enumerate(self._used) if used + size <= self._length]
        if not fitting:
            if len(self._open) == _OPEN_ROWS:
                fullest = max(range(_OPEN_ROWS), key=self._used.__getitem__)
                yield self._row(self._open.pop(fullest))
                self._used.pop(fullest)
            self._open.append([])
            self._used.append(0)
            fitting = [len(self._open) - 1]
        best = max(fitting, key=self._used.__getitem__)
        self._open[best].append(sequence)
        self._used[best] += size

    def _row(self, packed: list[Sequence]) -> Rows:
        ids = np.full(self._length, PAD, np.int32)
        loss = np.zeros(self._length, np.bool_)
        document = np.full(self._length, len(packed), np.int32)
        at = 0
        for number, sequence in enumerate(packed):
            end = at + len(sequence.ids)
            ids[at:end], loss[at:end], document[at:end] = sequence.ids, sequence.loss, number
            at = end
        return Rows(ids, loss, document)


def load_corpus(folder: Path, sentences: Path) -> Corpus:
    """The corpus of a token folder."""
    return Corpus(tokens.load(folder), read_sentences(sentences))
