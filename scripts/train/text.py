"""The training sentences: the stored list plus generated short and conversational ones, in spoken form."""

from __future__ import annotations

import json
import lzma
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.train.spoken import ALLOWED, spoken

CONVERSATIONAL = frozenset({"agent", "short", "names", "reply", "dialogue"})

PHRASES: dict[str, list[str]] = json.loads(Path(__file__).with_name("phrases.json").read_text("utf8"))


@dataclass(frozen=True)
class Sentence:
    kind: str
    text: str


class Slots:
    """Random fillers for the `{...}` fields of the templates."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def fill(self, template: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda m: str(getattr(self, "f_" + m[1])()), template)

    def f_N(self) -> str:
        r = self.rng
        return str(
            r.choice([r.randint(1, 20), r.randint(20, 99), r.randint(100, 999), r.randint(1000, 9999)])
        )

    def f_S(self) -> str:
        return str(self.rng.randint(2, 12))

    def f_T(self) -> str:
        r = self.rng
        minute = r.choice([0, 0, 5, 10, 15, 20, 30, 30, 40, 45, 50, r.randint(1, 59)])
        if minute == 0 and r.random() < 0.5:
            return r.choice(["noon", "midnight", f"{r.randint(1, 12)} am", f"{r.randint(1, 12)} pm"])
        return f"{r.randint(1, 12)}:{minute:02d}" + r.choice([" am", " pm", "", ""])

    def f_P(self) -> str:
        r = self.rng
        dollars = r.choice([r.randint(1, 20), r.randint(20, 200), r.randint(200, 5000)])
        return f"${dollars}" + r.choice(["", f".{r.randint(1, 99):02d}", ".99", ".50"])

    def f_D(self) -> str:
        r = self.rng
        day = r.choice(PHRASES["days"])
        date = f"{r.choice(PHRASES['months'])} {r.randint(1, 30)}"
        return r.choice([day, date, f"{day}, {date}", "next " + day, "this " + day])

    def f_Y(self) -> str:
        return str(self.rng.randint(1900, 2035))

    def f_DY(self) -> str:
        return f"{self.rng.choice(PHRASES['months'])} {self.rng.randint(1, 28)}, {self.f_Y()}"

    def f_PC(self) -> str:
        return f"{self.rng.randint(1, 100)}%"

    def f_DG(self) -> str:
        return " ".join(str(self.rng.randint(0, 9)) for _ in range(self.rng.randint(3, 6)))

    def f_PH(self) -> str:
        d = [str(self.rng.randint(0, 9)) for _ in range(10)]
        return ", ".join(" ".join(part) for part in (d[:3], d[3:6], d[6:]))

    def f_X(self) -> str:
        r = self.rng
        signs = (
            r.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") if r.random() < 0.5 else str(r.randint(0, 9))
            for _ in range(9)
        )
        return " ".join(list(signs)[: r.randint(2, 6)])

    def _spelled(self, name: str) -> str:
        return f"{name}, {' '.join(name.upper())}"

    def f_SP(self) -> str:
        return self._spelled(self.f_F())

    def f_SPL(self) -> str:
        return self._spelled(self.f_L())

    def f_F(self) -> str:
        return self.rng.choice(PHRASES["first"])

    def f_L(self) -> str:
        return self.rng.choice(PHRASES["last"])

    def f_C(self) -> str:
        return self.rng.choice(PHRASES["cities"])

    def f_G(self) -> str:
        return self.rng.choice(PHRASES["goods"])

    def f_I(self) -> str:
        return self.rng.choice(PHRASES["things"])

    def f_A(self) -> str:
        return self.rng.choice(PHRASES["actions"])

    def f_ST(self) -> str:
        return (
            f"{self.rng.choice(PHRASES['streets'])} {self.rng.choice(['Street', 'Avenue', 'Road', 'Lane'])}"
        )

    def f_AD(self) -> str:
        return f"{self.rng.randint(1, 999)} {self.f_ST()}"


def clean(text: str) -> bool:
    """Whether a spoken form is fit for training: known signs only, no punctuation inside words."""
    return bool(text) and set(text) <= ALLOWED and not re.search(r"[.,?!;:][a-z]", text)


def stored(path: Path) -> list[Sentence]:
    """The stored list: `kind <tab> spoken text` a line, xz-compressed."""
    with lzma.open(path, "rt", encoding="utf8") as lines:
        pairs = (line.rstrip("\n").split("\t", 1) for line in lines)
        return [Sentence(kind, text) for kind, text in pairs if clean(text)]


def generated(replies: int = 4000, dialogue: int = 14000, seed: int = 11) -> list[Sentence]:
    """Short replies and conversational sentences filled from templates."""
    rng = random.Random(seed)
    slots = Slots(rng)
    out = {spoken(r): "reply" for r in PHRASES["replies"]}
    for kind, count, templates in (
        ("reply", replies, PHRASES["templates"]),
        ("dialogue", dialogue, PHRASES["dialogue"]),
    ):
        for _ in range(count):
            out.setdefault(spoken(slots.fill(rng.choice(templates))), kind)
    return [Sentence(kind, text) for text, kind in out.items() if clean(text)]


def everyday(path: Path) -> list[str]:
    """The everyday evaluation list in spoken form."""
    return [spoken(line) for line in path.read_text(encoding="utf8").splitlines() if line.strip()]


def heldout(path: Path) -> list[str]:
    return [json.loads(line)["text"] for line in path.read_text(encoding="utf8").splitlines() if line.strip()]


def key(text: str) -> str:
    """What two sentences share if they differ in punctuation only."""
    return " ".join(re.findall(r"[a-z']+", text))


def collect(stored_path: Path, excluded: Iterable[str]) -> list[Sentence]:
    """All training sentences, without duplicates and without the evaluation lists."""
    seen = {key(t) for t in excluded}
    out: list[Sentence] = []
    for sentence in [*generated(), *stored(stored_path)]:
        k = key(sentence.text)
        if k not in seen:
            seen.add(k)
            out.append(sentence)
    return out
