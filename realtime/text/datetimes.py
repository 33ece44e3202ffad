"""Dates, times of day, decades and durations."""

import re

from realtime.text.lexicon import MONTH, MONTH_NAMES, MONTHS, WEEKDAYS, listed
from realtime.text.numbers import cardinal, decade, is_year, ordinal, two_digits, whole, year
from realtime.text.rules import Left, Rule, next_word, rule, stop_if_sentence_ends

_HALF = r"(?:\s?(?P<ap{0}>[AaPp])(?:\.\s?[Mm]\.|\.?[Mm]\b))"
_CLOCK = r"(?P<h{0}>[01]?\d|2[0-4]):(?P<m{0}>[0-5]\d)(?::(?P<s{0}>[0-5]\d))?"
_DAY = r"(?P<{0}>0?[1-9]|[12]\d|3[01])"
_ORD = r"(?:st|nd|rd|th)?"
_YEAR = r"(?:,?\s(?P<year>[12]\d{3})(?![\w%]|[.,]\d|\s?(?:am|pm)))?"
_FOLLOWS_TIME = listed(
    """
    monday tuesday wednesday thursday friday saturday sunday est edt cst cdt mst mdt pst pdt gmt utc
    cet cest bst eastern pacific central mountain
    """
) | set(MONTHS) | set(WEEKDAYS)  # fmt: skip


def clock(hour: str, minute: str, second: str | None, half: str | None, *, bare_hour: bool = False) -> str:
    """A time of day: 7:30 -> seven thirty, 7:00 -> seven o'clock, 7:05 pm -> seven oh five p m."""
    said = "zero" if int(hour) == 0 else cardinal(int(hour))
    if minute != "00":
        said += " " + two_digits(minute)
    elif second is None and half is None and not bare_hour:
        if int(hour) in (0, 24):
            return "midnight"
        said += " o'clock" if int(hour) <= 12 else " hundred"
    if second is not None and (minute, second) != ("00", "00"):
        said += ("" if minute != "00" else " zero") + " " + two_digits(second)
    return f"{said} {half.lower()} m" if half else said


def _stop(match: re.Match[str], said: str) -> str:
    following = next_word(match)
    if not match[0].endswith(".") or not following[:1].isupper():
        return said
    return said if following.lower().rstrip(".,;:!?") in _FOLLOWS_TIME else said + "."


def _time(match: re.Match[str], left: Left) -> str:
    ranged = match["ap1"] is not None and left.last() == "to"
    said = clock(match["h1"], match["m1"], match["s1"], match["ap1"], bare_hour=ranged)
    return _stop(match, said)


def _hour(match: re.Match[str], _: Left) -> str | None:
    if not 1 <= int(match["h"]) <= 12:
        return None
    return _stop(match, f"{cardinal(int(match['h']))} {match['ap1'].lower()} m")


def _time_range(match: re.Match[str], _: Left) -> str | None:
    if not (match["m1"] or match["m2"] or match["ap2"]) or int(match["h1"]) > 24 or int(match["h2"]) > 24:
        return None
    ended = match["ap2"] is not None
    first = clock(match["h1"], match["m1"] or "00", None, match["ap1"], bare_hour=ended)
    second = clock(match["h2"], match["m2"] or "00", None, match["ap2"], bare_hour=ended)
    return _stop(match, f"{first} to {second}")


def date(month: int, day: int, said_year: str | None) -> str:
    said = f"{MONTH_NAMES[month - 1]} {ordinal(day)}"
    return f"{said}, {year(said_year)}" if said_year else said


def _full_year(text: str) -> str:
    return text if len(text) == 4 else ("19" if int(text) > 50 else "20") + text


def _iso(match: re.Match[str], _: Left) -> str | None:
    month, day = int(match["mo"]), int(match["d"])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    said = date(month, day, match["y"])
    if match["h1"]:
        said += f", {clock(match['h1'], match['m1'], None, None)}"
    return said


def _slashed(match: re.Match[str], _: Left) -> str | None:
    first, second = int(match["a"]), int(match["b"])
    month, day = (second, first) if first > 12 or match["sep"] == "." else (first, second)
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    return date(month, day, _full_year(match["y"]))


def _month(match: re.Match[str]) -> str:
    return MONTHS[match["month"].lower().rstrip(".")]


def _month_day(match: re.Match[str], _: Left) -> str:
    said = f"{_month(match)} {ordinal(int(match['day']))}"
    if match["until"]:
        said += f" to {ordinal(int(match['until']))}"
    return f"{said}, {year(match['year'])}" if match["year"] else said


def _month_year(match: re.Match[str], _: Left) -> str:
    return f"{_month(match)} {year(match['y'])}"


def _day_month(match: re.Match[str], left: Left) -> str:
    article = "" if left.last() == "the" else "the "
    said = f"{article}{ordinal(int(match['day']))} of {_month(match)}"
    return f"{said}, {year(match['year'])}" if match["year"] else said


