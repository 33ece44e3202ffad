"""Single tokens of letters and digits: words, initialisms, mixed case, codes."""

import re

from realtime.text.lexicon import REGNAL, listed
from realtime.text.numbers import cardinal, decade, digits, is_year, number, ordinal, pairs, whole, year

_CAPS_WORDS = listed(
    """
    no to of in on at by up go do we he me my or as an am is be if so oh ah hi ha ow ugh the and not
    all you can for are but now new one two out get got has had her him his how its let may off old
    our own put say see she six ten too top try use was way who why yes yet any day big bad end far
    few god hot key law lot low man men mom dad net pay per red run set sir son sun tax tea war win
    won ask act add age ago aid aim air art bag bar bed bit box boy bus buy car cat cup cut dog dry
    due ear eat egg eye fan fat fee fit fix fly fun gas guy hat hit ice ill joy kid lay leg lie lip
    map mad met mix nor nut odd oil pan pop raw sad sea sit sky tip toy van wet zoo wow hey bye cry
    gym sync did fed tab alt ram rom lan wan gif pin sim zip rag ski spa via tag tap web esc pro max
    min mac non pre sub jan feb mar apr jun jul aug sep oct nov dec mon tue wed thu fri sat sun
    """
)
"""Words of two and three letters that stay words in capitals; others of that length are spelled."""
_SPELLED = listed(
    "asap ieee ucla usaf espn aarp aclu iata icao oecd isbn usps ncaa naacp nypd lapd eula eod iou rsvp"
)
"""Longer initialisms that are spelled although they could be read."""
_SPELLED_LOWER = listed(
    """
    ai api url usb faq ui ux usa ios iot id gpu cpu ip atm ceo cfo cto asap diy llm rsvp uk eu eta
    ssd tv pc
    """
)
"""Initialisms that people also write in lower case."""
_NOT_SPELLED = listed(
    """
    hmm hm mm mmm mhm shh sh psst pst brr nth tsk pfft zzz grr th nd rd st mr mrs dr ms jr sr vs nvm
    thx pls cwm crwth tsktsk
    """
)
_SAID = {
    "ok": "okay", "json": "jason", "jpeg": "jay peg", "jpg": "jay peg", "wifi": "wi-fi", "phd": "p h d",
    "saas": "sass",
    "gui": "gooey", "yaml": "yammel", "nginx": "engine x", "ios": "i o s", "etc": "et cetera", "vs": "versus",
    "mr": "mister", "mrs": "missus", "dr": "doctor", "thx": "thanks", "pls": "please", "mysql": "my s q l",
    "sqlite": "s q lite", "postgresql": "postgres q l", "llama": "llama", "vllm": "v l l m",
    "btw": "by the way",
    "ctrl": "control", "cmd": "command", "approx": "approximately", "dept": "department", "tts": "t t s",
    "kwh": "kilowatt hours", "mph": "miles per hour",
}  # fmt: skip
_SPELLED_LABELS = listed("ai io uk www eu js ru nz fm tv de fr au jp cn ch")
_ROMAN = re.compile(r"(?=[IVX])X{0,3}(?:IX|IV|V?I{0,3})")
_ROMAN_NOUNS = listed(
    """
    war part chapter volume act section book level phase type class title article stage grade bowl
    appendix figure table tier unit scene mark
    """
)
_HUMP = re.compile(r"[A-Z]{2,}(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_PARTS = re.compile(r"[A-Za-z]+|\d+")
_INITIALISM = re.compile(r"([A-Z]{2,})('?s)?")


def spell(text: str) -> str:
    """Letter by letter: PDF -> p d f."""
    return " ".join(text.lower())


def readable(text: str) -> bool:
    """``text`` has a vowel, so it can be read as a word."""
    return any(c in "aeiouyAEIOUY" for c in text)


def roman(text: str) -> int:
    """The value of a Roman numeral up to 39, 0 if it is none."""
    if not _ROMAN.fullmatch(text):
        return 0
    values = [{"I": 1, "V": 5, "X": 10}[c] for c in text]
    return sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))


def capitals(text: str, *, shouted: bool = False) -> str:
    """A word all in capitals: spelled if it looks like an initialism, read if it is a word.

    ``shouted``: its neighbour is a word in capitals, too.
    """
    low = text.lower()
    if low in _SAID:
        return _SAID[low]
    if low in _SPELLED or (not readable(text) and low not in _NOT_SPELLED):
        return spell(text)
    if len(text) >= 4 or low in _CAPS_WORDS or (shouted and low in ("it", "us")):
        return low
    return spell(text)


