"""Word and character error rates with per-sentence detail, and intervals over sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jiwer
import numpy as np
from numpy.typing import NDArray

from scripts.eval.normalise import hypothesis_words, reference_words

_MAX_JOIN = 6
"""Most words that may be written together on the other side ("p m" / "pm", "redo" / "re do")."""
_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class SentenceScore:
    """Errors of one transcript.

    Attributes:
        words, characters: size of the reference.
        word_errors, character_errors: edits.
        omitted: reference words that are missing.
        repeated: words of the transcript that repeat what was just said.
        looped: the same words came three times or more, or far more was said than asked.
        truncated: the last two or more words are missing.
    """

    reference: str
    hypothesis: str
    words: int
    word_errors: int
    characters: int
    character_errors: int
    omitted: int
    repeated: int
    looped: bool
    truncated: bool

    @property
    def wer(self) -> float:
        """Word error rate of this sentence."""
        return self.word_errors / self.words

    @property
    def defective(self) -> bool:
        """Something is repeated, cut or empty; a single misheard word is not."""
        return self.looped or self.truncated or self.repeated > 0 or not self.hypothesis


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def harmonise(reference: Sequence[str], hypothesis: Sequence[str]) -> list[str]:
    """Respells words of the hypothesis that differ from the reference only by spaces.

    Args:
        reference: words.
        hypothesis: words.

    Returns:
        The hypothesis, with spans that join to the same letters as a reference span written like it.
    """
    rows, columns = len(reference), len(hypothesis)
    cost = np.zeros((rows + 1, columns + 1), np.int32)
    step = np.zeros((rows + 1, columns + 1, 2), np.int8)
    cost[:, 0], cost[0, :] = range(rows + 1), range(columns + 1)
    step[1:, 0], step[0, 1:] = (1, 0), (0, 1)
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            same = reference[i - 1] == hypothesis[j - 1]
            options = [(cost[i - 1, j - 1] + (not same), 1, 1)]
            options += [(cost[i - 1, j] + 1, 1, 0), (cost[i, j - 1] + 1, 0, 1)]
            if not same:
                options += [(cost[i - a, j - b], a, b) for a, b in _joins(reference[:i], hypothesis[:j])]
            cost[i, j], *step[i, j] = min(options, key=lambda option: option[0])
    words: list[str] = []
    i, j = rows, columns
    while i or j:
        a, b = int(step[i, j, 0]), int(step[i, j, 1])
        joined = a + b > 2
        words[:0] = reference[i - a : i] if joined else hypothesis[j - b : j]
        i, j = i - a, j - b
    return words


def _joins(reference: Sequence[str], hypothesis: Sequence[str]) -> list[tuple[int, int]]:
    """Lengths of the ends of both that are the same letters, cut into words differently."""
    found = []
    for a in range(1, min(_MAX_JOIN, len(reference)) + 1):
        letters = "".join(reference[-a:])
        length = 0
        for b in range(1, len(hypothesis) + 1):
            length += len(hypothesis[-b])
            if length >= len(letters):
                if (a > 1 or b > 1) and "".join(hypothesis[-b:]) == letters:
                    found.append((a, b))
                break
    return found


def _repeats(words: Sequence[str], span: int) -> int:
    """Most times that `span` words follow themselves, counting the first."""
    best = run = 1
    i = 0
    while i + 2 * span <= len(words):
        if list(words[i : i + span]) == list(words[i + span : i + 2 * span]):
            run += 1
            i += span
            best = max(best, run)
        else:
            run = 1
            i += 1
    return best


def is_looped(reference: Sequence[str], hypothesis: Sequence[str]) -> bool:
    """Whether the transcript goes round in circles."""
    if len(hypothesis) > 1.6 * len(reference) + 3:
        return True
    return any(_repeats(hypothesis, span) >= 3 and _repeats(reference, span) < 3 for span in range(1, 7))


def score(reference_text: str, hypothesis_text: str) -> SentenceScore:
    """Compares one transcript with the text that was to be said."""
    reference = reference_words(reference_text) or ["x"]
    hypothesis = harmonise(reference, hypothesis_words(hypothesis_text, reference))
    output = jiwer.process_words([" ".join(reference)], [" ".join(hypothesis)])
    chunks = output.alignments[0]
    deleted = [i for c in chunks if c.type == "delete" for i in range(c.ref_start_idx, c.ref_end_idx)]
    repeated = sum(
        _is_repeat(hypothesis, c.hyp_start_idx, c.hyp_end_idx) for c in chunks if c.type == "insert"
    )
    last_two = {len(reference) - 2, len(reference) - 1}
    letters = "".join(reference)
    return SentenceScore(
        reference=" ".join(reference),
        hypothesis=" ".join(hypothesis),
        words=len(reference),
        word_errors=output.substitutions + output.deletions + output.insertions,
        characters=len(letters),
        character_errors=_character_errors(letters, "".join(hypothesis)),
        omitted=len(deleted),
        repeated=repeated,
        looped=is_looped(reference, hypothesis),
        truncated=last_two <= set(deleted),
    )


def _is_repeat(words: Sequence[str], start: int, end: int) -> int:
    """Size of the inserted span if it stands beside a copy of itself, else 0."""
    size = end - start
    span = list(words[start:end])
    beside = (list(words[start - size : start]), list(words[end : end + size]))
    return size if span in beside else 0


def _character_errors(reference: str, hypothesis: str) -> int:
    output = jiwer.process_characters([reference], [hypothesis])
    return output.substitutions + output.deletions + output.insertions


def wer(scores: Sequence[SentenceScore]) -> Estimate:
    """Word error rate of a list, pooled over words."""
    return ratio([s.word_errors for s in scores], [s.words for s in scores])


def cer(scores: Sequence[SentenceScore]) -> Estimate:
    """Character error rate of a list, spaces not counted."""
    return ratio([s.character_errors for s in scores], [s.characters for s in scores])


def wer_excess(scores: Sequence[SentenceScore], base: Sequence[SentenceScore]) -> Estimate:
    """Pooled word error rate minus that of `base`, over the same sentences (paired)."""
    errors = np.array([s.word_errors - b.word_errors for s, b in zip(scores, base, strict=True)])
    return ratio(errors, [s.words for s in scores])


def ratio(
    above: Sequence[float] | NDArray[np.generic], below: Sequence[float] | NDArray[np.generic]
) -> Estimate:
    """Ratio of two sums with its interval over the rows."""
    top, bottom = np.asarray(above, float), np.asarray(below, float)
    return _bootstrap(len(top), lambda rows: top[rows].sum(-1) / bottom[rows].sum(-1))


def mean(values: Sequence[float]) -> Estimate:
    """Mean with its interval."""
    column = np.asarray(values, float)
    return _bootstrap(len(column), lambda rows: column[rows].mean(-1))


def median(values: Sequence[float]) -> Estimate:
    """Median with its interval."""
    column = np.asarray(values, float)
    return _bootstrap(len(column), lambda rows: np.median(column[rows], -1))


def _bootstrap(count: int, statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> Estimate:
    if count == 0:
        return Estimate(float("nan"), float("nan"), float("nan"))
    rows = np.random.default_rng(0).integers(0, count, (_RESAMPLES, count))
    low, high = np.percentile(statistic(rows), [2.5, 97.5])
    whole = statistic(np.arange(count)[None])[0]
    return Estimate(float(whole), float(low), float(high))