def _alone(match: re.Match[str], _: Left) -> str | None:
    name = match["month"].lower().rstrip(".")
    if name in MONTH_NAMES or (name in ("jan", "mar") and not match[0].endswith(".")):
        return None  # a plain word; Jan is a name, too
    return stop_if_sentence_ends(match, MONTHS[name])


def _weekday(match: re.Match[str], _: Left) -> str:
    said = WEEKDAYS[match[1].lower()]
    return said + "," if "," in match[0] else stop_if_sentence_ends(match, said)


def _span(match: re.Match[str], _: Left) -> str | None:
    for names in (WEEKDAYS, MONTHS):
        first, second = (_full_name(match[i].lower(), names) for i in (1, 2))
        if first and second:
            return f"{first} to {second}"
    return None


def _full_name(text: str, names: dict[str, str]) -> str | None:
    return names.get(text) or (text if text in names.values() else None)


def _year_span(match: re.Match[str], _: Left) -> str | None:
    first, second = match[1], match[2]
    if not is_year(first) or not (is_year(second) or len(second) == 2):
        return None
    return f"{year(first)} to {year(second) if len(second) == 4 else two_digits(second)}"


def _duration(match: re.Match[str], _: Left) -> str:
    said = []
    for part, name in (("h", "hour"), ("m", "minute"), ("s", "second")):
        if match[part]:
            said.append(f"{whole(match[part])} {name}{'' if int(match[part]) == 1 else 's'}")
    return " ".join(said)


DECADE = rule(r"'?((?:1[1-9]|20)\d0|[2-9]0)'?s\b", lambda match, _left: decade(match[1]))
"""1990s, '90s."""
RULES: tuple[Rule, ...] = (
    rule(r"([A-Z])[-–]([A-Z])(?![\w-])", lambda match, _left: f"{match[1]} to {match[2]}".lower()),
    rule(r"([A-Z][a-z]{2,8})\.?\s?[-–—]\s?([A-Z][a-z]{2,8})\b", _span),
    rule(
        r"(?P<y>[12]\d{3})-(?P<mo>\d\d)-(?P<d>\d\d)(?:[T ]" + _CLOCK.format(1) + r"(?:\.\d+)?Z?)?(?![\w-])",
        _iso,
    ),
    rule(r"(?P<a>\d{1,2})(?P<sep>[/.-])(?P<b>\d{1,2})(?P=sep)(?P<y>\d{4}|\d\d)(?![\w/-]|\.\d)", _slashed),
    rule(
        r"(?P<h1>\d{1,2})(?::(?P<m1>[0-5]\d))?" + _HALF.format(1) + r"?\s?[-–—]\s?"
        r"(?P<h2>\d{1,2})(?::(?P<m2>[0-5]\d))?(?![\d:])" + _HALF.format(2) + "?",
        _time_range,
    ),
    rule(_CLOCK.format(1) + r"(?![\d:])" + _HALF.format(1) + "?", _time),
    rule(r"(?P<h1>\d{1,2})\.(?P<m1>[0-5]\d)(?P<s1>(?!))?" + _HALF.format(1), _time),
    rule(r"(\d{1,4}):(\d{1,4})(?![\d:])", lambda match, _left: f"{whole(match[1])} to {whole(match[2])}"),
    rule(r"(?P<h>\d{1,2})" + _HALF.format(1), _hour),
    rule(MONTH + r"\s" + _DAY.format("day") + _ORD + r"(?:\s?[-–—]\s?" + _DAY.format("until") + _ORD + r")?"
         r"(?![\w:%]|[.,]\d|\s?[ap]\.?m\b)" + _YEAR, _month_day),
    rule(MONTH + r",?\s(?P<y>(?:1[1-9]|20)\d\d)(?![\w%]|[.,]\d)", _month_year),
    rule(_DAY.format("day") + _ORD + r"\s" + MONTH + _YEAR + r"(?![\w])", _day_month),
    rule(MONTH + r"(?!\w)", _alone),
    rule(r"(Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b(?:\.,?|,)?(?=\s(?:" + MONTH + r"|\d))", _weekday),
    rule(r"(Mon|Tues?|Wed|Thu(?:rs?)?|Fri)\.", _weekday),
    rule(r"([12]\d{3})\s?[-–—]\s?(\d{4}|\d\d)(?![\w-]|[.,]\d)", _year_span),
    DECADE,
    rule(
        r"(?P<h>\d{1,3})\s?h(?:rs?)?\s?(?P<m>\d{1,2})\s?m(?:ins?)?\b(?:\s?(?P<s>\d{1,2})\s?s\b)?", _duration
    ),
    rule(r"(?P<h>(?!))?(?P<m>\d{1,3})m\s?(?P<s>\d{1,2})s\b", _duration),
)  # fmt: skip
