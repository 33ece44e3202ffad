"""The embedded model with its LM in float32: what it says depends on nothing that runs beside it.

The shipped LM computes in int8. That rounds its activations, so that a difference in the last bit of a
float (another batch, another part found in the prefix cache) can become another token.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

EMBER = Path(__file__).parents[2] / "engine" / "models" / "ember"
_SCALE = "_scale"


def float_model(folder: Path) -> Path:
    """Make the model in ``folder``: the LM's weights times their scales, and links to the rest."""
    lm = folder / "lm"
    lm.mkdir(parents=True)
    stored = load_file(EMBER / "lm" / "model.safetensors")
    weights = {name: _float(name, stored) for name in stored if not name.endswith(_SCALE)}
    save_file(weights, lm / "model.safetensors", {"format": "pt"})
    config = json.loads((EMBER / "lm" / "config.json").read_text())
    del config["quantization_config"]
    (lm / "config.json").write_text(json.dumps(config | {"torch_dtype": "float32"}))
    (lm / "generation_config.json").symlink_to(EMBER / "lm" / "generation_config.json")
    for name in ("codec", "voices"):
        (folder / name).symlink_to(EMBER / name)
    (folder / "model.json").write_text('{"family": "ember"}')
    return folder


def _float(name: str, stored: dict[str, torch.Tensor]) -> torch.Tensor:
    value = stored[name].float()
    scale = stored.get(name + _SCALE)
    return value if scale is None else value * scale.float()
