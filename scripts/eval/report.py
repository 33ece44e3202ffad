"""Brings the results together: what was reached of what must be, as Markdown, JSON and a plot.

    python -m scripts.eval.report --results FOLDER [--notes notes.json] [--out FOLDER]

`--results` holds the JSON files of the other tools. A figure below its target needs a sentence of
explanation: `notes.json` maps target labels to sentences, and what is missing there is asked for.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from scripts.eval.results import Results
from scripts.eval.scoring import Estimate
from scripts.eval.targets import TARGETS, Target, worst

_MISSING_NOTE = "(to be explained)"
_KINDS = ("teacher", "codec", "full", "interleaved", "continued")
_COLOURS = {"aim": "#2a7f4f", "must": "#8fbf6a", "below": "#c8553d", "not measured": "#bbbbbb"}


@dataclass(frozen=True, slots=True)
class Line:
    """One target with what was measured."""

    label: str
    figure: str
    value: float | None
    interval: tuple[float, float] | None
    must: str
    aim: str
    verdict: str
    note: str

    def markdown(self) -> str:
        """The line as a row of a table."""
        value = "-" if self.value is None else f"{self.value:.3g}"
        if self.interval:
            value += f" ({self.interval[0]:.3g} to {self.interval[1]:.3g})"
        return f"| {self.label} | {self.must} | {self.aim} | {value} | {self.verdict} |"


def gather(folder: Path) -> Results:
    """All figures of `codec.json` and `lm.json` under one roof."""
    together = Results("embedded voice")
    for name in ("codec", "lm"):
        path = folder / f"{name}.json"
        if path.is_file():
            part = Results.read(path)
            together.figures |= part.figures
            together.settings |= part.settings
            together.rows |= part.rows
    for name in ("everyday", "heldout"):
        pair = [f"{name}.teacher.dnsmos", f"{name}.codec.dnsmos"]
        if all(figure in together.figures for figure in pair):
            teacher, codec = map(together.value, pair)
            together.put(f"{name}.codec.dnsmos_loss", teacher - codec)
    return together


def judge(target: Target, results: Results, notes: Mapping[str, str]) -> Line:
    """Compares one target with what was measured."""
    sign = "≤" if target.better == "lower" else "≥"
    must = f"{sign} {target.must:g}{target.unit}"
    aim = "" if target.aim is None else f"{sign} {target.aim:g}{target.unit}"
    found = worst(target, results)
    if found is None:
        return Line(target.label, "", None, None, must, aim, "not measured", "")
    name, value = found
    figure = results.figures[name]
    interval = (figure.low, figure.high) if isinstance(figure, Estimate) else None
    verdict = "aim" if target.aimed(value) else "must" if target.reached(value) else "below"
    note = notes.get(target.label, _MISSING_NOTE) if verdict == "below" else ""
    return Line(target.label, name, value, interval, must, aim, verdict, note)


def markdown(lines: list[Line]) -> str:
    """The table, then a sentence for every figure below its target."""
    table = [
        "| figure | must | aim | reached (95 % interval) | verdict |",
        "|---|---|---|---|---|",
        *(line.markdown() for line in lines),
    ]
    below = [f"- {line.label}: {line.note}" for line in lines if line.verdict == "below"]
    return "\n".join([*table, *(["", "Below target:", "", *below] if below else [])]) + "\n"


def _bars(axes: Axes, results: Results, kinds: Sequence[str], figure: str, title: str) -> None:
    """Bars with intervals, one group a list."""
    width = 0.8 / len(kinds)
    for k, kind in enumerate(kinds):
        for i, name in enumerate(("everyday", "heldout")):
            found = results.figures.get(f"{name}.{kind}.{figure}")
            if not isinstance(found, Estimate):
                continue
            ends = [[found.value - found.low], [found.high - found.value]]
            label = kind if i == 0 else None
            axes.bar(
                i + k * width,
                found.value,
                width * 0.9,
                yerr=ends,
                color=f"C{_KINDS.index(kind)}",
                label=label,
                capsize=2,
            )
    axes.set_xticks([0.4 - width / 2, 1.4 - width / 2], ["everyday", "held out"])
    axes.set_title(title)
    axes.spines[["top", "right"]].set_visible(False)


def _verdicts(axes: Axes, lines: list[Line]) -> None:
    """The targets, coloured by what was reached."""
    for row, line in enumerate(reversed(lines)):
        colour = _COLOURS[line.verdict]
        axes.barh(row, 1, color=colour, height=0.85)
        value = "not measured" if line.value is None else f"{line.value:.3g}"
        axes.text(0.02, row, line.label, va="center", fontsize=8)
        axes.text(0.98, row, f"{value}   ({line.must})", va="center", ha="right", fontsize=8)
    axes.set_axis_off()
    axes.set_title("reached: dark the aim, light what must be, red below")


def plot(results: Results, lines: list[Line], path: Path) -> None:
    """Writes the picture."""
    figure, axes = pyplot.subplots(2, 2, figsize=(13, 8), width_ratios=[1.2, 1])
    _verdicts(axes[0, 0], lines)
    _bars(axes[0, 1], results, _KINDS, "wer", "word error rate")
    _bars(axes[1, 0], results, _KINDS, "dnsmos", "DNSMOS overall")
    _bars(axes[1, 1], results, _KINDS[2:], "wrong_word_count", "share with a wrong number of words")
    axes[0, 1].legend(frameon=False, fontsize=8)
    axes[1, 0].set_ylim(1, 4)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def write(results: Results, notes: Mapping[str, str], out: Path) -> str:
    """Writes `report.md`, `report.json` and `report.png`; returns the Markdown."""
    lines = [judge(target, results, notes) for target in TARGETS]
    text = markdown(lines)
    out.mkdir(parents=True, exist_ok=True)
    (out / "report.md").write_text(text)
    whole = {"settings": results.settings, "targets": [asdict(line) for line in lines]}
    (out / "report.json").write_text(json.dumps(whole, indent=1) + "\n")
    plot(results, lines, out / "report.png")
    return text


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--notes", type=Path)
    parser.add_argument("--out", type=Path, help="where to write; the results folder by default")
    args = parser.parse_args()
    notes: dict[str, str] = json.loads(args.notes.read_text()) if args.notes else {}
    print(write(gather(args.results), notes, args.out or args.results))


if __name__ == "__main__":
    main()
