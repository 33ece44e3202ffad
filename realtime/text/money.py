"""Amounts of money in the currencies that people write with a sign or a code."""

import re

from realtime.text.measures import UNITS
from realtime.text.numbers import cardinal, number
from realtime.text.rules import NUMBER, NUMBER_END, Left, Rule, rule

_DOLLAR = ("dollar", "dollars", "cent", "cents")
_SIGNS = {
    "$": _DOLLAR, "US$": _DOLLAR, "€": ("euro", "euros", "cent", "cents"), "£": ("pound", "pounds",
    "penny", "pence"),
    "¥": ("yen", "yen", "", ""), "₹": ("rupee", "rupees", "paisa", "paise"), "₩": ("won", "won", "", ""),
    "₽": ("ruble", "rubles", "kopeck", "kopecks"), "₺": ("lira", "lira", "kurus", "kurus"),
    "₪": ("shekel", "shekels", "agora", "agorot"), "₫": ("dong", "dong", "", ""), "฿": ("baht", "baht",
    "satang", "satang"),
    "₿": ("bitcoin", "bitcoin", "", ""), "R$": ("real", "reals", "centavo", "centavos"),
    "C$": ("canadian dollar", "canadian dollars", "cent", "cents"),
    "A$": ("australian dollar", "australian dollars", "cent", "cents"),
    "NZ$": ("new zealand dollar", "new zealand dollars", "cent", "cents"),
    "HK$": ("hong kong dollar", "hong kong dollars", "cent", "cents"),
    "S$": ("singapore dollar", "singapore dollars", "cent", "cents"),
}  # fmt: skip
_SIGNS |= {"CA$": _SIGNS["C$"], "AU$": _SIGNS["A$"]}
_CODES = {
    "USD": ("u s dollar", "u s dollars", "cent", "cents"), "EUR": _SIGNS["€"], "GBP": _SIGNS["£"],
    "JPY": _SIGNS["¥"],
    "INR": _SIGNS["₹"], "CAD": _SIGNS["C$"], "AUD": _SIGNS["A$"], "NZD": _SIGNS["NZ$"], "KRW": _SIGNS["₩"],
    "CHF": ("swiss franc", "swiss francs", "centime", "centimes"), "CNY": ("yuan", "yuan", "", ""),
    "RMB": ("yuan", "yuan", "", ""), "SEK": ("swedish krona", "swedish kronor", "", ""),
    "NOK": ("norwegian krone", "norwegian kroner", "", ""), "DKK": ("danish krone", "danish kroner", "", ""),
    "MXN": ("mexican peso", "mexican pesos", "centavo", "centavos"), "BRL": _SIGNS["R$"], "PLN": ("zloty",
    "zloty", "", ""),
    "BTC": ("bitcoin", "bitcoin", "", ""),
}  # fmt: skip
NAMES = {sign: names[1] for sign, names in _SIGNS.items()} | {"¢": "cents"}
"""A sign on its own."""
_MAGNITUDES = {
    "k": "thousand", "m": "million", "mn": "million", "mm": "million", "b": "billion", "bn": "billion",
    "t": "trillion",
    "tn": "trillion",
}  # fmt: skip

_SIGN = r"(?P<{0}>(?:US|CA|AU|NZ|HK|C|A|S|R)?\$|[€£¥₹₩₽₺₪₫฿₿])"
_AMOUNT = r"(?P<a>\d{1,3}(?:\.\d{3})+,\d\d(?!\d)|\d+,\d\d(?!\d)|" + NUMBER + NUMBER_END + ")"
_UNTIL = r"(?:[kKmMbB]?\s?[-–—]\s?(?:\$|[€£¥₹])?(?P<b>" + NUMBER + NUMBER_END + "))?"
_MAGNITUDE = (
    r"(?:[\s-]?(?P<mag>(?:hundred |thousand |million )?(?:thousand|million|billion|trillion)\b|"
    r"(?:[kKmMbBtT]|[mMbB][nN]|MM|[tT]n)\b))?"
)
_PER = r"(?:\s?/\s?(?:(?P<per>[A-Za-z]+)|(?P<each>(?=\d))))?"
_CODE = r"(?P<code>" + "|".join(_CODES) + ")"


def _english(text: str) -> str:
    """The amount with English separators: 1.234,56 -> 1234.56."""
    if re.fullmatch(r"[\d.]+,\d\d", text):
        return text.replace(".", "").replace(",", ".")
    return text


def _say(match: re.Match[str], names: tuple[str, str, str, str], left: Left) -> str:
    one, many, cent, cents = names
    amount = _english(match["a"])
    until, magnitude = match["b"] if "b" in match.re.groupindex else None, match["mag"]
    attributive = left.last() in ("a", "an")
    if magnitude:
        said = number(amount) + (f" to {number(until)}" if until else "")
        said += f" {_MAGNITUDES.get(magnitude.lower(), magnitude.lower())} {one if attributive else many}"
    elif until:
        said = f"{number(amount)} to {number(until)} {many}"
    else:
        said = _exact(amount, one, many, cent, cents, attributive)
    groups = match.re.groupindex
    if "neg" in groups and match["neg"]:
        said = "minus " + said
    if "per" in groups and match["per"]:
        unit = match["per"]
        said += f" per {UNITS[unit][0] if unit in UNITS else unit.lower()}"
    if "each" in groups and match["each"] is not None:
        said += " per"
    return said


def _exact(amount: str, one: str, many: str, cent: str, cents: str, attributive: bool) -> str:
    integral, _, fraction = amount.partition(".")
    plain = integral.replace(",", "")
    if fraction and (len(fraction) != 2 or not cent):
        return f"{number(amount)} {many}"
    name = one if attributive or (plain and int(plain) == 1) else many
    if not fraction or not int(fraction):
        return f"{number(integral or '0')} {name}"
    small = f"{cardinal(int(fraction))} {cent if int(fraction) == 1 else cents}"
    return small if not plain or int(plain) == 0 else f"{number(integral)} {name} and {small}"


def _signed(match: re.Match[str], left: Left) -> str:
    return _say(match, _SIGNS[match["sign"]], left)


def _coded(match: re.Match[str], left: Left) -> str:
    return _say(match, _CODES[match["code"]], left)


def _cents(match: re.Match[str], _: Left) -> str:
    return f"{number(match[1])} cent{'' if match[1] == '1' else 's'}"


SIGN_FIRST: tuple[Rule, ...] = (
    rule(
        r"(?P<neg>[-−])?"
        + _SIGN.format("sign")
        + r"\s?"
        + _AMOUNT
        + _UNTIL
        + _MAGNITUDE
        + _PER
        + r"(?:\s?USD\b)?",
        _signed,
    ),
)
CODE_FIRST: tuple[Rule, ...] = (rule(_CODE + r"\s?" + _AMOUNT + _UNTIL + _MAGNITUDE, _coded),)
NUMBER_FIRST: tuple[Rule, ...] = (
    rule(_AMOUNT + _MAGNITUDE + r"\s?" + _SIGN.format("sign").replace(r"\$|", r"\$(?!\d)|") + _PER, _signed),
    rule(_AMOUNT + _MAGNITUDE + r"\s?" + _CODE + r"\b" + _PER, _coded),
    rule("(" + NUMBER + r")\s?¢", _cents),
)
