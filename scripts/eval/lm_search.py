"""Searches sampling settings by word errors, all settings of a round in one batch.

    python -m scripts.eval.lm_search --model FOLDER --whisper FOLDER --out FOLDER

Every setting speaks a few sentences; the better third goes on with more. The score of a setting is its
word error rate plus the share of utterances with a wrong number of words, minus a little for DNSMOS.
Writes `search.json`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.models.ember.codec import EmberCodec
from scripts.eval import scoring
from scripts.eval.forms import FORMS, Job, Lm
from scripts.eval.judge import Case, Judge, decode
from scripts.eval.lm_engine import Sampling
from scripts.eval.lm_eval import add_model_arguments, cases_of, load
from scripts.eval.timing import words_missing

_ROUNDS = (12, 24, 60)
"""Sentences a setting speaks in each round."""
_KEEP = 3
_MOS_WEIGHT = 0.02
_MOS_SENTENCES = 8

_FILTERS = (
    {"top_k": 0},
    {"top_k": 25},
    {"top_k": 0, "top_p": 0.85},
    {"top_k": 0, "min_p": 0.05},
    {"top_k": 0, "min_p": 0.1},
)
GRID = [
    Sampling(temperature=0.0, top_k=0),
    *(Sampling(temperature=t, **f) for t in (0.3, 0.5, 0.7, 0.9) for f in _FILTERS),
]


@dataclass(frozen=True, slots=True)
class Trial:
    """One setting and how it did."""

    sampling: Sampling
    sentences: int
    wer: float
    wrong_words: float
    dnsmos: float

    @property
    def cost(self) -> float:
        """What the search lowers."""
        return self.wer + self.wrong_words - _MOS_WEIGHT * self.dnsmos


def try_settings(
    lm: Lm,
    codec: EmberCodec,
    judge: Judge,
    cases: Sequence[Case],
    settings: Sequence[Sampling],
    form: str,
) -> list[Trial]:
    """Speaks all cases with all settings in one batch, best setting first."""
    pairs = [(sampling, case) for sampling in settings for case in cases]
    jobs = [Job(case.sentence.spoken, case.voice.prefix, sampling) for sampling, case in pairs]
    speeches = FORMS[form](lm, jobs)
    every = [case for _, case in pairs]
    waves = decode(codec, every, speeches)
    scores = judge.intelligibility(every, waves, form)
    trials = []
    for i, sampling in enumerate(settings):
        part = slice(i * len(cases), (i + 1) * len(cases))
        wrong = [
            words_missing(speech.tokens, case.sentence.spoken) != 0
            for speech, case in zip(speeches[part], cases, strict=True)
        ]
        mos = judge.dnsmos(waves[part][:_MOS_SENTENCES]).value
        rate = scoring.wer(scores[part]).value
        trials.append(Trial(sampling, len(cases), rate, float(np.mean(wrong)), mos))
    return sorted(trials, key=lambda trial: trial.cost)


def search(
    lm: Lm,
    codec: EmberCodec,
    judge: Judge,
    cases: Sequence[Case],
    settings: Sequence[Sampling],
    form: str = "full",
) -> list[Trial]:
    """Successive halving; returns the trials of all rounds, the last round first."""
    history: list[Trial] = []
    for count in _ROUNDS:
        chosen = [cases[i * len(cases) // count] for i in range(min(count, len(cases)))]
        trials = try_settings(lm, codec, judge, chosen, settings, form)
        for trial in trials[:5]:
            print(trial, f"cost {trial.cost:.3f}", flush=True)
        history = trials + history
        settings = [trial.sampling for trial in trials[: max(2, len(trials) // _KEEP)]]
    return history


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add_model_arguments(parser)
    parser.add_argument("--form", choices=FORMS, default="full")
    args = parser.parse_args()
    bench = load(args)
    lists = cases_of(args.lists, bench.voices, _ROUNDS[-1] // len(args.lists), bench.teacher)
    cases = [case for group in zip(*lists.values(), strict=True) for case in group]
    trials = search(bench.lm, bench.codec, bench.judge, cases, GRID, args.form)
    args.out.mkdir(parents=True, exist_ok=True)
    rows = [{**dataclasses.asdict(trial), "cost": trial.cost} for trial in trials]
    (args.out / "search.json").write_text(json.dumps(rows, indent=1) + "\n")
    print("best:", trials[0].sampling)


if __name__ == "__main__":
    main()
