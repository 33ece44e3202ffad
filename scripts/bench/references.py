"""What the machine can do without a server around: raw `AsyncLLM` tokens, and offline vocoding.

    python -m scripts.bench.references --sessions 1 8 16 [--out references.json]

Runs in a process of its own, so that neither it nor the server has the other's threads.
"""

import argparse
import asyncio
import json
import os
import time
from pathlib import Path

from engine.models.registry import load
from engine.vllm_lm import VllmLM, VllmSettings

TOKENS = 384
"""Audio tokens per stream: about 7 s of speech."""
CODEC_TOKENS = 500


async def raw_tokens(model_name: str, sessions: list[int], threads: int) -> dict[str, float]:
    """Tokens per second of vLLM alone, ``n`` requests at once from voice prefixes that are cached."""
    from vllm.sampling_params import RequestOutputKind, SamplingParams

    model = load(model_name)
    lm = VllmLM(VllmSettings(folder=model.lm_folder, threads=threads), model.layout.vocab_size)
    await lm.start()
    engine = lm._engine
    prefix = list(model.voice(model.info.default_voice).prefix)
    text = model.layout.text_block("the quick brown fox jumps over the lazy dog. ", False)
    params = SamplingParams(
        temperature=0.8,
        top_k=50,
        max_tokens=TOKENS,
        ignore_eos=True,
        detokenize=False,
        allowed_token_ids=list(model.layout.audio),
        output_kind=RequestOutputKind.DELTA,
    )
    made = 0

    async def one(name: str) -> None:
        nonlocal made
        async for output in engine.generate({"prompt_token_ids": prefix + text}, params, request_id=name):
            made += len(output.outputs[0].token_ids)

    rates = {}
    await one("warm")
    for count in sessions:
        made, begun = 0, time.perf_counter()
        await asyncio.gather(*(one(f"{count}/{k}") for k in range(count)))
        rates[str(count)] = made / (time.perf_counter() - begun)
    await lm.stop()
    return rates


def offline_vocoding(model_name: str) -> float:
    """Seconds of audio per second of the codec decoding a whole utterance, one stream, one thread."""
    import torch

    torch.set_num_threads(1)
    model = load(model_name)
    codec = model.load_codec("cpu", None)
    speaker = torch.from_numpy(model.voice(model.info.default_voice).speaker)
    condition = codec.condition(speaker[None])
    codes = torch.randint(0, model.layout.code_count, (1, CODEC_TOKENS))
    best = float("inf")
    with torch.inference_mode():
        for _ in range(4):
            begun = time.perf_counter()
            codec.step(codes, condition, codec.init_state(1))
            best = min(best, time.perf_counter() - begun)
    return CODEC_TOKENS * model.info.frame_samples / model.info.sample_rate / best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="ember")
    parser.add_argument("--threads", type=int, default=int(os.environ.get("OMP_NUM_THREADS", "1")))
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 8, 16])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    result = {
        "raw_tokens_per_s": asyncio.run(raw_tokens(args.model, args.sessions, args.threads)),
        "offline_vocoding_x_real_time": offline_vocoding(args.model),
    }
    text = json.dumps(result, indent=1)
    if args.out:
        args.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
