"""Draws the loss curves of a run from the logs of `train_codec.py` and `train_lm.py`.

python -m scripts.train.plot LOGS OUT.png
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes

_CODEC_STEP = re.compile(r"step (\d+) .* rec ([\d.]+) .* phon ([\d.]+)")
_CODEC_CHECK = re.compile(r"spectral loss ([\d.]+), phoneme accuracy ([\d.]+)")
_LM_STEP = re.compile(r"step (\d+) loss ([\d.]+)")
_LM_CHECK = re.compile(r"validation after (\d+): raw ([\d.]+) averaged ([\d.]+)")
_FROZEN = re.compile(r"encoder frozen after (\d+) steps")

Points = list[tuple[float, ...]]


def read(path: Path, pattern: re.Pattern[str]) -> Points:
    """The numbers of every line that matches."""
    found = (pattern.search(line) for line in path.read_text().splitlines())
    return [tuple(map(float, match.groups())) for match in found if match]


def checks(path: Path) -> Points:
    """Validations of the codec as (step, spectral loss, phoneme accuracy)."""
    step, rows = 0.0, []
    for line in path.read_text().splitlines():
        if match := _CODEC_STEP.search(line):
            step = float(match[1])
        elif match := _CODEC_CHECK.search(line):
            rows.append((step, float(match[1]), float(match[2])))
    return rows


def draw(axes: Axes, points: Points, column: int, label: str, style: str = "-") -> None:
    """One curve over the steps."""
    axes.plot([p[0] for p in points], [p[column] for p in points], style, label=label, linewidth=1)


def plot_codec(log: Path, axes: Axes) -> None:
    """Losses of the codec, and the phoneme accuracy on the right."""
    points, held_out = read(log, _CODEC_STEP), checks(log)
    draw(axes, points, 1, "spectral loss")
    draw(axes, points, 2, "phoneme loss")
    draw(axes, held_out, 1, "spectral loss, held out", "o-")
    draw(axes, held_out, 2, "phoneme accuracy, held out", "s-")
    for (step,) in read(log, _FROZEN):
        axes.axvline(step, color="grey", linestyle=":", label="encoder frozen")
    axes.set(title="codec", xlabel="step", ylim=(0, 2))


def plot_lm(log: Path, axes: Axes) -> None:
    """Losses of the language model."""
    draw(axes, read(log, _LM_STEP), 1, "training (dropout, noise)")
    held_out = read(log, _LM_CHECK)
    draw(axes, held_out, 1, "held out", "o-")
    draw(axes, held_out, 2, "held out, averaged weights", "s-")
    axes.set(title="language model", xlabel="step", ylim=(1.5, 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    figure, panels = plt.subplots(1, 2, figsize=(11, 4))
    plot_codec(args.logs / "codec.log", panels[0])
    plot_lm(args.logs / "lm.log", panels[1])
    for axes in panels:
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(args.out, dpi=90)


if __name__ == "__main__":
    main()
