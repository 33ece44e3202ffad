"""Measures the codec alone: the teacher's audio, encoded and decoded, against itself.

    python -m scripts.eval.codec_eval --codec FOLDER --teacher FOLDER --whisper FOLDER --out FOLDER

Nothing downstream can be better than this. Gate: word error rate within 0.02 of the teacher's audio and
DNSMOS within 0.3, on both lists. Writes `codec.json` and the waves.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from engine.models.ember.codec import EmberCodec
from engine.models.ember.streaming import EmberDecoder, bfloat16_is_fast
from scripts.eval import scoring
from scripts.eval.asr import Recogniser
from scripts.eval.audio import Wave, write_wave
from scripts.eval.progress import track
from scripts.eval.quality import Dnsmos
from scripts.eval.results import Results
from scripts.eval.sentences import LISTS, pick
from scripts.eval.teacher import Teacher, Utterance

_STEP_SIZES = (1, 4, 12)
_MOS_SENTENCES = 48


def reconstruct(codec: EmberCodec, utterances: Sequence[Utterance]) -> list[Wave]:
    """Every utterance through the codec.

    The speaker vector comes from another utterance of the same speaker where there is one, as it does
    in use.
    """
    waves = []
    for i, utterance in enumerate(track(utterances, "codec")):
        others = (u for u in [*utterances[i + 1 :], *utterances[:i]] if u.speaker == utterance.speaker)
        reference = next((u for u in others if len(u.wave) > 48_000), utterance)
        vector = codec.speaker(torch.from_numpy(reference.wave)[None])
        codes = codec.encode(torch.from_numpy(utterance.wave)[None])
        waves.append(codec.decode(codes, vector)[0].numpy()[: len(utterance.wave)])
    return waves


def stream(codec: EmberCodec, codes: torch.Tensor, vector: torch.Tensor, size: int) -> torch.Tensor:
    """Decodes in steps of `size` codes."""
    state = codec.init_state(codes.shape[0])
    parts = [codec.step(codes[:, i : i + size], vector, state) for i in range(0, codes.shape[1], size)]
    return torch.cat(parts, 1)


def serve(decoder: EmberDecoder, codes: torch.Tensor, vector: torch.Tensor, size: int) -> None:
    """Decodes in steps of `size` codes the way the server does."""
    condition, state = decoder.condition(vector), decoder.init_state(codes.shape[0])
    for i in range(0, codes.shape[1], size):
        decoder.step(codes[:, i : i + size], condition, state)


def _best_seconds(calls: Iterable[object]) -> float:
    """Processor time of the quickest of several calls: on one thread, and fair on a shared machine."""
    best, last = float("inf"), time.process_time()
    for _ in calls:
        now = time.process_time()
        best, last = min(best, now - last), now
    return best


def speed(codec: EmberCodec, wave: Wave, repeats: int = 5) -> dict[str, float]:
    """Streaming equality in float32, and the speed of the decoder as it is served, in multiples of real time.

    One core; streaming in the arithmetic that the server would choose here.
    """
    tensor = torch.from_numpy(wave)[None]
    codes, vector = codec.encode(tensor), codec.speaker(tensor)
    seconds = codes.shape[1] * codec.config.code_samples / codec.config.sample_rate
    whole = codec.decode(codes, vector)
    quickest = _best_seconds(codec.decode(codes, vector) for _ in range(repeats))
    served = EmberDecoder(codec, bfloat16=bfloat16_is_fast("cpu"))
    figures = {"whole_x": seconds / quickest, "stream_difference": 0.0}
    for size in _STEP_SIZES:
        worst = float((stream(codec, codes, vector, size) - whole).abs().max())
        figures["stream_difference"] = max(figures["stream_difference"], worst)
        quickest = _best_seconds(serve(served, codes, vector, size) for _ in range(repeats))
        figures[f"step{size}_x"] = seconds / quickest
    return figures


def evaluate(
    codec: EmberCodec,
    teacher: Teacher,
    recogniser: Recogniser,
    *,
    lists: Sequence[str],
    count: int | None = None,
    waves_to: Path | None = None,
) -> Results:
    """Word errors and DNSMOS of the teacher and of the codec on the given lists, and decoder speed."""
    results = Results("codec")
    dnsmos = Dnsmos()
    longest: Wave = np.zeros(0, np.float32)
    for name in lists:
        found = [(s, teacher.find(s.spoken)) for s in pick(name, count)]
        pairs = [(sentence, utterance) for sentence, utterance in found if utterance]
        if not pairs:
            raise LookupError(f"the teacher folder holds no sentence of {name}")
        utterances = [utterance for _, utterance in pairs]
        rebuilt = reconstruct(codec, utterances)
        scores: dict[str, list[scoring.SentenceScore]] = {}
        every = max(1, len(pairs) // _MOS_SENTENCES)
        for kind, waves in (("teacher", [u.wave for u in utterances]), ("codec", rebuilt)):
            texts = recogniser.transcribe(waves, f"{name} {kind}")
            scores[kind] = [scoring.score(s.spoken, text) for (s, _), text in zip(pairs, texts, strict=True)]
            results.put_scores(f"{name}.{kind}", [s.name for s, _ in pairs], scores[kind])
            results.put(f"{name}.{kind}.dnsmos", scoring.mean(dnsmos.all(waves[::every])))
        excess = scoring.wer_excess(scores["codec"], scores["teacher"])
        results.put(f"{name}.codec.wer_excess", excess)
        longest = max([longest, *(u.wave for u in utterances)], key=len)
        if waves_to:
            for (sentence, _), wave in zip(pairs, rebuilt, strict=True):
                write_wave(waves_to / f"{sentence.name}.wav", wave)
    for figure, value in speed(codec, longest).items():
        results.put(f"decoder.{figure}", value)
    return results


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--codec", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--whisper", type=Path, help="model folder; made from the packages if missing")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lists", nargs="+", choices=LISTS, default=list(LISTS))
    parser.add_argument("--count", type=int, help="sentences a list; all by default")
    parser.add_argument("--waves", action="store_true", help="keep the decoded waves")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results = evaluate(
        EmberCodec.load(args.codec),
        Teacher(args.teacher),
        Recogniser(args.whisper),
        lists=args.lists,
        count=args.count,
        waves_to=args.out / "codec" if args.waves else None,
    )
    results.write(args.out / "codec.json")
    print(results.table())


if __name__ == "__main__":
    main()
