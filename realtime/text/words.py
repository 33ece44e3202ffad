"""Words: abbreviations, initials, compounds, codes and plain words."""

import re

from realtime.text.lexicon import (
    ABBREVIATIONS,
    BARE_ABBREVIATIONS,
    LETTER_NOUNS,
    NUMBERED,
    OPEN_ABBREVIATIONS,
)
from realtime.text.rules import Left, Rule, next_word, rule, stop_if_sentence_ends
from realtime.text.tokens import alphabetic, code, part, spell

_TITLES = frozenset(
    ["gen", "sen", "hon", "rev", "gov", "lt", "capt", "sgt", "mt", "cmdr", "col", "maj", "adm", "rep"]
)


def _numbered(match: re.Match[str], _: Left) -> str:
    return NUMBERED[match[1]]


def _dotted(match: re.Match[str], _: Left) -> str:
    text = match["letters"].lower()
    known = ABBREVIATIONS.get(text.rstrip("."))
    if known:
        return known
    said = spell(text.replace(".", ""))
    return said + "'s" if match["possessive"] else stop_if_sentence_ends(match, said)


def _abbreviation(match: re.Match[str], left: Left) -> str | None:
    text = match[1].lower()
    following = next_word(match)
    if text == "st":
        return _saint(match, left, following)
    if (
        text == "dr"
        and left.words
        and left.words[-1][:1].isupper()
        and any(w[:1].isdigit() for w in left.words)
    ):
        return stop_if_sentence_ends(match, "drive")
    if text == "ft" and (left.last()[-1:].isdigit() or not following[:1].isupper()):
        return None
    if text in _TITLES and match[1].islower():
        return None
    if text in ABBREVIATIONS:
        return ABBREVIATIONS[text]
    if text in OPEN_ABBREVIATIONS:
        return stop_if_sentence_ends(match, OPEN_ABBREVIATIONS[text])
    return None


def _saint(match: re.Match[str], left: Left, following: str) -> str:
    named = bool(left.words) and left.words[-1][:1].isupper()
    if named and (len(left.words) > 1 or not following[:1].isupper()):
        return stop_if_sentence_ends(match, "street")
    return "saint" if following[:1].isupper() else "street"


def _initial(match: re.Match[str], left: Left) -> str | None:
    if left.last() in LETTER_NOUNS or (match[1] == "I" and left.words):
        return None  # a name or word of its own at a sentence's end
    return match[1].lower()


def _versus(match: re.Match[str], _: Left) -> str | None:
    return "versus" if next_word(match)[:1].isupper() else None


def _bare(match: re.Match[str], left: Left) -> str | None:
    text = match[0].lower()
    if text == "st":
        named = bool(left.words) and left.words[-1][:1].isupper() and len(left.words) > 1
        return "street" if named else "saint" if next_word(match)[:1].isupper() else None
    if text == "ms" and not next_word(match)[:1].isupper():
        return None
    return BARE_ABBREVIATIONS.get(text)


def _letter_pair(match: re.Match[str], _: Left) -> str:
    return f"{spell(match[1])} and {spell(match[2])}{chr(39) + 's' if match[3] else ''}"


def _compound(match: re.Match[str], left: Left) -> str:
    said = ""
    before = left.last()
    plain_before = False
    for text in match[0].split("-"):
        spoken = part(text, before)
        plain = text.replace("'", "").isalpha() and " " not in spoken
        said += ("-" if plain and plain_before else " ") + spoken if said else spoken
        before, plain_before = text, plain
    return said


def _code(match: re.Match[str], _: Left) -> str:
    said = code(match[1])
    return said + "'s" if match[2] else said


def _word(match: re.Match[str], left: Left) -> str:
    before = left.words[-1] if left.words else ""
    end = match.end() >= len(match.string) or match.string[match.end()] in ",.;:!?)\x04\n"
    return alphabetic(match[0], before, end=end)


_ABBREVIATED = "|".join(sorted({*ABBREVIATIONS, *OPEN_ABBREVIATIONS}, key=len, reverse=True)).replace(
    ".", r"\."
)
_BARE = "|".join(sorted((re.escape(word) for word in BARE_ABBREVIATIONS), key=len, reverse=True))
WORD = rule(r"[A-Za-z]+(?:'[A-Za-z]+)*", _word)
"""Any plain word."""
RULES: tuple[Rule, ...] = (
    rule(rf"({'|'.join(NUMBERED)})\.\s?#?(?=[\d+(])", _numbered),
    rule(r"no\.(?=\d)", lambda _match, _left: "number"),
    rule(r"(?P<letters>(?:[A-Za-z]\.){2,}(?:[A-Za-z](?![\w.]))?)(?P<possessive>'s\b)?", _dotted),
    rule(rf"({_ABBREVIATED})\.(?!\w)", _abbreviation, re.IGNORECASE),
    rule(r"[vV]\.(?=\s)", _versus),
    rule(r"(?<![\w+/&-])([A-Z])\.(?=[ \x04])", _initial),
    rule(r"[Tt][Ll];?[Dd][Rr]\b", lambda _match, _left: "t l d r"),
    rule(r"C\+\+", lambda _match, _left: "c plus plus"),
    rule(r"([CFGAD])#(?!\w)", lambda match, _left: f"{match[1].lower()} sharp"),
    rule(r"([ABCDF])\+(?![\w+])", lambda match, _left: f"{match[1].lower()} plus"),
    rule(r"([A-Z]{1,2})&([A-Z]{1,2})('?s)?\b", _letter_pair),
    rule(r"[Ww]i-?[Ff]i\b", lambda _match, _left: "wi-fi"),
    rule(r"([a-z]{2,})\(s\)", lambda match, _left: match[1] + "s"),
    rule(rf"(?:{_BARE})(?![\w.'/-])", _bare, re.IGNORECASE),
    rule(r"[A-Za-z][A-Za-z0-9]*(?:'[A-Za-z]+)*(?:-(?:\d+\.\d+|[A-Za-z0-9]+)(?:'[A-Za-z]+)*)+", _compound),
    rule(r"([A-Za-z]+\d[A-Za-z0-9]*)('s\b)?", _code),
    WORD,
)
CODE = rule(r"(\d+[A-Za-z][A-Za-z0-9]*)('s\b)?", _code)
"""A code that begins with a digit."""
