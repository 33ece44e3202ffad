"""Cuts the voice prompts out of the teacher's reference audio: one folder a fixed voice, for `package.py`.

    python -m scripts.train.prompts REFERENCE OUT

REFERENCE holds shards and `ref_sentences.tsv.xz`, whose sentences of the kind `prompt` every voice spoke.
"""

from __future__ import annotations

import argparse
import json
import lzma
import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.models.ember.layout import SAMPLE_RATE_HZ
from scripts.train import teacher_audio
from scripts.train.speakers import FIXED, STYLES, Speaker
from scripts.train.teacher_audio import Recording

_DEFAULT_VOICE = "grace"


def write_wave(path: Path, audio: NDArray[np.int16]) -> None:
    """Writes mono 16-bit audio at 24 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE_HZ)
        file.writeframes(audio.astype("<i2").tobytes())


def provenance(speaker: Speaker) -> str:
    """Where the voice comes from, in a sentence."""
    parts = zip(STYLES, speaker.weights, strict=True)
    mixture = " + ".join(f"{weight:g} {style}" for style, weight in parts if weight)
    return (
        "Synthetic: Kokoro-82M (Apache-2.0) with English phonemes, "
        f"style {mixture}, played {speaker.factor:g} times as fast at an unchanged tempo. "
        "No person was recorded."
    )


def write_prompt(folder: Path, speaker: Speaker, text: str, recording: Recording) -> None:
    """Writes one voice's prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    write_wave(folder / "prompt.wav", recording.audio)
    (folder / "transcript.txt").write_text(text + "\n")
    about = {
        "description": speaker.description,
        "language": "en",
        "provenance": provenance(speaker),
        "speaker_id": speaker.id,
        "default": speaker.name == _DEFAULT_VOICE,
        "word_starts": recording.words.tolist(),
    }
    (folder / "voice.json").write_text(json.dumps(about, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    with lzma.open(args.reference / "ref_sentences.tsv.xz", "rt") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    prompts = [(int(number), text) for number, kind, text in rows if kind == "prompt"]
    spoken = {
        (recording.sentence, recording.speaker): recording
        for meta in teacher_audio.complete(args.reference)
        for recording in teacher_audio.load(meta)
    }
    for speaker in FIXED:
        number, text = prompts[speaker.id % len(prompts)]
        recording = spoken[number, speaker.id]
        write_prompt(args.out / speaker.name, speaker, text, recording)
        print(f"{speaker.name}: {len(recording.audio) / SAMPLE_RATE_HZ:.2f} s, {text}")


if __name__ == "__main__":
    main()
