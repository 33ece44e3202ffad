"""Telephone and card numbers and other digit groups: digit by digit, with a pause between groups."""

import re

from realtime.text.numbers import digits, whole
from realtime.text.rules import Left, Rule, rule

_GROUP = re.compile(r"\d+")


def grouped(text: str) -> str:
    """Each group of digits by its digits; groups are set off by commas."""
    return ", ".join(digits(group) for group in _GROUP.findall(text))


def _international(match: re.Match[str], _: Left) -> str | None:
    count = sum(c.isdigit() for c in match[0])
    return f"plus {grouped(match[0])}" if 8 <= count <= 15 else None


def _national(match: re.Match[str], _: Left) -> str:
    groups = _GROUP.findall(match[0])
    if groups[0] == "1" and groups[1] in ("800", "888", "900"):
        said = f"{digits(groups[1][0])} hundred" if groups[1].endswith("00") else digits(groups[1])
        return ", ".join([f"one {said}", *(digits(group) for group in groups[2:])])
    return grouped(match[0])


def _chain(match: re.Match[str], _: Left) -> str:
    groups = _GROUP.findall(match[0])
    if all(len(group) == 1 for group in groups):
        return digits(match[0])
    return ", ".join(whole(group) for group in groups)


def _address(match: re.Match[str], _: Left) -> str:
    return " dot ".join(digits(group) for group in _GROUP.findall(match[0]))


SIGN_FIRST: tuple[Rule, ...] = (
    rule(r"\+\d{1,3}[ .-]?(?:\(\d{1,4}\)|\d{1,4})(?:[ .-]?\d{2,4}){1,5}(?![\w])", _international),
    rule(r"(?:1[-. ])?(?:\(\d{3}\)[ -]?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![\w-])", _national),
)
RULES: tuple[Rule, ...] = (
    rule(
        r"\d{3}[-.]\d{4}(?![\w-]|\.\d)", lambda match, _left: grouped(match[0]) if "-" in match[0] else None
    ),
    rule(r"0\d{1,4}(?:[ -]\d{2,4}){1,4}(?![\w-])", lambda match, _left: grouped(match[0])),
    rule(r"\d{4}(?:[ -]\d{4}){2,3}(?![\w-])", lambda match, _left: grouped(match[0])),
    rule(r"\d{3}-\d{2}-\d{4}(?![\w-])", lambda match, _left: grouped(match[0])),
    rule(
        r"1-8\d\d(?=-[A-Z])",
        lambda match, _left: f"one {whole(match[0][2:])}" if match[0].endswith("00") else None,
    ),
    rule(r"\d{1,4}(?:-\d{1,4}){2,}(?![\w-])", _chain),
    rule(r"\d{1,3}(?:\.\d{1,3}){3}(?![\w.])", _address),
)
