"""Ember as the engine sees it: its folder, voices, block rules and token layout.

Folder: ``lm/`` (config.json, generation_config.json, safetensors), ``codec/`` (config.json,
model.safetensors) and ``voices/NAME/`` with
- ``prompt.wav``, ``transcript.txt``: the reference and what it says, in spoken form;
- ``voice.json``: ``description``, ``provenance``, optionally ``language`` and ``default``;
- ``tokens.npy``: int32, the reference's audio tokens (codes and word boundaries, as token ids);
- ``spk.npy``: float32 [192], the codec's speaker vector.
"""

import json
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.blocks import BlockRules
from engine.contract import ModelInfo, Sampling, VoiceInfo
from engine.errors import ModelUnusable, VoiceNotFound
from engine.models.base import StreamingCodec, TokenLayout, VoicePrompt
from engine.models.ember import layout

if TYPE_CHECKING:
    from engine.models.ember.codec import DecoderState

_CONTEXT_TOKENS = 1536
"""The length of a training row: positions past it were never seen."""
_MAX_PREFIX = 1024
_SPEAKER_SIZE = 192

_LAYOUT = TokenLayout(
    vocab_size=layout.VOCAB_SIZE,
    code_base=layout.CODE_BASE,
    code_count=layout.CODE_COUNT,
    word=layout.WORD,
    end=layout.EOS,
    text_block=lambda text, final: layout.text_block(text, final=final),
)


class EmberModel:
    """A `SpeechModel`. Reads the small files at once; weights are read by vLLM and `load_codec`."""

    rules = BlockRules(block_tokens=layout.BLOCK_TOKENS, first_chars=layout.MIN_TEXT_BYTES)
    layout = _LAYOUT
    context_tokens = _CONTEXT_TOKENS
    history_segments = 1
    word_pattern = re.compile(r"[a-z',.?!;:-]*[a-z][a-z',.?!;:-]*")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lm_folder = folder / "lm"
        for part in ("lm/config.json", "codec/config.json", "codec/model.safetensors", "voices"):
            if not (folder / part).exists():
                raise ModelUnusable(f"{folder / part} is missing")
        vocab = _read_json(self.lm_folder / "config.json").get("vocab_size")
        if vocab != layout.VOCAB_SIZE:
            raise ModelUnusable(f"{self.lm_folder}: vocab_size is {vocab}, not {layout.VOCAB_SIZE}")
        self._prompts: dict[str, VoicePrompt] = {}

    @cached_property
    def info(self) -> ModelInfo:
        """What the model is; reads every voice's folder."""
        notes = {
            path.parent.name: _read_json(path) for path in sorted(self.folder.glob("voices/*/voice.json"))
        }
        if not notes:
            raise ModelUnusable(f"{self.folder / 'voices'} holds no voice")
        return ModelInfo(
            name="ember",
            sample_rate=layout.SAMPLE_RATE_HZ,
            frame_samples=layout.SAMPLES_PER_CODE,
            streams_text=True,
            default_voice=next((name for name, note in notes.items() if note.get("default")), min(notes)),
            voices={name: self._voice_info(name, note) for name, note in notes.items()},
            defaults=self._defaults(),
            max_utterance_words=5000,
        )

    def voice(self, name: str) -> VoicePrompt:
        """The prompt of a voice; read once. Raises `VoiceNotFound`, `ModelUnusable`."""
        if name not in self._prompts:
            if name not in self.info.voices:
                raise VoiceNotFound(name, tuple(self.info.voices))
            self._prompts[name] = _read_voice(self.folder / "voices" / name)
        return self._prompts[name]

    def load_codec(self, device: str, bfloat16: bool | None) -> "StreamingCodec[DecoderState]":
        """The codec's decoder on ``device``. Raises `ModelUnusable`."""
        from engine.models.ember.codec import EmberCodec  # torch is slow to import
        from engine.models.ember.streaming import EmberDecoder, bfloat16_is_fast

        try:
            codec = EmberCodec.load(self.folder / "codec", device)
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            raise ModelUnusable(f"{self.folder / 'codec'}: {error}") from error
        return EmberDecoder(codec, bfloat16=bfloat16_is_fast(device) if bfloat16 is None else bfloat16)

    def _voice_info(self, name: str, note: Mapping[str, object]) -> VoiceInfo:
        prompt = _read_voice(self.folder / "voices" / name)
        self._prompts[name] = prompt
        return VoiceInfo(
            name=name,
            description=str(note.get("description", "")),
            language=str(note.get("language", "en")),
            prefix_tokens=len(prompt.prefix),
            provenance=str(note.get("provenance", "")),
        )

    def _defaults(self) -> Sampling:
        path = self.lm_folder / "generation_config.json"
        told = _read_json(path) if path.exists() else {}
        return Sampling(
            temperature=_number(told, "temperature", 0.7),
            top_p=_number(told, "top_p", 1.0),
            top_k=int(_number(told, "top_k", 50)),
            repetition_penalty=_number(told, "repetition_penalty", 1.0),
        )


def load(folder: Path) -> EmberModel:
    """The model in ``folder``. Raises `ModelUnusable`."""
    return EmberModel(folder)


def _read_json(path: Path) -> dict[str, object]:
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ModelUnusable(f"{path}: {error}") from error
    if not isinstance(value, dict):
        raise ModelUnusable(f"{path} must hold a JSON object")
    return value


def _number(told: Mapping[str, object], key: str, default: float) -> float:
    value = told.get(key, default)
    if not isinstance(value, int | float):
        raise ModelUnusable(f"generation_config.json: {key} must be a number, got {value!r}")
    return value


def _read_voice(folder: Path) -> VoicePrompt:
    try:
        text = (folder / "transcript.txt").read_text().strip()
        tokens = np.load(folder / "tokens.npy", allow_pickle=False)
        speaker = np.load(folder / "spk.npy", allow_pickle=False).astype(np.float32).reshape(-1)
    except (OSError, ValueError) as error:
        raise ModelUnusable(f"voice {folder}: {error}") from error
    ids = [int(token) for token in tokens.reshape(-1)]
    if not all(token == layout.WORD or _LAYOUT.is_code(token) for token in ids):
        raise ModelUnusable(f"{folder / 'tokens.npy'} holds ids that are neither codes nor word boundaries")
    if speaker.shape != (_SPEAKER_SIZE,) or not np.isfinite(speaker).all():
        raise ModelUnusable(f"{folder / 'spk.npy'} must hold {_SPEAKER_SIZE} finite values")
    prefix = tuple(layout.voice_prefix(text, ids))
    if len(prefix) > _MAX_PREFIX:
        raise ModelUnusable(f"voice {folder}: the prompt has {len(prefix)} tokens, at most {_MAX_PREFIX}")
    return VoicePrompt(prefix, speaker)
