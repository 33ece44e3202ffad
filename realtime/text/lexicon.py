"""Words that English text abbreviates, and how each is said. Data, and the questions asked of it."""

import re


def listed(text: str) -> frozenset[str]:
    """The words of a list that is written as running text."""
    return frozenset(text.split())


MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november",
    "december",
)  # fmt: skip
MONTHS = (
    {name[:3]: name for name in MONTH_NAMES} | {name: name for name in MONTH_NAMES} | {"sept": "september"}
)
MONTH = (
    r"(?P<month>(?:January|February|April|June|July|August|September|October|November|December|"
    r"january|february|april|june|july|august|september|october|november|december|March|May|"
    r"JANUARY|FEBRUARY|MARCH|APRIL|MAY|JUNE|JULY|AUGUST|SEPTEMBER|OCTOBER|NOVEMBER|DECEMBER)\b|"
    r"(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
)
"""A month, with its capital where the word means something else too."""
_MONTH = re.compile(MONTH)

WEEKDAYS = {
    "mon": "monday", "tue": "tuesday", "tues": "tuesday", "wed": "wednesday", "thu": "thursday",
    "thur": "thursday", "thurs": "thursday", "fri": "friday", "sat": "saturday", "sun": "sunday",
}  # fmt: skip

ABBREVIATIONS = {
    "mr": "mister", "mrs": "missus", "ms": "miss", "dr": "doctor", "prof": "professor", "rev": "reverend",
    "hon": "honorable", "gen": "general", "sen": "senator", "gov": "governor", "sgt": "sergeant",
    "capt": "captain", "lt": "lieutenant", "cmdr": "commander", "messrs": "messieurs",
    "e.g": "for example", "eg": "for example", "i.e": "that is", "ie": "that is", "vs": "versus",
    "col": "colonel", "maj": "major", "adm": "admiral", "rep": "representative", "temp": "temperature",
    "misc": "miscellaneous", "appt": "appointment", "cf": "compare", "approx": "approximately",
    "incl": "including",
    "excl": "excluding", "viz": "namely",
    "mt": "mount", "esp": "especially", "resp": "respectively", "n.b": "note", "w.r.t": "with respect to",
    "a.k.a": "also known as", "r.s.v.p": "r s v p", "p.s": "p s",
}  # fmt: skip
"""With a full stop, never the end of a sentence."""
OPEN_ABBREVIATIONS = {
    "etc": "et cetera", "inc": "incorporated", "ltd": "limited", "co": "company", "corp": "corporation",
    "jr": "junior", "sr": "senior", "ave": "avenue", "blvd": "boulevard", "rd": "road", "ln": "lane",
    "dept": "department", "esq": "esquire", "bros": "brothers", "assn": "association",
    "univ": "university", "intl": "international", "govt": "government", "mgmt": "management",
    "al": "al", "st": "street", "ft": "fort", "sq": "square", "pl": "place", "ct": "court", "ph.d": "p h d",
}  # fmt: skip
"""With a full stop; may end a sentence: what follows decides."""
BARE_ABBREVIATIONS = {
    "mr": "mister", "mrs": "missus", "dr": "doctor", "prof": "professor", "vs": "versus", "etc": "et cetera",
    "ms": "miss", "jr": "junior", "sr": "senior", "approx": "approximately", "dept": "department",
    "eg": "for example", "blvd": "boulevard", "ave": "avenue", "w/o": "without", "w/": "with",
    "b/c": "because", "pls": "please",
    "ok": "okay", "n/a": "not applicable", "tbd": "t b d", "govt": "government", "st": "saint",
    "aka": "also known as",
}  # fmt: skip
"""Said so without a full stop, too."""
NUMBERED = {
    "No": "number", "Nos": "numbers", "Vol": "volume", "vol": "volume", "p": "page", "pp": "pages",
    "Ch": "chapter", "ch": "chapter", "Fig": "figure", "fig": "figure", "Figs": "figures", "figs": "figures",
    "Sec": "section", "Ext": "extension", "ext": "extension", "Eq": "equation", "eq": "equation",
    "Apt": "apartment", "apt": "apartment", "Ste": "suite", "Hwy": "highway", "Tel": "telephone",
    "Rm": "room", "Rs": "rupees", "pop": "population", "Pt": "part",
}  # fmt: skip
"""With a full stop and before a number."""
UNIT_ABBREVIATIONS = listed(
    "ft in oz lb lbs mi km min mins hr hrs sec secs yd yds kg cm mm ml tsp tbsp gal qt pt a.m p.m"
)
"""Units that people write with a full stop after a number."""

