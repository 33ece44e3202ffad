"""A Hugging Face style folder of a very small Llama with ember's vocabulary and random weights."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from engine.models.ember import layout

_HIDDEN, _INNER, _LAYERS, _HEADS, _HEAD = 128, 256, 2, 2, 64


def write_random_lm(folder: Path, seed: int = 0) -> Path:
    """Writes config.json and model.safetensors in float32."""
    folder.mkdir(parents=True, exist_ok=True)
    random = torch.Generator().manual_seed(seed)

    def matrix(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=random) * 0.08

    weights = {
        "model.embed_tokens.weight": matrix(layout.VOCAB_SIZE, _HIDDEN),
        "model.norm.weight": torch.ones(_HIDDEN),
    }
    for layer in range(_LAYERS):
        name = f"model.layers.{layer}"
        weights |= {
            f"{name}.self_attn.q_proj.weight": matrix(_HEADS * _HEAD, _HIDDEN),
            f"{name}.self_attn.k_proj.weight": matrix(_HEADS * _HEAD, _HIDDEN),
            f"{name}.self_attn.v_proj.weight": matrix(_HEADS * _HEAD, _HIDDEN),
            f"{name}.self_attn.o_proj.weight": matrix(_HIDDEN, _HEADS * _HEAD),
            f"{name}.mlp.gate_proj.weight": matrix(_INNER, _HIDDEN),
            f"{name}.mlp.up_proj.weight": matrix(_INNER, _HIDDEN),
            f"{name}.mlp.down_proj.weight": matrix(_HIDDEN, _INNER),
            f"{name}.input_layernorm.weight": torch.ones(_HIDDEN),
            f"{name}.post_attention_layernorm.weight": torch.ones(_HIDDEN),
        }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": layout.VOCAB_SIZE,
        "hidden_size": _HIDDEN,
        "intermediate_size": _INNER,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _HEADS,
        "head_dim": _HEAD,
        "hidden_act": "silu",
        "max_position_embeddings": 2048,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "bos_token_id": layout.BOS,
        "eos_token_id": layout.EOS,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder
