"""Numbers with what they count: units, percent, degrees, ranges, fractions, versions, arithmetic."""

import re

from realtime.text.datetimes import date
from realtime.text.folding import VULGAR
from realtime.text.lexicon import (
    CODE_NOUNS,
    DATE_WORDS,
    DIGIT_NOUNS,
    PAIR_NOUNS,
    YEAR_WORDS,
    begins_sentence,
    listed,
)
from realtime.text.numbers import cardinal, digits, fraction, is_year, number, ordinal, pairs, whole, year
from realtime.text.rules import NUMBER, NUMBER_END, Left, Rule, next_word, rule

_IRREGULAR = {
    "ft": ("foot", "feet"), "in": ("inch", "inches"), "lb": ("pound", "pounds"), "lbs": ("pound", "pounds"),
    "Hz": ("hertz", "hertz"), "kHz": ("kilohertz", "kilohertz"), "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"), "mph": ("mile per hour", "miles per hour"),
    "km/h": ("kilometer per hour", "kilometers per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"),
    "kmh": ("kilometer per hour", "kilometers per hour"), "m/s": ("meter per second", "meters per second"),
    "m²": ("square meter", "square meters"), "m2": ("square meter", "square meters"),
    "km²": ("square kilometer", "square kilometers"), "cm²": ("square centimeter", "square centimeters"),
    "ft²": ("square foot", "square feet"), "sq ft": ("square foot", "square feet"),
    "sq. ft.": ("square foot", "square feet"), "sqft": ("square foot", "square feet"),
    "sq m": ("square meter", "square meters"), "sq mi": ("square mile", "square miles"),
    "m³": ("cubic meter", "cubic meters"), "cm³": ("cubic centimeter", "cubic centimeters"),
    "Mbps": ("megabit per second", "megabits per second"),
    "Gbps": ("gigabit per second", "gigabits per second"),
    "kbps": ("kilobit per second", "kilobits per second"), "fps": ("frame per second", "frames per second"),
    "rpm": ("r p m", "r p m"), "bpm": ("beat per minute", "beats per minute"), "dpi": ("d p i", "d p i"),
    "psi": ("p s i", "p s i"), "fl oz": ("fluid ounce", "fluid ounces"),
    "fl. oz.": ("fluid ounce", "fluid ounces"),
    "kWh": ("kilowatt hour", "kilowatt hours"), "mAh": ("milliamp hour", "milliamp hours"),
    "m/s²": ("meter per second squared", "meters per second squared"),
    "°": ("degree", "degrees"), "px": ("pixel", "pixels"),
    "MB/s": ("megabyte per second", "megabytes per second"),
    "GB/s": ("gigabyte per second", "gigabytes per second"), "dB": ("decibel", "decibels"),
}  # fmt: skip
_REGULAR = {
    "km": "kilometer", "m": "meter", "cm": "centimeter", "mm": "millimeter", "μm": "micrometer",
    "nm": "nanometer",
    "mi": "mile", "yd": "yard", "yds": "yard", "kg": "kilogram", "g": "gram", "mg": "milligram",
    "μg": "microgram",
    "oz": "ounce", "l": "liter", "L": "liter", "ml": "milliliter", "mL": "milliliter", "cl": "centiliter",
    "dl": "deciliter",
    "gal": "gallon", "qt": "quart", "tsp": "teaspoon", "tbsp": "tablespoon", "W": "watt", "kW": "kilowatt",
    "MW": "megawatt", "GW": "gigawatt", "V": "volt", "kV": "kilovolt", "mA": "milliamp", "KB": "kilobyte",
    "kB": "kilobyte",
    "MB": "megabyte", "GB": "gigabyte", "TB": "terabyte", "PB": "petabyte", "ms": "millisecond",
    "s": "second",
    "sec": "second", "secs": "second", "μs": "microsecond", "ns": "nanosecond", "min": "minute",
    "mins": "minute",
    "h": "hour", "hr": "hour", "hrs": "hour", "yr": "year", "yrs": "year", "mo": "month", "mos": "month",
    "wk": "week",
    "wks": "week", "kcal": "kilocalorie", "cal": "calorie", "ha": "hectare", "MP": "megapixel",
    "pts": "point",
    "kJ": "kilojoule", "Ω": "ohm", "kΩ": "kiloohm", "sq": "square",
}  # fmt: skip
UNITS = {unit: (name, name + "s") for unit, name in _REGULAR.items()} | _IRREGULAR
"""Unit -> what one and what several are called."""
_PER = {unit: names[0] for unit, names in UNITS.items()} | {"d": "day"}

