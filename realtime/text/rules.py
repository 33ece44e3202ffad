"""What a reading rule is: a pattern and how its match is said."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from realtime.text.folding import LAYOUT
from realtime.text.lexicon import begins_sentence

NUMBER = r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)"
"""A cardinal or decimal with English separators."""
NUMBER_END = r"(?!\d|[.,]\d)"
_WORD = re.compile(r"[\s" + LAYOUT + r"\"'(*_]*([A-Za-z0-9$][\w'.]*)?")


@dataclass(frozen=True, slots=True)
class Left:
    """What stands before: the last few tokens as written, and whether a line or sentence has just begun."""

    words: tuple[str, ...] = ()
    line_start: bool = True

    def last(self) -> str:
        """The token before, in lower case; "" at the beginning."""
        return self.words[-1].lower() if self.words else ""

    def numeric(self) -> bool:
        """The token before is a number or an amount of money."""
        return bool(self.words) and self.words[-1].lstrip("$€£")[:1].isdigit()

    def any_of(self, words: frozenset[str], count: int = 3) -> bool:
        """One of the last ``count`` tokens is among ``words``."""
        return any(word.lower() in words for word in self.words[-count:])


Say = Callable[[re.Match[str], Left], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """``say`` gives the spoken words, separated by spaces ("": none), or None: the rule does not hold."""

    pattern: re.Pattern[str]
    say: Say


def rule(pattern: str, say: Say, flags: int = 0) -> Rule:
    """Compile a rule."""
    return Rule(re.compile(pattern, flags), say)


def next_word(match: re.Match[str]) -> str:
    """The word that follows the match, as written; "" where the piece ends."""
    found = _WORD.match(match.string, match.end())
    return (found[1] or "") if found else ""


def stop_if_sentence_ends(match: re.Match[str], said: str) -> str:
    """``said``, with a full stop where the abbreviation's own one also ends the sentence."""
    return said + "." if match[0].endswith(".") and begins_sentence(next_word(match)) else said
