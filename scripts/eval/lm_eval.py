"""Measures the language model's speech: vLLM, codec, recogniser.

    python -m scripts.eval.lm_eval --model FOLDER --teacher FOLDER --whisper FOLDER --out FOLDER [--quick]

`--model` holds `lm/`, `codec/` and `voices/`; each can be given by itself. Full mode takes all 300
sentences, quick mode 24. Writes `lm.json`, the tokens and, on request, the waves.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine.models.ember.codec import EmberCodec
from scripts.eval import scoring
from scripts.eval.asr import Recogniser
from scripts.eval.audio import write_wave
from scripts.eval.forms import FORMS, Job, Lm, Speech
from scripts.eval.judge import Case, Judge, decode
from scripts.eval.lm_engine import OfflineLm, Request, Sampling
from scripts.eval.results import Results
from scripts.eval.sentences import LISTS, Sentence, pick
from scripts.eval.teacher import Teacher
from scripts.eval.voices import Voice, load_voices

QUICK_SENTENCES = 12
"""Sentences a list in quick mode."""


def cases_of(
    names: Sequence[str], voices: Sequence[Voice], count: int | None, teacher: Teacher | None = None
) -> dict[str, list[Case]]:
    """The sentences of each list, in the voice the teacher said them in, else the voices in turn."""
    by_speaker = {voice.speaker: voice for voice in voices if voice.speaker is not None}

    def voice_of(number: int, sentence: Sentence) -> Voice:
        said = teacher.find(sentence.spoken) if teacher else None
        own = by_speaker.get(said.speaker) if said else None
        return own or voices[number % len(voices)]

    return {name: [Case(s, voice_of(i, s)) for i, s in enumerate(pick(name, count))] for name in names}


def speak(lm: Lm, form: str, cases: Sequence[Case], sampling: Sampling) -> list[Speech]:
    """Generates every case in one form."""
    jobs = [Job(case.sentence.spoken, case.voice.prefix, sampling) for case in cases]
    return FORMS[form](lm, jobs)


def milliseconds_per_token(lm: Lm, prefix: list[int], tokens: int = 256, repeats: int = 3) -> float:
    """Decoding time of one stream, the prompt's own cost taken off; the best of a few runs."""

    def seconds(limit: int) -> float:
        start = time.perf_counter()
        lm.generate([Request(prefix, Sampling(), limit, final=False)])
        return time.perf_counter() - start

    seconds(8)
    short = min(seconds(8) for _ in range(repeats))
    return (min(seconds(8 + tokens) for _ in range(repeats)) - short) / tokens * 1000


def evaluate(
    lm: Lm,
    codec: EmberCodec,
    judge: Judge,
    cases: dict[str, list[Case]],
    *,
    forms: Sequence[str],
    sampling: Sampling,
    out: Path | None = None,
) -> Results:
    """All figures of all lists in all forms.

    Args:
        out: keep waves and tokens there.
    """
    results = Results("lm")
    results.settings = {"sampling": dataclasses.asdict(sampling), "load": os.getloadavg()}
    for name, chosen in cases.items():
        teacher = judge.teacher_scores(chosen)
        if teacher:
            results.put_scores(f"{name}.teacher", [c.sentence.name for c in chosen], teacher)
        scores: dict[str, list[scoring.SentenceScore]] = {}
        for form in forms:
            label = f"{name}.{form}"
            started = time.perf_counter()
            speeches = speak(lm, form, chosen, sampling)
            drawn = sum(len(speech.tokens) for speech in speeches)
            results.put(f"{label}.tokens_per_s", drawn / (time.perf_counter() - started))
            waves = decode(codec, chosen, speeches)
            scores[form] = judge.put_speech(results, label, chosen, speeches, waves)
            if teacher:
                results.put(f"{label}.wer_excess", scoring.wer_excess(scores[form], teacher))
            if form != "full" and "full" in scores:
                over = scoring.wer_excess(scores[form], scores["full"])
                results.put(f"{label}.wer_over_full", over)
            if out:
                for case, speech, wave in zip(chosen, speeches, waves, strict=True):
                    stem = out / form / case.sentence.name
                    write_wave(stem.with_suffix(".wav"), wave)
                    np.save(stem.with_suffix(".npy"), np.asarray(speech.tokens, np.int16))
            print(results.table(), flush=True)
    return results


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that name the model and the material."""
    parser.add_argument("--model", type=Path, help="folder with lm/, codec/, voices/")
    parser.add_argument("--lm", type=Path)
    parser.add_argument("--codec", type=Path)
    parser.add_argument("--voices", type=Path)
    parser.add_argument("--teacher", type=Path, help="teacher audio of the lists; see teacher.py")
    parser.add_argument("--whisper", type=Path, help="model folder; made from the packages if missing")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lists", nargs="+", choices=LISTS, default=list(LISTS))
    parser.add_argument("--dtype", default="bfloat16", help="arithmetic of the language model")
    parser.add_argument("--dummy", action="store_true", help="random language model weights")
    parser.add_argument("--threads", type=int, default=1)


@dataclass(frozen=True, slots=True)
class Bench:
    """All that an evaluation needs, loaded."""

    lm: OfflineLm
    codec: EmberCodec
    voices: list[Voice]
    judge: Judge
    teacher: Teacher | None


def load(args: argparse.Namespace) -> Bench:
    """Loads all that the options name; the engine first, since it wants to be alone."""
    lm = OfflineLm(args.lm or args.model / "lm", dtype=args.dtype, dummy=args.dummy)
    torch.set_num_threads(args.threads)
    codec = EmberCodec.load(args.codec or args.model / "codec")
    voices = load_voices(args.voices or args.model / "voices", codec)
    teacher = Teacher(args.teacher) if args.teacher else None
    judge = Judge(voices, Recogniser(args.whisper, threads=args.threads), teacher)
    return Bench(lm, codec, voices, judge, teacher)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_model_arguments(parser)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", type=int, help="sentences a list")
    parser.add_argument("--waves", action="store_true", help="keep waves and tokens")
    for field in dataclasses.fields(Sampling):
        parser.add_argument(
            f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default
        )
    args = parser.parse_args()
    bench = load(args)
    sampling = Sampling(**{f.name: getattr(args, f.name) for f in dataclasses.fields(Sampling)})
    results = evaluate(
        bench.lm,
        bench.codec,
        bench.judge,
        cases_of(args.lists, bench.voices, QUICK_SENTENCES if args.quick else args.count, bench.teacher),
        forms=args.forms,
        sampling=sampling,
        out=args.out if args.waves else None,
    )
    results.put("lm.ms_per_token", milliseconds_per_token(bench.lm, bench.voices[0].prefix))
    results.write(args.out / "lm.json")
    print(results.table())


if __name__ == "__main__":
    main()
