"""Numbers in words, as the model was trained to read them: no hyphens, no commas, British "and".

All functions take digits as written (strings, since leading zeros and length matter) or integers, and
return words separated by single spaces.
"""

from functools import lru_cache

from num2words import num2words

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
MAX_CARDINAL_DIGITS = 15
"""Longer runs of digits are read digit by digit."""


@lru_cache(maxsize=4096)
def cardinal(value: int) -> str:
    """234 -> two hundred and thirty four."""
    return _plain(num2words(value))


@lru_cache(maxsize=1024)
def ordinal(value: int) -> str:
    """23 -> twenty-third (hyphen kept: that is how the training text has it)."""
    said = str(num2words(value, to="ordinal")).replace(",", "")
    head, _, last = said.rpartition(" ")
    return f"{head.replace('-', ' ')} {last}".strip()


def digits(text: str) -> str:
    """Every digit of ``text`` by its name; other characters are ignored."""
    return " ".join(_DIGITS[int(c)] for c in text if "0" <= c <= "9")


def two_digits(text: str) -> str:
    """The minutes of a time, or the second half of a year: 05 -> oh five, 30 -> thirty."""
    if text[0] == "0":
        return "oh " + digits(text[1])
    return cardinal(int(text))


def year(text: str) -> str:
    """Four digits as a year: 2026 -> twenty twenty six, 1905 -> nineteen oh five, 2004 as a cardinal."""
    value = int(text)
    if 2000 <= value <= 2009 or value % 1000 == 0 or value < 1000:
        return cardinal(value)
    head, tail = divmod(value, 100)
    return f"{cardinal(head)} {two_digits(f'{tail:02d}') if tail else 'hundred'}"


def is_year(text: str) -> bool:
    """Four digits that are read as a year unless something says otherwise."""
    return len(text) == 4 and text.isdigit() and (1100 <= int(text) <= 1999 or 2000 <= int(text) <= 2099)


def pairs(text: str) -> str:
    """Three or four digits as people say room numbers: 305 -> three oh five, 747 -> seven forty seven."""
    head, tail = text[:-2], text[-2:]
    if not 3 <= len(text) <= 4 or text[0] == "0" or tail == "00":
        return whole(text)
    return f"{cardinal(int(head))} {two_digits(tail)}"


def whole(text: str) -> str:
    """Digits, with or without separators, as a cardinal; digit by digit where that is what people do."""
    plain = "".join(c for c in text if c.isdigit())
    separated = len(plain) < len(text)
    if len(plain) > 1 and plain[0] == "0":
        return digits(plain)
    if len(plain) > (MAX_CARDINAL_DIGITS if separated else 9):
        return digits(plain)
    return cardinal(int(plain))


def number(text: str) -> str:
    """An integer or decimal as written: 1,250 or 3.14 or .5; a sign is not part of it."""
    integral, point, fraction = text.partition(".")
    said = whole(integral) if integral else ""
    if not point or not fraction:
        return said
    return f"{said} point {digits(fraction)}".strip()


def decade(text: str) -> str:
    """1990 or 90, of 1990s: nineteen nineties, nineties, eighteen hundreds, twenty tens."""
    said = cardinal(int(text)) if len(text) == 2 or int(text) % 1000 == 0 else year(text)
    head, _, last = said.rpartition(" ")
    plural = last[:-1] + "ies" if last.endswith("y") else last + "s"
    return f"{head} {plural}".strip()


def fraction(numerator: int, denominator: int) -> str:
    """1, 2 -> one half; 3, 4 -> three quarters; 2, 3 -> two thirds."""
    name = {2: "half", 4: "quarter"}.get(denominator) or ordinal(denominator)
    if numerator != 1:
        name = "halves" if name == "half" else name + "s"
    return f"{cardinal(numerator)} {name}"


def _plain(said: str) -> str:
    return said.replace(",", "").replace("-", " ")
