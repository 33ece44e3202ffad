"""What a model folder offers to the engine. A new model implements these and touches no other folder."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from engine.blocks import BlockRules
from engine.contract import ModelInfo

if TYPE_CHECKING:
    from torch import Tensor

State = TypeVar("State")


class StreamingCodec(Protocol[State]):
    """A causal decoder with explicit state; one code gives ``ModelInfo.frame_samples`` samples.

    ``State`` is a dataclass of tensors whose first dimension is the stream.
    """

    def init_state(self, batch: int) -> State:
        """State of ``batch`` streams that have said nothing yet."""

    def condition(self, speakers: "Tensor") -> "Tensor":
        """Speaker vectors ``float32 [B, S]`` to what `step` needs of them, ``[B, C]``; once a stream."""

    def step(self, codes: "Tensor", condition: "Tensor", state: State) -> "Tensor":
        """Next codes ``int64 [B, n]`` and conditions ``[B, C]`` to samples ``float32 [B, n * frame]``.

        Updates ``state``. The concatenation over steps equals decoding at once, however the codes are cut.
        """


@dataclass(frozen=True)
class TokenLayout:
    """Token ids of a single-codebook model.

    Code ``c`` is id ``code_base + c``. ``word`` stands before the first code of each word; ``end`` closes a
    segment. ``text_block(text, final)`` gives the ids that hand text to the model.
    """

    vocab_size: int
    code_base: int
    code_count: int
    word: int
    end: int
    text_block: Callable[[str, bool], list[int]]

    @cached_property
    def audio(self) -> tuple[int, ...]:
        """What may be sampled in a non-final block."""
        return self.word, *range(self.code_base, self.code_base + self.code_count)

    @cached_property
    def audio_or_end(self) -> tuple[int, ...]:
        """What may be sampled in a final block."""
        return self.end, *self.audio

    def is_code(self, token: int) -> bool:
        """True when ``token`` stands for a codec code."""
        return 0 <= token - self.code_base < self.code_count


@dataclass(frozen=True, slots=True)
class VoicePrompt:
    """A voice ready to use: the ids of its prefix and the codec's speaker vector, ``float32 [S]``."""

    prefix: tuple[int, ...]
    speaker: npt.NDArray[np.float32]


class SpeechModel(Protocol):
    """A codec LM that stock vLLM runs by token ids, and its codec."""

    info: ModelInfo
    layout: TokenLayout
    rules: BlockRules
    lm_folder: Path
    """A Hugging Face style folder: ``config.json`` and safetensors."""
    context_tokens: int
    """Tokens that prompt and output may have together for the model to speak well."""
    history_segments: int
    """Finished segments that are kept before the current one."""
    word_pattern: re.Pattern[str]
    """What a spoken word must match as a whole."""

    def voice(self, name: str) -> VoicePrompt:
        """The prompt of a voice in ``info.voices``; loaded once."""

    def load_codec(self, device: str, bfloat16: bool | None) -> StreamingCodec[object]:
        """The codec on ``device``, ready for inference; ``bfloat16`` None: where that is fast."""


@dataclass(frozen=True, slots=True)
class Found:
    """A model that the registry found: its folder, and how it is loaded."""

    name: str
    folder: Path
    load: Callable[[Path], SpeechModel] = field(repr=False)


def segment_text(words: Sequence[str], *, more: bool) -> str:
    """Spoken text of ``words``, with a space after the last one when ``more`` follows."""
    return " ".join(words) + (" " if more and words else "")
