"""What the embedded voice must reach, figure by figure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scripts.eval.results import Results


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the report.

    Attributes:
        label: what is measured.
        figures: names in the results; the worst of them counts.
        better: which direction is good.
        must: what must be reached.
        aim: what is aimed at, None if nothing beyond.
        unit: behind the number.
    """

    label: str
    figures: tuple[str, ...]
    better: Literal["lower", "higher"]
    must: float
    aim: float | None
    unit: str = ""

    def reached(self, value: float) -> bool:
        """Whether `value` is good enough."""
        return value <= self.must if self.better == "lower" else value >= self.must

    def aimed(self, value: float) -> bool:
        """Whether `value` is as good as hoped for."""
        aim = self.must if self.aim is None else self.aim
        return value <= aim if self.better == "lower" else value >= aim


def _both(figure: str) -> tuple[str, ...]:
    return tuple(f"{name}.{figure}" for name in ("everyday", "heldout"))


TARGETS = (
    Target("codec: WER over the teacher's", _both("codec.wer_excess"), "lower", 0.02, None),
    Target("codec: DNSMOS below the teacher's", _both("codec.dnsmos_loss"), "lower", 0.3, None),
    Target("WER over the teacher's, everyday", ("everyday.full.wer_excess",), "lower", 0.05, 0.02),
    Target("WER over the teacher's, held out", ("heldout.full.wer_excess",), "lower", 0.10, 0.04),
    Target("interleaved: WER over full text", _both("interleaved.wer_over_full"), "lower", 0.02, 0.0),
    Target("continued: WER over full text", _both("continued.wer_over_full"), "lower", 0.02, 0.0),
    Target("DNSMOS", _both("full.dnsmos"), "higher", 2.8, 3.1),
    Target("similarity to own prompt minus others", _both("full.similarity_margin"), "higher", 0.12, 0.2),
    Target("wrong number of words", _both("full.wrong_word_count"), "lower", 0.03, 0.005),
    Target("wrong number of words, interleaved", _both("interleaved.wrong_word_count"), "lower", 0.03, 0.005),
    Target("word-time error, median", _both("full.word_time_ms"), "lower", 40.0, 20.0, " ms"),
    Target("decoder, one core, 4-token steps", ("decoder.step4_x",), "higher", 20.0, 40.0, "x real time"),
    Target("language model, one stream", ("lm.ms_per_token",), "lower", 5.0, 3.5, " ms a token"),
    Target("streamed decode against whole", ("decoder.stream_difference",), "lower", 1e-4, None),
)


def worst(target: Target, results: Results) -> tuple[str, float] | None:
    """The figure that counts for a target, with its value; None if it was not measured."""
    found = [(name, results.value(name)) for name in target.figures if name in results.figures]
    found = [(name, value) for name, value in found if not math.isnan(value)]
    if not found:
        return None
    pick = max if target.better == "lower" else min
    return pick(found, key=lambda pair: pair[1])
