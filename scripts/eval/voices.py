"""The shipped voices as the evaluation needs them: prefix ids, speaker vector, reference audio."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.models.ember import layout
from engine.models.ember.codec import EmberCodec
from scripts.eval.audio import Wave, read_wave
from scripts.train.sequences import audio_tokens
from scripts.train.speakers import FIXED
from scripts.train.tokens import word_codes


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice.

    Attributes:
        speaker: the teacher's speaker of this name, None if it has none.
        wave: the reference audio.
        prefix: token ids that open every sequence of this voice.
        vector: `(1, D)` conditions the decoder.
    """

    name: str
    speaker: int | None
    wave: Wave
    prefix: list[int]
    vector: Tensor


def reference_tokens(codes: NDArray[np.integer], word_starts: Sequence[int]) -> list[int]:
    """Token ids of reference audio, `WORD` where training puts it.

    Args:
        codes: codec codes.
        word_starts: first sample of every word, ascending; empty if unknown.
    """
    at = word_codes(np.asarray(word_starts, np.int64), layout.SAMPLES_PER_CODE, len(codes))
    return [int(token) for token in audio_tokens(codes, at)]


def load_voice(folder: Path, codec: EmberCodec) -> Voice:
    """Reads one voice folder.

    `prompt.wav` and `transcript.txt` are needed. `tokens.npy` (token ids of the reference audio with its
    word boundaries) and `spk.npy` are taken where they are; else the codec makes them from the audio,
    with the word starts of `voice.json` (`word_starts`, in samples) if it has them.
    """
    about = json.loads((folder / "voice.json").read_text())
    wave = read_wave(folder / "prompt.wav")
    tensor = torch.from_numpy(wave)[None]
    stored_tokens, stored_vector = folder / "tokens.npy", folder / "spk.npy"
    tokens = (
        [int(token) for token in np.load(stored_tokens)]
        if stored_tokens.is_file()
        else reference_tokens(codec.encode(tensor)[0].numpy(), about.get("word_starts", []))
    )
    vector = (
        torch.from_numpy(np.load(stored_vector).astype(np.float32)).reshape(1, -1)
        if stored_vector.is_file()
        else codec.speaker(tensor)
    )
    speaker = next((fixed.id for fixed in FIXED if fixed.name == folder.name), None)
    transcript = (folder / "transcript.txt").read_text().strip()
    return Voice(folder.name, speaker, wave, layout.voice_prefix(transcript, tokens), vector)


def load_voices(folder: Path, codec: EmberCodec) -> list[Voice]:
    """All voices of a folder, by name."""
    folders = sorted(path.parent for path in folder.glob("*/prompt.wav"))
    if not folders:
        raise FileNotFoundError(f"no voices in {folder}")
    return [load_voice(path, codec) for path in folders]
