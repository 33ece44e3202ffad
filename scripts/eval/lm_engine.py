"""The language model through stock vLLM, offline: token ids in, token ids out, many at once.

The settings are those of the server: token ids only, block size 32 on the CPU, no compilation, the
engine in this process. `import vllm` happens when the engine starts, after the environment is set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.models.ember import layout

if TYPE_CHECKING:
    from vllm import SamplingParams

_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}
_CODES = list(range(layout.CODE_BASE, layout.CODE_BASE + layout.CODE_COUNT))
_ALLOWED = [*_CODES, layout.WORD]
_ALLOWED_LAST = [*_ALLOWED, layout.EOS]
_CONTEXT = 2048


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; 0 or 1 switches a filter off as in vLLM."""

    temperature: float = 0.7
    top_k: int = 50
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 1

    def for_request(self, number: int) -> Sampling:
        """The same with a seed of its own."""
        return replace(self, seed=self.seed * 100_003 + number)


@dataclass(frozen=True, slots=True)
class Request:
    """One generation.

    Attributes:
        prompt: token ids.
        limit: most tokens to draw.
        final: whether the model may end the segment; else exactly `limit` tokens come.
    """

    prompt: list[int]
    sampling: Sampling
    limit: int
    final: bool = True


class OfflineLm:
    """A language model folder, ready to generate."""

    def __init__(
        self, folder: Path, *, dtype: str = "bfloat16", streams: int = 32, dummy: bool = False
    ) -> None:
        """Starts the engine (several seconds).

        Args:
            folder: `config.json` and weights of a `LlamaForCausalLM`.
            dtype: arithmetic; float32 is reproducible across batch sizes.
            streams: sequences generated at once.
            dummy: random weights, to try the machinery.
        """
        os.environ.update(_ENVIRONMENT)
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        from vllm import LLM

        self._llm = LLM(
            model=str(folder),
            skip_tokenizer_init=True,
            dtype=dtype,
            enforce_eager=True,
            block_size=32,
            max_model_len=_CONTEXT,
            max_num_seqs=streams,
            max_num_batched_tokens=_CONTEXT,
            enable_prefix_caching=True,
            # A seeded request that is prefilled in pieces ends the engine on the CPU.
            enable_chunked_prefill=False,
            kv_cache_memory_bytes=1 << 30,
            load_format="dummy" if dummy else "auto",
        )

    def generate(self, requests: Sequence[Request]) -> list[list[int]]:
        """Draws tokens for every request, batched; a final `EOS` is returned as drawn."""
        prompts: list[Any] = [{"prompt_token_ids": _checked(request.prompt)} for request in requests]
        outputs = self._llm.generate(prompts, [_params(request) for request in requests], use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]


def _checked(prompt: list[int]) -> list[int]:
    """The prompt, if every id is one; a wrong id would end the engine."""
    if not all(type(token) is int and 0 <= token < layout.VOCAB_SIZE for token in prompt):
        raise ValueError("a prompt holds something that is no token id of the model")
    return prompt


def _params(request: Request) -> SamplingParams:
    from vllm import SamplingParams

    sampling = request.sampling
    room = _CONTEXT - len(request.prompt) - 1
    return SamplingParams(
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        top_p=sampling.top_p,
        min_p=sampling.min_p,
        repetition_penalty=sampling.repetition_penalty,
        seed=sampling.seed,
        max_tokens=min(request.limit, room),
        allowed_token_ids=_ALLOWED_LAST if request.final else _ALLOWED,
        stop_token_ids=[layout.EOS] if request.final else [],
        ignore_eos=True,
        detokenize=False,
    )
