"""Figures of one evaluation by dotted name, with the sentences behind them; JSON in and out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.eval import scoring
from scripts.eval.scoring import Estimate, SentenceScore


class Results:
    """Named figures ("everyday.codec.wer") and per-sentence rows."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.figures: dict[str, Estimate | float] = {}
        self.rows: dict[str, list[dict[str, object]]] = {}
        self.settings: dict[str, object] = {}

    def put(self, name: str, value: Estimate | float) -> None:
        """Adds a figure."""
        self.figures[name] = value

    def put_scores(self, name: str, sentences: Sequence[str], scores: Sequence[SentenceScore]) -> None:
        """Adds the intelligibility figures of one list and its sentences."""
        self.put(f"{name}.wer", scoring.wer(scores))
        self.put(f"{name}.cer", scoring.cer(scores))
        self.put(f"{name}.wer_median", scoring.median([s.wer for s in scores]))
        self.put(f"{name}.defective", scoring.mean([s.defective for s in scores]))
        self.rows[name] = [
            {"sentence": sentence, **dataclasses.asdict(score)}
            for sentence, score in zip(sentences, scores, strict=True)
        ]

    def add_to_rows(self, name: str, column: str, values: Sequence[object]) -> None:
        """Adds a column to the sentences of `name`."""
        for row, value in zip(self.rows[name], values, strict=True):
            row[column] = value

    def value(self, name: str) -> float:
        """The plain value of a figure."""
        figure = self.figures[name]
        return figure.value if isinstance(figure, Estimate) else figure

    def table(self) -> str:
        """The figures as text, one a line."""
        width = max(map(len, self.figures), default=0)
        lines = [
            f"{name:<{width}}  {value if isinstance(value, Estimate) else f'{value:.4g}'}"
            for name, value in self.figures.items()
        ]
        return "\n".join([self.title, *lines])

    def write(self, path: Path) -> None:
        """Writes JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        figures = {
            name: dataclasses.asdict(value) if isinstance(value, Estimate) else value
            for name, value in self.figures.items()
        }
        whole = {"title": self.title, "settings": self.settings, "figures": figures, "rows": self.rows}
        path.write_text(json.dumps(whole, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Results:
        """Reads what `write` wrote."""
        stored: Mapping[str, dict[str, object]] = json.loads(path.read_text())
        results = cls(str(stored["title"]))
        results.settings = dict(stored["settings"])
        for name, value in stored["figures"].items():
            results.put(name, Estimate(**value) if isinstance(value, dict) else float(str(value)))
        results.rows = {name: list(rows) for name, rows in stored["rows"].items()}  # type: ignore[call-overload]
        return results