def alphabetic(text: str, before: str = "", *, end: bool = False) -> str:
    """Any word of letters and apostrophes. ``before``: the token before it; ``end``: punctuation follows."""
    initials = _INITIALISM.fullmatch(text)
    if initials:
        return _initialism(initials, before)
    numeral = before.lower() in _ROMAN_NOUNS or (end and before.lower() in REGNAL)
    if numeral and len(text) == 1 and roman(text):
        return _numeral(roman(text), before)
    low = text.lower()
    if low in _SAID:
        return _SAID[low]
    base = low.removesuffix("'s")
    if base in _SPELLED_LOWER and base != "id" and not text.istitle():
        return spell(base) + low[len(base) :]
    if low.isalpha() and 2 <= len(low) <= 5 and not readable(low) and low not in _NOT_SPELLED:
        return spell(low)
    if text.isalpha() and not (text.islower() or text.istitle()):
        return _humps(text)
    return low


def _initialism(match: re.Match[str], before: str) -> str:
    text, suffix = match[1], match[2] or ""
    value = roman(text)
    if value and (before[:1].isupper() or before.lower() in _ROMAN_NOUNS) and not before.isupper():
        return _numeral(value, before) + suffix
    shouted = before.isupper() and before.lower() in _CAPS_WORDS
    said = capitals(text, shouted=shouted)
    if not suffix:
        return said
    return said + ("'s" if " " in said or suffix == "'s" else "s")


def _numeral(value: int, before: str) -> str:
    return f"the {ordinal(value)}" if before.lower() in REGNAL else cardinal(value)


def _humps(text: str) -> str:
    """OpenAI -> open a i; YouTube -> youtube; getName -> get name."""
    said: list[str] = []
    glue = False
    humps = _HUMP.findall(text)
    if text[0].islower() and len(humps[0]) > 1:  # a name from a program
        return " ".join(
            capitals(hump) if len(hump) > 1 and hump.isupper() else hump.lower() for hump in humps
        )
    for part in humps:
        if len(part) > 1 and part.isupper():
            said.append(capitals(part))
            glue = False
        elif glue:
            said[-1] += part.lower()
        else:
            said.append(part.lower())
            glue = True
    return " ".join(said)


def identifier(text: str) -> str:
    """A part of an address or a name in code: letters only or digits only."""
    if text.isdigit():
        if len(text) > 4 or text[0] == "0":
            return digits(text)
        return year(text) if is_year(text) else pairs(text) if len(text) == 4 else whole(text)
    if text.lower() in _SPELLED_LABELS:
        return spell(text)
    if len(text) == 2 and text.lower() in ("co", "ly", "no"):
        return text.lower()
    return " ".join(alphabetic(part) for part in _HUMP.findall(text))


def code(text: str) -> str:
    """Letters and digits mixed: W3C -> w three c, COVID19 -> covid nineteen, K7R2M -> k seven r two m."""
    groups = _PARTS.findall(text)
    long = len(groups) > 3 or (len(groups) > 1 and any(g[0] == "0" and len(g) > 1 for g in groups))
    said = []
    for i, group in enumerate(groups):
        if group.isdigit():
            said.append(_code_digits(group, alone=not long, first=i == 0))
        elif long or len(group) < 3:
            said.append(spell(group))
        else:
            said.append(alphabetic(group))
    return " ".join(said)


def _code_digits(group: str, *, alone: bool, first: bool) -> str:
    if not alone or len(group) > 4:
        return digits(group)
    if first or len(group) <= 2:
        return whole(group)
    return year(group) if is_year(group) else pairs(group)


def part(text: str, before: str = "") -> str:
    """One part of a hyphenated compound."""
    if text.isdigit():
        return year(text) if is_year(text) else whole(text) if len(text) < 5 else digits(text)
    if re.fullmatch(r"\d+\.\d+", text):
        return number(text)
    if re.fullmatch(r"(?:1[1-9]|20)\d0s|[2-9]0s", text):
        return decade(text[:-1])
    if any(c.isdigit() for c in text):
        return code(text)
    if len(text) == 1:
        return text.lower()
    return alphabetic(text, before)
