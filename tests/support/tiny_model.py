"""A model with ember's layout and rules, whose codec is linear and needs no weights."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.contract import ModelInfo, Sampling, VoiceInfo
from engine.models.base import TokenLayout, VoicePrompt
from engine.models.ember import layout
from engine.models.ember.model import EmberModel

FRAME = layout.SAMPLES_PER_CODE


@dataclass(slots=True)
class TinyState:
    """The last code of each stream, and how many it has said."""

    last: Tensor
    count: Tensor


class TinyCodec:
    """A frame's samples: ``(0.5 * code + 0.25 * last code) / 8000 + speaker[0]``, so all of them show."""

    def __init__(self) -> None:
        self.fail_on: set[int] = set()
        self.nan_on: set[int] = set()

    def init_state(self, batch: int) -> TinyState:
        return TinyState(torch.zeros(batch), torch.zeros(batch, dtype=torch.long))

    def condition(self, speakers: Tensor) -> Tensor:
        return speakers

    def step(self, codes: Tensor, condition: Tensor, state: TinyState) -> Tensor:
        if self.fail_on & set(codes.flatten().tolist()):
            raise RuntimeError("scripted failure")
        value = codes.float() / layout.CODE_COUNT
        before = torch.cat([state.last[:, None], value[:, :-1]], 1)
        level = 0.5 * value + 0.25 * before + condition[:, :1]
        for code in self.nan_on:
            level = torch.where(codes == code, float("nan"), level)
        state.last, state.count = value[:, -1], state.count + codes.shape[1]
        return level.repeat_interleave(FRAME, 1)


def offline(codes: list[int], speaker: float) -> np.ndarray:
    """What a stream of ``codes`` must sound like."""
    codec = TinyCodec()
    return (
        codec.step(torch.tensor([codes]), torch.tensor([[speaker]]), codec.init_state(1))[0]
        .clamp(-1, 1)
        .numpy()
    )


class TinyModel:
    """A `SpeechModel` for unit tests, with two voices."""

    layout: TokenLayout = EmberModel.layout
    rules = EmberModel.rules
    lm_folder = Path("unused")
    context_tokens = 1536
    history_segments = 2
    word_pattern: re.Pattern[str] = EmberModel.word_pattern

    def __init__(self) -> None:
        self.codec = TinyCodec()
        self._voices = {name: self._voice(name, at) for at, name in enumerate(("ada", "bob"), 1)}
        self.info = ModelInfo(
            name="tiny",
            sample_rate=24_000,
            frame_samples=FRAME,
            streams_text=True,
            default_voice="ada",
            voices={n: VoiceInfo(n, "", "en", len(v.prefix)) for n, v in self._voices.items()},
            defaults=Sampling(temperature=0.7, top_p=1.0, top_k=50, repetition_penalty=1.0),
            max_utterance_words=1000,
        )

    def voice(self, name: str) -> VoicePrompt:
        return self._voices[name]

    def load_codec(self, device: str, bfloat16: bool | None) -> TinyCodec:
        return self.codec

    def _voice(self, name: str, at: int) -> VoicePrompt:
        audio = [layout.WORD, *range(layout.CODE_BASE, layout.CODE_BASE + 40 * at)]
        prefix = tuple(layout.voice_prefix(f"this is {name}.", audio))
        return VoicePrompt(prefix, np.full(1, at / 10, np.float32))
