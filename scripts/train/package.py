"""Puts trained weights and voice prompts together as a model folder.

    OUT/lm/       config.json, generation_config.json, model.safetensors (int8, or bfloat16 in parts)
    OUT/codec/    config.json, model.safetensors (half precision)
    OUT/voices/   NAME/prompt.wav, transcript.txt, tokens.npy, spk.npy, voice.json

    python -m scripts.train.package --lm LM --codec CODEC --prompts PROMPTS --out engine/models/ember

PROMPTS holds a folder a voice with `prompt.wav`, `transcript.txt` (spoken form) and `voice.json`, which
says `description`, `provenance` and `word_starts` (first sample of each word).
"""

from __future__ import annotations

import argparse
import json
import shutil
import wave
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from engine.models.ember import layout
from engine.models.ember.codec import EmberCodec
from scripts.train.quantise import CONFIG, quantise
from scripts.train.sequences import audio_tokens
from scripts.train.tokens import word_codes

_MOST_FILE_BYTES = 48_000_000
_MOST_TOTAL_BYTES = 80_000_000


def read_wave(path: Path) -> NDArray[np.float32]:
    """Samples of a 16-bit mono file at 24 kHz."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (layout.SAMPLE_RATE_HZ, 1, 2):
            raise ValueError(f"{path}: expected 24 kHz, mono, 16 bit")
        return np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768


def write_sharded(weights: dict[str, Tensor], folder: Path) -> None:
    """Writes safetensors, in several files with an index where one would be too large."""
    parts: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, value in weights.items():
        if size + value.nbytes > _MOST_FILE_BYTES:
            parts.append({})
            size = 0
        parts[-1][name] = value.contiguous()
        size += value.nbytes
    if len(parts) == 1:
        save_file(parts[0], folder / "model.safetensors", metadata={"format": "pt"})
        return
    index: dict[str, str] = {}
    for number, part in enumerate(parts, 1):
        file = f"model-{number:05d}-of-{len(parts):05d}.safetensors"
        save_file(part, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(part, file)
    total = sum(value.nbytes for value in weights.values())
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": total}, "weight_map": index}, indent=1) + "\n"
    )


def package_lm(source: Path, target: Path, *, int8: bool, sampling: dict[str, float]) -> None:
    """Writes the language model's folder."""
    target.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    if int8:
        weights = quantise(weights)
        config["quantization_config"] = CONFIG
    write_sharded(weights, target)
    (target / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    ids = {"bos_token_id": layout.BOS, "eos_token_id": layout.EOS, "pad_token_id": layout.PAD}
    (target / "generation_config.json").write_text(
        json.dumps({**ids, "do_sample": True, **sampling}, indent=1) + "\n"
    )


def package_voice(source: Path, target: Path, codec: EmberCodec) -> None:
    """Writes one voice: its prompt, the prompt's audio tokens, and the speaker vector."""
    target.mkdir(parents=True)
    samples = read_wave(source / "prompt.wav")
    about = json.loads((source / "voice.json").read_text())
    text = (source / "transcript.txt").read_text().strip()
    starts = about["word_starts"]
    if len(starts) != len(layout.spoken_words(text)):
        raise ValueError(f"{source}: {len(starts)} word starts for {text!r}")
    tensor = torch.from_numpy(samples)[None]
    codes = codec.encode(tensor)[0].numpy()
    at = word_codes(np.asarray(starts), layout.SAMPLES_PER_CODE, len(codes))
    np.save(target / "tokens.npy", audio_tokens(codes, at))
    np.save(target / "spk.npy", codec.speaker(tensor)[0].numpy())
    shutil.copy(source / "prompt.wav", target / "prompt.wav")
    (target / "transcript.txt").write_text(text + "\n")
    (target / "voice.json").write_text(json.dumps(about, indent=1) + "\n")


def package(args: argparse.Namespace) -> int:
    """Writes all three folders anew; returns the bytes used."""
    for name in ("lm", "codec", "voices"):
        shutil.rmtree(args.out / name, ignore_errors=True)
    sampling = {"temperature": args.temperature, "top_k": args.top_k, "top_p": args.top_p}
    package_lm(args.lm, args.out / "lm", int8=not args.bf16, sampling=sampling)
    (args.out / "codec").mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copyfile(args.codec / name, args.out / "codec" / name)
    codec = EmberCodec.load(args.out / "codec")
    for source in sorted(path.parent for path in args.prompts.glob("*/prompt.wav")):
        package_voice(source, args.out / "voices" / source.name, codec)
    files = [path for name in ("lm", "codec", "voices") for path in (args.out / name).rglob("*.*")]
    return sum(path.stat().st_size for path in files)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("lm", "codec", "prompts", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--bf16", action="store_true", help="do not quantise the language model")
    parser.add_argument("--temperature", type=float, default=0.5)
    parser.add_argument("--top-k", type=int, default=25)
    parser.add_argument("--top-p", type=float, default=1.0)
    return parser.parse_args(argv)


def main() -> None:
    total = package(parse())
    print(f"{total / 1e6:.1f} MB")
    if total > _MOST_TOTAL_BYTES:
        raise SystemExit(f"more than {_MOST_TOTAL_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
