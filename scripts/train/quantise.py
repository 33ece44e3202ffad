"""int8 weights for the language model, in the `compressed-tensors` layout that stock vLLM loads.

Weights are int8 with one scale an output channel, activations int8 with one scale a token, computed as
they come. Embeddings and norms stay in bfloat16.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LEVELS = 127
_CLIPS = tuple(1 - 0.02 * i for i in range(11))

CONFIG: dict[str, object] = {
    "quant_method": "compressed-tensors",
    "format": "int-quantized",
    "quantization_status": "compressed",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 8,
                "type": "int",
                "symmetric": True,
                "strategy": "channel",
                "dynamic": False,
            },
            "input_activations": {
                "num_bits": 8,
                "type": "int",
                "symmetric": True,
                "strategy": "token",
                "dynamic": True,
            },
        }
    },
}
"""`quantization_config` of `config.json`."""


def quantise_matrix(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Rounds `(out, in)` to int8 with the scale per row that loses least.

    Returns:
        The int8 matrix and its scales `(out, 1)`.
    """
    weight = weight.float()
    widest = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / _LEVELS
    best_scale, best_error = widest, torch.full_like(widest, torch.inf)
    for clip in _CLIPS:
        # Scales are stored in bfloat16, so the choice is made among what can be stored.
        scale = (widest * clip).bfloat16().float()
        rounded = (weight / scale).round().clamp(-_LEVELS, _LEVELS)
        error = (rounded * scale - weight).square().sum(1, keepdim=True)
        better = error < best_error
        best_scale = torch.where(better, scale, best_scale)
        best_error = torch.where(better, error, best_error)
    rounded = (weight / best_scale).round().clamp(-_LEVELS, _LEVELS)
    return rounded.to(torch.int8), best_scale


def is_quantised(name: str) -> bool:
    """Whether a parameter of `LlamaForCausalLM` is the weight of a layer's linear map."""
    return name.endswith("_proj.weight")


def quantise(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of an int8 checkpoint from those of a bfloat16 one."""
    made: dict[str, Tensor] = {}
    for name, value in state.items():
        if is_quantised(name):
            made[name], scale = quantise_matrix(value)
            made[f"{name}_scale"] = scale.bfloat16()
        else:
            made[name] = value.bfloat16()
    return made


def restored(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """bfloat16 weights with the rounding of an int8 checkpoint, to hear its loss without vLLM."""
    return {
        name: (value.float() * state[f"{name}_scale"].float()).bfloat16() if is_quantised(name) else value
        for name, value in state.items()
        if not name.endswith("_scale")
    }
