"""Turns a codec checkpoint of the pilot into one of `EmberCodec`: renames weights, adds the speaker parts.

The decoder's speaker conditioning starts at zero, so the converted codec sounds exactly like the pilot's.

    python -m scripts.train.convert_pilot PILOT_FOLDER OUT_FOLDER
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.models.ember.codec import CodecConfig, EmberCodec

_RENAMES = (
    (r"\.hi\.", ".high."),
    (r"\.lo\.", ".low."),
    (r"\.norm0\.", ".norm_in."),
    (r"^(encoder|decoder)\.norm\.", r"\1.norm_out."),
    (r"\.dw\.", ".depthwise."),
    (r"\.p1\.", ".expand."),
    (r"\.p2\.", ".project."),
    (r"\.gamma$", ".gain"),
)


def convert(pilot: dict[str, Tensor], seed: int = 0) -> dict[str, Tensor]:
    """Weights for `EmberCodec` from the pilot's; parts the pilot lacks are freshly initialised."""
    torch.manual_seed(seed)
    weights = {name: value.float() for name, value in EmberCodec(CodecConfig()).state_dict().items()}
    for old, value in pilot.items():
        name = old
        for pattern, new in _RENAMES:
            name = re.sub(pattern, new, name)
        if name.endswith("depthwise.weight"):
            value = value[:, 0].T
        if weights[name].shape != value.shape:
            raise ValueError(f"{old}: shape {tuple(value.shape)} does not fit {name}")
        weights[name] = value.float()
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pilot", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    weights = convert(load_file(args.pilot / "model.safetensors"))
    args.out.mkdir(parents=True, exist_ok=True)
    halves = {name: value.half().contiguous() for name, value in weights.items()}
    save_file(halves, args.out / "model.safetensors")
    CodecConfig().write(args.out / "config.json")


if __name__ == "__main__":
    main()
