"""The language model: the arithmetic of `transformers.LlamaForCausalLM`, written to train fast."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from engine.models.ember import layout

Attention = Callable[[Tensor, Tensor, Tensor, object], Tensor]
"""Attention over `(B, heads, T, head_dim)` under a mask made by the matching mask function."""

_EPSILON = 1e-5
_ROPE_BASE = 10_000.0
_MAX_POSITIONS = 4096


@dataclass(frozen=True)
class LlamaConfig:
    """Shape of the model."""

    hidden: int = 512
    layers: int = 8
    heads: int = 8
    kv_heads: int = 4
    inner: int = 1536
    dropout: float = 0.1

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.hidden // self.heads

    def to_hf(self) -> dict[str, object]:
        """The `config.json` of `transformers`."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": layout.VOCAB_SIZE,
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "hidden_act": "silu",
            "max_position_embeddings": _MAX_POSITIONS,
            "rms_norm_eps": _EPSILON,
            "rope_theta": _ROPE_BASE,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "mlp_bias": False,
            "attention_dropout": 0.0,
            "initializer_range": 0.02,
            "bos_token_id": layout.BOS,
            "eos_token_id": layout.EOS,
            "pad_token_id": layout.PAD,
            "torch_dtype": "bfloat16",
            "use_cache": True,
        }


class RMSNorm(nn.Module):
    """Root-mean-square norm, computed in float32."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + _EPSILON)
        return (y * self.weight).to(x.dtype)


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + turned * sin


class Layer(nn.Module):
    """One transformer layer."""

    def __init__(self, config: LlamaConfig, attention: Attention) -> None:
        super().__init__()
        linear = lambda a, b: nn.Linear(a, b, bias=False)  # noqa: E731
        kv = config.kv_heads * config.head_dim
        self.config, self.attention = config, attention
        self.input_layernorm = RMSNorm(config.hidden)
        self.q_proj = linear(config.hidden, config.hidden)
        self.k_proj = linear(config.hidden, kv)
        self.v_proj = linear(config.hidden, kv)
        self.o_proj = linear(config.hidden, config.hidden)
        self.post_attention_layernorm = RMSNorm(config.hidden)
        self.gate_proj = linear(config.hidden, config.inner)
        self.up_proj = linear(config.hidden, config.inner)
        self.down_proj = linear(config.inner, config.hidden)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, mask: object) -> Tensor:
        batch, length, width = x.shape
        config, drop = self.config, self.config.dropout
        y = self.input_layernorm(x)
        split = lambda z, n: z.view(batch, length, n, config.head_dim).transpose(1, 2)  # noqa: E731
        query = split(self.q_proj(y), config.heads)
        key = split(self.k_proj(y), config.kv_heads)
        value = split(self.v_proj(y), config.kv_heads)
        query = _rotate(query, cos, sin).to(value.dtype)
        key = _rotate(key, cos, sin).to(value.dtype)
        heard = self.attention(query, key, value, mask).transpose(1, 2)
        heard = self.o_proj(heard.reshape(batch, length, width))
        x = x + F.dropout(heard, drop, self.training)
        y = self.post_attention_layernorm(x)
        y = self.down_proj(F.silu(self.gate_proj(y)) * self.up_proj(y))
        return x + F.dropout(y, drop, self.training)


def masked_loss(hidden: Tensor, weight: Tensor, target: Tensor, mask: Tensor) -> Tensor:
    """Mean cross entropy of `target` where `mask` is 1, by the tied output matrix `weight`."""
    logits = F.linear(hidden, weight).float()
    each = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
    mask = mask.flatten()
    return (each * mask).sum() / mask.sum().clamp(min=1)


class Llama(nn.Module):
    """Token ids to the loss of the next token."""

    def __init__(self, config: LlamaConfig, attention: Attention, length: int) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(layout.VOCAB_SIZE, config.hidden)
        self.layers = nn.ModuleList([Layer(config, attention) for _ in range(config.layers)])
        self.norm = RMSNorm(config.hidden)
        self.loss = masked_loss
        self._init_weights()
        inverse = _ROPE_BASE ** (-torch.arange(0, config.head_dim, 2) / config.head_dim)
        angle = torch.arange(length)[:, None] * inverse[None]
        angle = torch.cat([angle, angle], -1)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)

    def _init_weights(self) -> None:
        for name, parameter in self.named_parameters():
            if parameter.dim() != 2:
                continue
            scale = 0.02 if name.startswith("embed") else parameter.shape[1] ** -0.5
            if "o_proj" in name or "down_proj" in name:
                scale /= math.sqrt(2 * self.config.layers)
            nn.init.normal_(parameter, 0, scale)

    def forward(self, ids: Tensor, target: Tensor, mask: Tensor, attention_mask: object) -> Tensor:
        x = self.embed(ids).to(torch.bfloat16 if ids.is_cuda else torch.float32)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin, attention_mask)
        return self.loss(self.norm(x), self.embed.weight, target, mask)

    def matrices(self) -> list[nn.Parameter]:
        """Weight matrices of the layers."""
        return [p for layer in self.layers for p in layer.parameters() if p.dim() == 2]

    def others(self) -> list[nn.Parameter]:
        """Embedding and norms."""
        chosen = set(self.matrices())
        return [p for p in self.parameters() if p not in chosen]

    def hf_state(self) -> dict[str, Tensor]:
        """The parameters under the names that `transformers` uses."""
        state = {
            "model.embed_tokens.weight": self.embed.weight,
            "model.norm.weight": self.norm.weight,
        }
        for index, layer in enumerate(self.layers):
            for name, parameter in layer.named_parameters():
                attention = name.split("_")[0] in ("q", "k", "v", "o")
                group = "self_attn." if attention else "" if "norm" in name else "mlp."
                state[f"model.layers.{index}.{group}{name}"] = parameter
        return state

    @torch.no_grad()
    def load_hf(self, folder: Path) -> None:
        """Takes over weights saved by `save_hf`."""
        saved = load_file(folder / "model.safetensors")
        for name, parameter in self.hf_state().items():
            parameter.copy_(saved[name])


def save_hf(state: dict[str, Tensor], config: LlamaConfig, folder: Path) -> None:
    """Writes a folder that `LlamaForCausalLM.from_pretrained` loads, weights in bfloat16."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = {k: v.detach().to(torch.bfloat16).contiguous().cpu() for k, v in state.items()}
    part = folder / "model.safetensors.tmp"
    save_file(weights, part, metadata={"format": "pt"})
    os.replace(part, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config.to_hf(), indent=1) + "\n")
