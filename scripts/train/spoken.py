"""Written English -> the spoken form the voice model reads: lower case, no digits, few punctuation marks."""

from __future__ import annotations

import re
import unicodedata

ALLOWED = frozenset("abcdefghijklmnopqrstuvwxyz '.,?!;:-")
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
ABBREVIATIONS = {
    r"\bmr\.": "mister",
    r"\bmrs\.": "missus",
    r"\bms\.": "miss",
    r"\bdr\.": "doctor",
    r"\bst\.": "saint",
    r"\bprof\.": "professor",
    r"\bjr\.": "junior",
    r"\be\.g\.": "for example",
    r"\bi\.e\.": "that is",
    r"\betc\.": "et cetera",
    r"\bvs\.": "versus",
    r"\bno\. (?=\d)": "number ",
}
SYMBOLS = {"&": " and ", "+": " plus ", "=": " equals ", "%": " percent", "/": " ", "_": " "}


def _words(n: str | int, kind: str) -> str:
    from num2words import num2words  # the machine that trains lacks it, and only reads ready texts

    return str(num2words(int(n), to=kind)).replace(",", "").replace("-", " ")


def cardinal(n: int | str) -> str:
    return _words(n, "cardinal")


def ordinal(n: int | str) -> str:
    return _words(n, "ordinal")


def digits(text: str) -> str:
    return " ".join(DIGITS[int(c)] for c in text)


def year(n: int | str) -> str:
    n = int(n)
    if 2000 <= n <= 2009 or n % 1000 == 0:
        return cardinal(n)
    century, rest = divmod(n, 100)
    tail = "hundred" if rest == 0 else ("oh " if rest < 10 else "") + cardinal(rest)
    return f"{cardinal(century)} {tail}"


def number(text: str) -> str:
    plain = text.replace(",", "")
    if "." in plain:
        whole, fraction = plain.split(".")
        return f"{cardinal(whole or 0)} point {digits(fraction)}"
    if (len(plain) > 1 and plain[0] == "0") or len(plain) > 9:
        return digits(plain)
    return cardinal(plain)


def money(whole: str, cents: str | None) -> str:
    n = int(whole.replace(",", ""))
    spoken = cardinal(n) + (" dollar" if n == 1 else " dollars")
    if cents and int(cents):
        spoken += f" and {cardinal(cents)} " + ("cent" if int(cents) == 1 else "cents")
    return spoken


def clock(hour: str, minute: str, half: str | None) -> str:
    spoken = cardinal(hour)
    if minute != "00":
        spoken += (" oh " if minute[0] == "0" else " ") + cardinal(minute)
    elif not half:
        spoken += " o'clock"
    return spoken + (" " + " ".join(half.replace(".", "")) if half else "")


def _expand_letters(text: str) -> str:
    """Initialisms with full stops and short vowelless capitals become separate letters."""
    text = re.sub(r"\b(?:[A-Z]\.){2,}", lambda m: " ".join(m[0].replace(".", " ").split()) + " ", text)
    return re.sub(r"\b[B-DF-HJ-NP-TV-Z]{2,5}\b", lambda m: " ".join(m[0]), text)


def _expand_numbers(t: str) -> str:
    t = re.sub(r"\$\s?(\d+(?:,\d{3})*)(?:\.(\d\d))?", lambda m: money(m[1], m[2]), t)
    t = re.sub(r"\b(\d{1,2}):(\d\d)(?:\s?([ap]\.?m\b))?", lambda m: clock(m[1], m[2], m[3]), t)
    t = re.sub(r"\b(\d{1,2})\s?([ap])\.?m\b", lambda m: f"{cardinal(m[1])} {m[2]} m", t)
    t = re.sub(rf"\b({MONTHS}) (\d{{1,2}})(?:st|nd|rd|th)?\b", lambda m: f"{m[1]} {ordinal(m[2])}", t)
    t = re.sub(r"\b(\d+)(?:st|nd|rd|th)\b", lambda m: ordinal(m[1]), t)
    t = re.sub(r"(\d)\s?%", r"\1 percent", t)
    t = re.sub(r"\b(1[1-9]\d\d|20\d\d)\b(?![,.]?\d)", lambda m: year(m[1]), t)
    t = re.sub(r"(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])", " ", t)
    return re.sub(r"\d[\d,]*\.\d+|\d[\d,]*\d|\d", lambda m: number(m[0]), t)


def spoken(text: str) -> str:
    """The spoken form of one sentence; empty if nothing can be spoken."""
    t = unicodedata.normalize("NFKD", text).replace("\u2019", "'").replace("\u2018", "'")
    t = t.replace("\u2014", ", ").replace("\u2013", "-").replace("\u2026", ".")
    t = "".join(c for c in t if not unicodedata.combining(c))
    t = _expand_letters(t).lower()
    for pattern, replacement in ABBREVIATIONS.items():
        t = re.sub(pattern, replacement, t)
    t = re.sub(r"https?://", "", t)
    t = re.sub(r"(\w)@(\w)", r"\1 at \2", t)
    t = re.sub(r"(?<=[a-z0-9])\.(?=[a-z]{2,})", " dot ", t)
    t = _expand_numbers(t)
    for symbol, word in SYMBOLS.items():
        t = t.replace(symbol, word)
    t = "".join(c if c in ALLOWED else " " for c in t)
    t = re.sub(r"\s*-\s+|\s+-\s*", ", ", t)
    t = re.sub(r"\s+([.,?!;:])", r"\1", t)
    t = re.sub(r"([.,?!;:])[.,;:]+", r"\1", t)
    t = re.sub(r"\s+", " ", t).strip(" ,;:-")
    return t + "." if t and t[-1] not in ".?!" else t


def words(text: str) -> list[str]:
    """The spoken words of a spoken form: whitespace-separated items that contain a letter."""
    return [w for w in text.split() if re.search("[a-z]", w)]