_NAMES = "|".join(
    re.escape(unit) for unit in sorted(UNITS, key=len, reverse=True) if unit not in ("in", "°", "sq")
)
_UNIT = rf"(?P<unit>{_NAMES}|in\.)(?![A-Za-z²³])(?P<dot>\.(?![A-Za-z]))?(?:/(?P<per>[A-Za-z²]+))?"
_FRACTION_UNIT = rf"(?:[\s-]?(?P<unit>{_NAMES}|in\.)(?![A-Za-z²³]))?"
_VULGAR = "".join(VULGAR)
_LARGE = {"k": "thousand", "M": "million", "B": "billion", "bn": "billion", "mn": "million", "mm": "million"}
_ASKING = listed("what what's calculate compute multiply")
_PLURAL = listed("people men women children feet")
_DATING = YEAR_WORDS - listed("and to for between around")
_NOT_PLURAL = listed("was is has as this does its less")


def _unit(match: re.Match[str], left: Left) -> str | None:
    text, unit = match["n"], match["unit"].rstrip(".") if match["unit"] == "in." else match["unit"]
    one, many = UNITS[unit]
    spaced = match["gap"] == " "
    singular = text == "1" or match["gap"] == "-" or left.last() in ("a", "an")
    if re.fullmatch("[2-9]0", text) and unit == "s" and not spaced:
        return None  # a decade
    said = f"{number(text)} {one if singular else many}"
    if match["per"]:
        said += f" per {_PER.get(match['per'], match['per'].lower())}"
    stopped = match["dot"] is not None or match["unit"] == "in."
    following = next_word(match)
    return said + "." if stopped and (not following or begins_sentence(following)) else said


def _degrees(match: re.Match[str], left: Left) -> str:
    scale = {"C": " celsius", "F": " fahrenheit", "K": " kelvin", None: ""}[match["scale"]]
    singular = match["n"] == "1" or (left.last() in ("a", "an") and not scale)
    return f"{number(match['n'])} degree{'' if singular else 's'}{scale}"


def _feet(match: re.Match[str], _: Left) -> str:
    said = f"{number(match['ft'])} {'foot' if match['in'] or match['ft'] == '1' else 'feet'}"
    return f"{said} {number(match['in'])}" if match["in"] else said


def _inches(match: re.Match[str], _: Left) -> str:
    several = next_word(match) in ("wide", "tall", "long", "deep", "thick", "x", "by")
    return f"{number(match['n'])} {'inches' if several else 'inch'}"


def _resolution(match: re.Match[str], _: Left) -> str:
    return f"{pairs(match[1])} by {pairs(match[2])}"


def _range(match: re.Match[str], _: Left) -> str:
    equation = "=" in match.string[match.end() :] and match["dash"].startswith(" ")
    text = match["n"]
    if text == match["next"] and not equation:
        return number(text)  # fifty fifty
    both_years = is_year(text) and is_year(match["next"])
    return f"{year(text) if both_years else number(text)} {'minus' if equation else 'to'}"


def _fraction_unit(match: re.Match[str], *, several: bool) -> str:
    return f" {UNITS[match['unit'].rstrip('.')][several]}" if match["unit"] else ""


