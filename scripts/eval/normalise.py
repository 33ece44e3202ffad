"""Transcript normalisation: text to a list of comparable words, for reference and hypothesis alike.

A recogniser writes "$48.50" or "7:30 p.m." where the speaker said words. Numbers become words on both
sides. A number can be read in several ways (404: four hundred four, four oh four), so a hypothesis
number takes the reading that the reference contains, else the plain one; see `resolve`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from dataclasses import dataclass

from num2words import num2words
from whisper_normalizer.english import EnglishSpellingNormalizer

_DIGITS = ["o", *(num2words(n) for n in range(1, 10))]
_SMALL = [num2words(n) for n in (*range(20), *range(20, 100, 10))]
_NUMERAL = {*_SMALL, "o", "hundred", "thousand", "million", "billion"}
_BEFORE_AND = {*_NUMERAL, "dollar", "dollars", "pound", "pounds", "euro", "euros"}
_FILLERS = {"um", "uh", "hmm", "hm", "mm", "mmm", "mhm", "oclock"}
_SAME = {
    "mister": "mr",
    "missus": "mrs",
    "doctor": "dr",
    "okay": "ok",
    "alright": "all right",
    "zero": "o",
    "oh": "o",
    "saint": "st",
    "versus": "vs",
    "percent": "per cent",
    "et cetera": "etc",
}
_CURRENCY = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}
_UNIT = {"%": " percent ", "°": " degrees ", "&": " and ", "@": " at ", "+": " plus ", "=": " equals "}

_MONEY = re.compile(r"([$£€])\s?(\d[\d,]*)(?:\.(\d\d))?(?:\s(hundred|thousand|million|billion))?")
_CLOCK = re.compile(r"\b(\d{1,2})[:.](\d\d)(?=\s*[ap][.\s]?m\b)|\b(\d{1,2}):(\d\d)\b")
_ORDINAL = re.compile(r"\b(\d+)(?:st|nd|rd|th)\b")
_DECADE = re.compile(r"\b(\d\d(?:\d0)|\d0)'?s\b")
_SPELLED = re.compile(r"\b(?:[a-z]\.){2,}")
_BRACKETED = re.compile(r"\([^)]*\)|\[[^\]]*\]|\*[^*]*\*|♪")
_TOKEN = re.compile(r"\d+\.\d+|\d+|[a-z]+")

_spelling = EnglishSpellingNormalizer()


@dataclass(frozen=True, slots=True)
class Number:
    """A written number with the ways it can be read, the plain reading first."""

    readings: tuple[tuple[str, ...], ...]


Item = str | Number


def cardinal(value: int) -> list[str]:
    """`1250` to one thousand two hundred fifty."""
    return re.findall(r"[a-z]+", num2words(value).replace(" and ", " "))


def _ordinal(value: int) -> list[str]:
    return re.findall(r"[a-z]+", num2words(value, to="ordinal").replace(" and ", " "))


def _pair(value: int) -> list[str]:
    if value == 0:
        return ["hundred"]
    return [*(["o"] if value < 10 else []), *cardinal(value)]


def _decimal(whole: str, fraction: str) -> tuple[tuple[str, ...], ...]:
    """A decimal, or a clock time written with a full stop."""
    point = [*readings(whole)[0], "point", *(_DIGITS[int(digit)] for digit in fraction)]
    clock = len(fraction) == 2 and int(whole) <= 24 and int(fraction) < 60
    ways = [point, [*cardinal(int(whole)), *_pair(int(fraction))]] if clock else [point]
    return tuple(tuple(canonical(way)) for way in ways)


@functools.cache
def readings(digits: str) -> tuple[tuple[str, ...], ...]:
    """The ways a number can be read aloud, the most usual first."""
    if "." in digits:
        return _decimal(*digits.split("."))
    spelled = [_DIGITS[int(digit)] for digit in digits]
    if (len(digits) > 1 and digits[0] == "0") or len(digits) > 9:
        return (tuple(spelled),)
    value = int(digits)
    ways = [cardinal(value)]
    if len(digits) == 4:
        head, tail = divmod(value, 100)
        ways.insert(0 if 1100 <= value < 2000 or value > 2009 else 1, cardinal(head) + _pair(tail))
        ways.append(["twenty", *cardinal(tail)] if head == 20 and tail else cardinal(head))
        ways.append([*cardinal(head), "hundred", *(cardinal(tail) if tail else [])])
    if len(digits) == 3:
        head, tail = divmod(value, 100)
        ways.append(cardinal(head) + _pair(tail))
        if head == 1:
            ways.append(["a", *ways[0][1:]])
    if len(digits) > 1:
        ways.append(spelled)
        ways.append([word if word != "o" else "zero" for word in spelled])
    ways.append(_ordinal(value))
    return tuple(dict.fromkeys(tuple(canonical(way)) for way in ways))


def _numbers_to_words(text: str) -> str:
    """Rewrites what is no bare number: money, clock times, ordinals, decades."""

    def money(match: re.Match[str]) -> str:
        unit, part = _CURRENCY[match[1]]
        whole = match[2].replace(",", "")
        if match[4]:
            return f" {whole} {match[4]} {unit}s "
        cents = int(match[3] or 0)
        said = f" {whole} {unit}{'' if int(whole) == 1 else 's'} "
        if not cents:
            return said
        return (
            f"{said} and {cents} {part}{'' if cents == 1 else 's'} " if int(whole) else f" {cents} {part}s "
        )

    def clock(match: re.Match[str]) -> str:
        hour, minute = match[1] or match[3], match[2] or match[4]
        said = "" if minute == "00" else " ".join(_pair(int(minute)))
        return f" {int(hour)} {said} "

    def decade(match: re.Match[str]) -> str:
        return " " + re.sub(r"y$", "ies", " ".join(readings(match[1])[0])) + " "

    text = _MONEY.sub(money, text)
    text = _CLOCK.sub(clock, text)
    text = _DECADE.sub(decade, text)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    return _ORDINAL.sub(lambda m: " " + " ".join(_ordinal(int(m[1]))) + " ", text)


def canonical(words: list[str]) -> list[str]:
    """Maps equivalent spellings to one, drops fillers and the "and" within numbers."""
    text = " ".join(words)
    for source, target in _SAME.items():
        text = re.sub(rf"\b{source}\b", target, text)
    kept = [word for word in _spelling(text).split() if word not in _FILLERS]
    return [
        word
        for i, word in enumerate(kept)
        if not (
            word == "and" and 0 < i < len(kept) - 1 and kept[i - 1] in _BEFORE_AND and kept[i + 1] in _NUMERAL
        )
    ]


def items(text: str) -> list[Item]:
    """Text in any form to words and undecided numbers."""
    text = unicodedata.normalize("NFKD", text).lower().replace("’", "'")
    text = "".join(char for char in text if not unicodedata.combining(char))
    text = _BRACKETED.sub(" ", text)
    text = _SPELLED.sub(lambda match: match[0].replace(".", " "), text)
    text = _numbers_to_words(text)
    for symbol, said in _UNIT.items():
        text = text.replace(symbol, said)
    text = re.sub(r"(?<=[a-z])\.(?=[a-z]{2,})", " dot ", text).replace("'", "")
    return [Number(readings(token)) if token[0].isdigit() else token for token in _TOKEN.findall(text)]


def resolve(parts: list[Item], reference: list[str]) -> list[str]:
    """Reads every number the way `reference` does, else as near to it as possible, else plainly."""
    text, known = f" {' '.join(reference)} ", set(reference)

    def likeness(way: tuple[str, ...]) -> tuple[int, int]:
        contained = len(way) if f" {' '.join(way)} " in text else 0
        return contained, sum(1 if word in known else -1 for word in way) if known else 0

    said: list[str] = []
    for part in parts:
        if isinstance(part, str):
            said.append(part)
            continue
        best: tuple[str, ...] = max(part.readings, key=likeness)
        said.extend(best)
    return canonical(said)


def reference_words(text: str) -> list[str]:
    """Words of what was to be said."""
    return resolve(items(text), [])


def hypothesis_words(text: str, reference: list[str]) -> list[str]:
    """Words of a transcript, its numbers read as the reference reads them."""
    return resolve(items(text), reference)
