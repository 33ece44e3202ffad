"""Results survive a round trip, and the report says what is below target."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from scripts.eval import report
from scripts.eval.results import Results
from scripts.eval.scoring import Estimate, score
from scripts.eval.targets import TARGETS, worst


def some_results() -> Results:
    results = Results("lm")
    results.put_scores("everyday.full", ["a"], [score("yes it is", "yes it was")])
    results.put("everyday.full.wer_excess", Estimate(0.12, 0.05, 0.2))
    results.put("everyday.full.dnsmos", Estimate(3.2, 3.1, 3.3))
    results.put("heldout.full.dnsmos", Estimate(2.9, 2.8, 3.0))
    results.put("lm.ms_per_token", 3.1)
    return results


def test_round_trip(tmp_path: Path) -> None:
    results = some_results()
    results.settings = {"sampling": {"temperature": 0.7}}
    results.write(tmp_path / "lm.json")
    again = Results.read(tmp_path / "lm.json")
    assert again.figures == results.figures
    assert again.rows == results.rows
    assert again.settings == results.settings


def test_the_worst_list_counts() -> None:
    target = next(target for target in TARGETS if target.label == "DNSMOS")
    assert worst(target, some_results()) == ("heldout.full.dnsmos", 2.9)


def test_report_asks_for_an_explanation(tmp_path: Path) -> None:
    some_results().write(tmp_path / "lm.json")
    label = "WER over the teacher's, everyday"
    text = report.write(report.gather(tmp_path), {}, tmp_path)
    assert f"- {label}: (to be explained)" in text
    assert "| language model, one stream | ≤ 5 ms a token | ≤ 3.5 ms a token | 3.1 | aim |" in text
    assert "not measured" in text
    assert (tmp_path / "report.png").stat().st_size > 1000
    explained = report.write(report.gather(tmp_path), {label: "Too few hours."}, tmp_path)
    assert f"- {label}: Too few hours." in explained