def _fraction(match: re.Match[str], left: Left) -> str | None:
    top, bottom = match["top"], match["bottom"]
    mixed = match["whole"]
    if (top, bottom) == ("24", "7"):
        return "twenty four seven"
    if (top, bottom) == ("9", "11") and left.last() not in ("score", "scored"):
        return "nine eleven"
    if left.any_of(DATE_WORDS, 2) and 1 <= int(top) <= 12 and 1 <= int(bottom) <= 31 and not mixed:
        return date(int(top), int(bottom), None)
    small = len(top) <= 2 and len(bottom) <= 3 and 0 < int(top) < int(bottom)
    if small and int(bottom) in (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 32):
        said = fraction(int(top), int(bottom))
        if mixed:
            said = f"{number(mixed)} and {'a half' if (top, bottom) == ('1', '2') else said}"
        return said + _fraction_unit(match, several=mixed is not None)
    if small and int(bottom) in (10, 20, 100):
        said = f"{whole(top)} out of {whole(bottom)}"
    else:
        said = f"{whole(top)} {'over ' if '=' in match.string else ''}{whole(bottom)}"
    return f"{number(mixed)} {said}" if mixed else said


def _vulgar(match: re.Match[str], _: Left) -> str:
    top, bottom = VULGAR[match["f"]]
    said = fraction(top, bottom)
    if match["n"]:
        said = f"{number(match['n'])} and {'a half' if bottom == 2 else said}"
    return said + _fraction_unit(match, several=match["n"] is not None)


def _version(match: re.Match[str], _: Left) -> str:
    said = " point ".join(whole(part) for part in match["n"].split("."))
    return f"version {said}" if match["v"] else said


def _ordinal(match: re.Match[str], _: Left) -> str | None:
    plain = match[1].replace(",", "")
    return ordinal(int(plain)) if len(plain) <= 9 else None


def _attached(match: re.Match[str], left: Left) -> str | None:
    return None if left.any_of(CODE_NOUNS, 2) else _degrees(match, left)


def _large(match: re.Match[str], left: Left) -> str | None:
    if match["size"] in "MB" and (left.any_of(CODE_NOUNS, 2) or next_word(match)[:1].isupper()):
        return None
    return f"{number(match['n'])} {_LARGE[match['size']]}"


def _power(match: re.Match[str], _: Left) -> str:
    base = whole(match[1]) if match[1].isdigit() else match[1].lower()
    exponent = match[2]
    said = {"2": "squared", "3": "cubed"}.get(exponent)
    if said:
        return f"{base} {said}"
    minus = "minus " if exponent.startswith("-") else ""
    return f"{base} to the power of {minus}{whole(exponent.lstrip('-'))}"


def _european(match: re.Match[str], _: Left) -> str:
    amount = match["n"].replace(".", "").replace(",", ".")
    return number(amount) + _fraction_unit(match, several=True)


def _rating(match: re.Match[str], _: Left) -> str:
    return f"{number(match[1])} out of {whole(match[2])}"


def _product(match: re.Match[str], left: Left) -> str:
    product = "=" in match.string or "^" in match.string or left.any_of(_ASKING)
    return f"{number(match['n'])} {'times' if product else 'by'}"


def _scientific(match: re.Match[str], _: Left) -> str:
    minus = "minus " if match[2].startswith("-") else ""
    return f"{number(match[1])} times ten to the power of {minus}{whole(match[2].lstrip('+-'))}"


def _spaced(match: re.Match[str], _: Left) -> str:
    return cardinal(int(match[0].replace(" ", "")))


def _plain(match: re.Match[str], left: Left) -> str:
    """A number without a unit: a year, an identifier or a cardinal, as its neighbours suggest."""
    text = match[0]
    if not text.isdigit():
        return number(text)
    last = left.last()
    if last in ("call", "dial", "dialing", "calling") and len(text) == 3:
        return digits(text)
    dated = is_year(text) and last in YEAR_WORDS - {"to"}
    if left.any_of(DIGIT_NOUNS, 4) and len(text) >= 4 and not dated:
        return digits(text)
    name = left.words[-1] if left.words and left.words[-1].isupper() else ""
    if len(name) == 2 and len(text) == 5:
        return digits(text)  # a state and its postal code
    if len(name) > 1 and len(text) == 4 and not is_year(text):
        return pairs(text)  # a model number
    if (last in PAIR_NOUNS or (name and left.any_of(PAIR_NOUNS, 3))) and len(text) in (3, 4):
        return pairs(text)
    if is_year(text):
        following = next_word(match)
        counted = (
            (following.endswith("s") or following in _PLURAL)
            and following.islower()
            and following not in _NOT_PLURAL
        )
        return cardinal(int(text)) if counted and last not in YEAR_WORDS else year(text)
    if last in _DATING and len(text) == 4 and text.startswith("10"):
        return year(text)
    return whole(text)