STARTERS = listed(
    """
    a also although an and another are as at because before both but by can could did do does each
    even every finally first for from good had has have he he's her here his how however i i'd i'll
    i'm i've if in is it it's its just let let's many maybe more most my next no not now of on once
    one or our please she she's should since so some that that's the their then there there's these
    they they're this those though to unfortunately we we'll we're we've well were what what's when
    where which while who why will with would yes yet you you'll you're your after all any
    """
)
"""Words that, capitalised after an abbreviation, begin a new sentence."""
LETTER_NOUNS = listed(
    """
    plan vitamin option grade class type group team gate exhibit appendix section part hepatitis
    letter platform terminal building block wing unit room level tier phase series model version
    answer choice point drive size category
    """
)
"""Before a single capital that is a name of its own, not an initial."""
REGNAL = listed(
    """
    henry elizabeth louis george edward charles william james richard napoleon philip philippe paul
    benedict pius francis nicholas peter catherine ivan alexander frederick wilhelm victoria mary
    leo gregory innocent clement urban john harald haakon gustav olav carl xvi christian ferdinand
    alfonso felipe ramses ramesses cleopatra ptolemy darius xerxes juan umberto harold
    """
)
DIGIT_NOUNS = listed(
    """
    ending code pin zip digits extension id account confirmation order tracking reference policy
    case passcode serial sku postcode number phone card passport routing invoice ticket
    """
)
"""After one of these a long number is an identifier: digit by digit."""
PAIR_NOUNS = listed("room flight suite apartment route highway interstate bus hwy apt boeing airbus xbox")
CODE_NOUNS = PAIR_NOUNS | listed(
    "gate seat unit flat row platform building block section class exhibit no number"
)
"""After one of these, digits with a letter are a place or a name, not a quantity."""
DATE_WORDS = listed(
    "on by until from since before after due monday tuesday wednesday thursday friday saturday sunday"
)
"""Before two small numbers with a slash between them, which then are a date."""
YEAR_WORDS = listed(
    """
    in since by from of until till year after before during circa summer spring fall autumn winter
    early late mid through around between and to for
    """
)

_DOTTED = re.compile(r"(?:[A-Za-z]\.){2,}")
_AMOUNT = re.compile(r"[\d.,:]*\d([a-z.]+)")


def is_month(core: str) -> bool:
    """`core` is a month's name or its abbreviation."""
    return _MONTH.fullmatch(core) is not None


def magnitude(core: str) -> bool:
    """`core` is a word that multiplies the number before it."""
    return core in ("hundred", "thousand", "million", "billion", "trillion")


def is_weekday(core: str) -> bool:
    """`core` is an abbreviated weekday with its capital."""
    return core[:1].isupper() and core.rstrip(".,").lower() in WEEKDAYS


def digits_only(core: str) -> bool:
    """`core` is an abbreviation before a number, and nothing special before anything else."""
    return core[:-1] in NUMBERED and core[-1:] == "."


def may_end_sentence(core: str, before: str) -> bool:
    """`core` ends in a full stop that belongs to an abbreviation and may end a sentence as well.

    ``before`` is the run before it: a unit is one only after a number.
    """
    bare = core[:-1].lower()
    if bare in ABBREVIATIONS:
        return False
    if bare in OPEN_ABBREVIATIONS or core == "v." or core[:-1] in NUMBERED or _DOTTED.fullmatch(core):
        return True
    if core[:1].isupper() and (is_month(core) or is_weekday(core)):
        return True
    amount = _AMOUNT.fullmatch(bare)
    unit = amount[1] if amount else bare if before[-1:].isdigit() else ""
    return unit in UNIT_ABBREVIATIONS


def begins_sentence(word: str) -> bool:
    """`word`, found after an abbreviation, begins a new sentence."""
    return word[:1].isupper() and word.lower().rstrip(".,!?;:\"')") in STARTERS
