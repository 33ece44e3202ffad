"""The teacher's audio of the test sentences: what the model's speech is measured against.

The folder holds shards as the synthesis writes them (`scripts.train.teacher_audio`) and the list of their
sentences, `*sentences.tsv` or `*sentences.tsv.xz`: id <tab> kind <tab> spoken text. Utterances are found
by what is said, whatever the punctuation, so the folder may hold more than is asked for.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scripts.eval.audio import Wave
from scripts.eval.normalise import reference_words
from scripts.train import teacher_audio


@dataclass(frozen=True, slots=True)
class Utterance:
    """One sentence as the teacher says it.

    Attributes:
        word_starts: first sample of every spoken word.
    """

    text: str
    speaker: int
    wave: Wave
    word_starts: NDArray[np.int32]


def _sentences(folder: Path) -> dict[int, str]:
    paths = [*folder.glob("*sentences.tsv.xz"), *folder.glob("*sentences.tsv")]
    if not paths:
        raise FileNotFoundError(f"no list of sentences in {folder}")
    packed = paths[0].suffix == ".xz"
    text = lzma.decompress(paths[0].read_bytes()).decode() if packed else paths[0].read_text()
    rows = (line.split("\t") for line in text.splitlines())
    return {int(number): spoken for number, _, spoken in rows}


def _utterances(folder: Path) -> Iterator[Utterance]:
    texts = _sentences(folder)
    for meta in teacher_audio.complete(folder):
        for spoken in teacher_audio.load(meta):
            wave = np.asarray(spoken.audio / np.float32(32768), np.float32)
            yield Utterance(texts[spoken.sentence], spoken.speaker, wave, spoken.words)


def _key(text: str) -> str:
    return " ".join(reference_words(text))


class Teacher:
    """Teacher utterances by spoken text."""

    def __init__(self, folder: Path) -> None:
        """Reads every shard of `folder`."""
        self._by_text: dict[str, list[Utterance]] = {}
        for utterance in _utterances(folder):
            self._by_text.setdefault(_key(utterance.text), []).append(utterance)

    def __len__(self) -> int:
        return sum(map(len, self._by_text.values()))

    def find(self, text: str, speaker: int | None = None) -> Utterance | None:
        """An utterance of `text`, of `speaker` if there is one of theirs, else of anybody."""
        candidates = self._by_text.get(_key(text), [])
        own = (utterance for utterance in candidates if utterance.speaker == speaker)
        return next(own, candidates[0] if candidates else None)