_N = "(?P<n>" + NUMBER + NUMBER_END + ")"
RULES: tuple[Rule, ...] = (
    rule(rf"(?:(?P<n>\d+)\s?)?(?P<f>[{_VULGAR}])" + _FRACTION_UNIT, _vulgar),
    rule(r"(?P<ft>\d{1,2})['](?:\s?(?P<in>\d{1,2}(?:\.\d)?)(?:\"|'')?)?(?![\w'])", _feet),
    rule(r"(?P<ft>(?!))?(?P<n>\d+(?:\.\d+)?)\"(?=\s?(?:monitor|tv|screen|display|wide|tall|long|deep|thick|x|by)\b|-)",
         _inches,
         re.IGNORECASE),
    rule(r"(?P<n>\d{1,3}(?:\.\d{3})+,\d{1,2}(?!\d)|\d+,\d{1,2}(?![\d,]))" + _FRACTION_UNIT, _european),
    rule(
        r"(?:(?P<whole>\d+)\s)?(?P<top>\d{1,4})/(?P<bottom>\d{1,4})(?!\d|[/.]\d)" + _FRACTION_UNIT,
        _fraction,
    ),
    rule(r"(\d+\.\d+)/(\d+)(?![\w/]|\.\d)", _rating),
    rule(r"(\d+(?:\.\d+)?)[eE]([+-]?\d{1,3})(?!\w)", _scientific),
    rule(r"(?P<n>" + NUMBER + r")(?P<dash>\s[-–—−]\s?|[-–—])(?=\$?(?P<next>\d+)(?!\d))", _range),
    rule(_N + r"\s?(?:°\s?|º)(?P<scale>[CFK])?(?![A-Za-z])", _degrees),
    rule(_N + r"(?P<scale>[CF])(?![\w-])", _attached),
    rule(_N + r"\s?%(?:-)?", lambda match, _left: f"{number(match['n'])} percent"),
    rule(_N + r"(?P<gap>[\s-]?)" + _UNIT, _unit),
    rule(rf"({NUMBER})([kKMB])[-–](?=\d+(?:\.\d+)?\2\b)", lambda match, _left: f"{number(match[1])} to"),
    rule(_N + r"(?P<size>k|M|B|bn|mn|mm)(?![\w])", _large),
    rule(r"(\d{3,4})\s?[xX×]\s?(\d{3,4})(?![\w])", _resolution),
    rule(r"(480|720|1080|1440|2160)([pi])\b", lambda match, _left: f"{pairs(match[1])} {match[2]}"),
    rule(_N + r"\s?[xX×]\s?(?=\d)", _product),
    rule(_N + r"\s?[*](?=\s?\d)", lambda match, _left: f"{number(match['n'])} times"),
    rule(_N + r"[xX](?![\w])", lambda match, _left: f"{number(match['n'])} x"),
    rule(r"(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)(?!\w)", _ordinal, re.IGNORECASE),
    rule(r"(\d+|[A-Za-z])\^(-?\d{1,3})(?!\w)", _power),
    rule(r"\d{1,3}(?: \d{3}){2,4}(?![\d,.-]| \d)", _spaced),
)  # fmt: skip
PLAIN: tuple[Rule, ...] = (
    rule(NUMBER + NUMBER_END, _plain),
    rule(r"\d+", lambda match, _left: whole(match[0])),
)
VERSIONS: tuple[Rule, ...] = (
    rule(r"(?P<v>[vV]\.?\s?)?(?P<n>\d+(?:\.\d+){2,5})(?![\w])", _version),
    rule(r"(?P<v>v)(?P<n>\d+(?:\.\d+)?)(?!\w)", _version),
    rule(r"(?P<v>V)(?P<n>\d+\.\d+)(?!\w)", _version),
)
