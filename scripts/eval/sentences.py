"""The two test lists, in spoken form.

`everyday.txt` holds 100 written everyday sentences of a phone assistant (numbers, prices, names), one a line;
`heldout.jsonl` holds 200 sentences of the training distribution, kept out of it, already in spoken form.
Written text becomes spoken form by the product's own normaliser, named once here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from realtime.text.front_end import TextFrontEnd

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Sentence:
    """One test sentence.

    Attributes:
        name: list and number, "everyday-007".
        written: as a client would send it.
        spoken: as the model reads it.
    """

    name: str
    written: str
    spoken: str


def spoken_form(text: str) -> str:
    """What the model reads for a written text, by the product's own text front end."""
    front_end = TextFrontEnd(streaming=False)
    pieces = [*front_end.push(text), *front_end.flush()]
    return " ".join(word.spoken for piece in pieces for word in piece.words)


def everyday() -> list[Sentence]:
    """The 100 everyday sentences."""
    lines = (_FOLDER / "everyday.txt").read_text().splitlines()
    return [Sentence(f"everyday-{i:03d}", line, spoken_form(line)) for i, line in enumerate(lines) if line]


def heldout() -> list[Sentence]:
    """The 200 held-out sentences."""
    rows = map(json.loads, (_FOLDER / "heldout.jsonl").read_text().splitlines())
    return [Sentence(f"heldout-{row['id']:03d}", row["text"], row["text"]) for row in rows]


LISTS: dict[str, Callable[[], list[Sentence]]] = {"everyday": everyday, "heldout": heldout}


def pick(name: str, count: int | None = None) -> list[Sentence]:
    """A list, or `count` sentences spread evenly over it."""
    sentences = LISTS[name]()
    if count is None or count >= len(sentences):
        return sentences
    return [sentences[i * len(sentences) // count] for i in range(count)]
