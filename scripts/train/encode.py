"""Turns shards of audio into token files with the frozen codec.

Several processes can share the work: `--part 0 --parts 2` takes every second shard.

    python -m scripts.train.encode SHARDS CODEC TOKENS
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

from engine.models.ember.codec import EmberCodec
from scripts.train import teacher_audio
from scripts.train.tokens import Tokens, word_codes

_BATCH_SECONDS = 400


def encode_shard(codec: EmberCodec, shard: teacher_audio.Shard, device: str) -> list[np.ndarray]:
    """Codes of each utterance, similar lengths encoded together."""
    rate, per_code = codec.config.sample_rate, codec.config.code_samples
    utterances = list(shard)
    order = sorted(range(len(utterances)), key=lambda i: len(utterances[i].audio))
    codes: list[np.ndarray] = [np.zeros(0, np.uint16)] * len(utterances)
    at = 0
    while at < len(order):
        end = at + 1
        limit = _BATCH_SECONDS * rate
        while end < len(order) and (end - at + 1) * len(utterances[order[end]].audio) < limit:
            end += 1
        batch = order[at:end]
        wave = np.zeros((len(batch), len(utterances[batch[-1]].audio)), np.int16)
        for row, index in enumerate(batch):
            wave[row, : len(utterances[index].audio)] = utterances[index].audio
        found = codec.encode(torch.from_numpy(wave).to(device).float() / 32768)
        rows = found.to(torch.int16).cpu().numpy().astype(np.uint16)
        for row, index in enumerate(batch):
            codes[index] = rows[row, : -(-len(utterances[index].audio) // per_code)]
        at = end
    return codes


def encode(paths: list[Path], codec: EmberCodec, device: str) -> Tokens:
    """Encodes the shards of `paths`."""
    per_code = codec.config.code_samples
    codes, word_at, labels, rows = [], [], [], []
    for path in paths:
        shard = teacher_audio.load(path)
        for utterance, found in zip(shard, encode_shard(codec, shard, device), strict=True):
            codes.append(found)
            word_at.append(word_codes(utterance.words, per_code, len(found)))
            labels.append(utterance.labels)
            rows.append((len(found), utterance.sentence, utterance.speaker, len(utterance.words)))
    table = np.array(rows, np.int64).reshape(-1, 4)
    return Tokens(
        np.concatenate(codes),
        table[:, 0],
        table[:, 1],
        table[:, 2],
        table[:, 3],
        np.concatenate(word_at),
        np.concatenate(labels),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shards", type=Path)
    parser.add_argument("codec", type=Path)
    parser.add_argument("tokens", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1)
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    began = time.time()
    codec = EmberCodec.load(args.codec, args.device)
    paths = teacher_audio.complete(args.shards)[args.part :: args.parts]
    if not paths:
        raise SystemExit(f"no shards in {args.shards}")
    result = encode(paths, codec, args.device)
    files = result.save(args.tokens, f"tokens_{args.part}")
    hours = result.lengths.sum() * codec.config.code_samples / codec.config.sample_rate / 3600
    print(
        f"{len(result)} utterances, {hours:.2f} hours, {result.words.sum()} words, "
        f"{len(files)} files, {time.time() - began:.1f} s",
        flush=True,
    )


if __name__ == "__main__":
    main()
