"""Small made-up shards, for trying the pipeline without a teacher.

Each spoken word is a short tone whose pitch depends on its letters and on the speaker.

    python -m scripts.train.fake_shards FOLDER SENTENCES.tsv.xz --utterances 200
"""

from __future__ import annotations

import argparse
import lzma
from pathlib import Path

import numpy as np

from engine.models.ember.layout import SAMPLE_RATE_HZ, SAMPLES_PER_CODE, spoken_words
from scripts.train.segments import Utterance
from scripts.train.shards import ShardWriter

_LEXICON = ["the", "a", "train", "leaves", "at", "noon", "so", "please", "check", "your", "order", "again"]


def sentences(count: int, rng: np.random.Generator) -> list[str]:
    """Random sentences of two to fifteen words."""
    return [" ".join(rng.choice(_LEXICON, rng.integers(2, 16))) + "." for _ in range(count)]


def speak(sentence: int, text: str, speaker: int, rng: np.random.Generator) -> Utterance:
    """One utterance of tones."""
    parts, starts, at = [np.zeros(600)], [], 600
    for word in spoken_words(text):
        samples = int(SAMPLE_RATE_HZ * (0.06 + 0.05 * len(word)))
        pitch = 90 + 7 * sum(map(ord, word)) % 200 + 3 * speaker % 70
        parts.append(0.1 * np.sin(2 * np.pi * pitch * np.arange(samples) / SAMPLE_RATE_HZ))
        starts.append(at)
        at += samples
    wave = np.concatenate([*parts, np.zeros(2400)])
    audio = (32767 * (wave + 0.003 * rng.standard_normal(len(wave)))).astype(np.int16)
    frames = -(-len(audio) // SAMPLES_PER_CODE)
    labels = rng.integers(0, 40, frames).astype(np.uint8)
    return Utterance(sentence, audio, np.array(starts, np.int32), labels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("table", type=Path)
    parser.add_argument("--utterances", type=int, default=200)
    parser.add_argument("--shards", type=int, default=2)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    texts = sentences(args.utterances, rng)
    with lzma.open(args.table, "wt") as table:
        table.writelines(f"{i}\tmade\t{text}\n" for i, text in enumerate(texts))
    for index in range(args.shards):
        writer = ShardWriter(args.folder, f"fake{index}")
        for i in range(index, len(texts), args.shards):
            speaker = int(rng.choice([0, 1, 100, 101]))
            writer.add(speak(i, texts[i], speaker, rng), speaker)
        writer.flush()


if __name__ == "__main__":
    main()
