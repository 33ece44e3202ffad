"""Error rates, defects and intervals."""

import math

import pytest

from scripts.eval.scoring import harmonise, is_looped, mean, median, ratio, score, wer, wer_excess


def test_perfect_and_empty() -> None:
    assert score("yes.", "Yes.").word_errors == 0
    silent = score("yes please.", "")
    assert silent.word_errors == 2
    assert silent.defective


@pytest.mark.parametrize(
    ("reference", "hypothesis"),
    [("p m", "pm"), ("re do it", "redo it"), ("everyone", "every one"), ("k seven r two m", "K7R2M")],
)
def test_spaces_alone_are_no_error(reference: str, hypothesis: str) -> None:
    result = score(reference, hypothesis)
    assert (result.word_errors, result.character_errors) == (0, 0)


def test_joining_keeps_the_errors_beside_it() -> None:
    assert harmonise(["at", "five", "p", "m", "now"], ["at", "nine", "pm", "now"]) == [
        "at",
        "nine",
        "p",
        "m",
        "now",
    ]
    assert score("at five p m now", "at nine pm now").word_errors == 1


def test_omission_repetition_truncation() -> None:
    assert score("please go home now", "please go").truncated
    assert score("please go home now", "please home now").omitted == 1
    repeated = score("the quick fox ran", "the quick quick fox ran")
    assert repeated.repeated == 1
    assert repeated.defective
    assert not score("the quick fox ran", "the slow fox ran").defective


def test_loops() -> None:
    assert is_looped(["hello", "my", "friend"], ["hello", "my", "hello", "my", "hello", "my", "friend"])
    assert is_looped(["no"], ["no"] * 9)
    assert not is_looped(["no", "no", "no"], ["no", "no", "no"])
    assert score("hello there", "hello there hello there hello there").looped


def test_rates_are_pooled_over_words() -> None:
    scores = [score("one", "two"), score("a b c", "a b c")]
    assert wer(scores).value == pytest.approx(0.25)
    assert wer_excess(scores, scores).value == 0
    assert wer_excess(scores, [score("one", "one"), scores[1]]).value == pytest.approx(0.25)


def test_intervals_hold_the_value_and_are_reproducible() -> None:
    values = [0.0, 1.0, 2.0, 3.0, 10.0]
    for estimate in (mean(values), median(values), ratio(values, [1.0] * 5)):
        assert estimate.low <= estimate.value <= estimate.high
    assert mean(values) == mean(values)
    assert math.isnan(mean([]).value)
