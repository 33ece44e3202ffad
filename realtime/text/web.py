"""E-mail and web addresses, file names, handles and hashtags."""

import re

from realtime.text.numbers import digits
from realtime.text.rules import Left, Rule, rule
from realtime.text.tokens import identifier

_TLDS = (
    "com|org|net|io|ai|co|dev|app|edu|gov|mil|info|biz|tv|uk|de|fr|eu|ca|au|jp|cn|ru|ch|nl|es|nyc|xyz|online|"
    "shop|store|site|tech|cloud|blog|news|ly|fm|gg|gl|link|page|wiki|live|health|agency|int|nz|br|mx|pl|se|dk|fi"
)
_FILES = (
    "py|js|ts|jsx|tsx|json|yaml|yml|txt|md|csv|pdf|png|jpg|jpeg|gif|svg|exe|sh|html?|css|cpp|rs|go|java|xml|zip|toml|"
    "ini|log|docx?|xlsx?|pptx?|mp3|mp4|wav|env|sql|lock|cfg|conf|tar|gz"
)
MAX_SPOKEN_PATH = 40
"""A longer path is not read: nobody could follow it. The host still is."""
_MARKS = {
    "/": "slash", ".": "dot", "-": "dash", "_": "underscore", "?": "question mark", "=": "equals", "&": "and",
    "#": "hash", "%": "percent", ":": "colon", "@": "at", "+": "plus", "~": "tilde", ",": "comma",
}  # fmt: skip
_IP = re.compile(r"\d+(?:\.\d+){3}(?::\d+)?$")
_PART = re.compile(r"[A-Za-z]+|\d+|.")
_TRAILING = re.compile(r"[.,;:!?'\"*_~`)\]}>]+$")


def spelled_out(text: str, *, by_digit: bool = False) -> str:
    """Every part of an address: words as words, signs by their names."""
    said = []
    for part in _PART.findall(text):
        if by_digit and part.isdigit():
            said.append(digits(part))
        elif part.isalnum():
            said.append(identifier(part))
        elif part in _MARKS:
            said.append(_MARKS[part])
    return " ".join(said)


def trimmed(text: str) -> int:
    """How much of a matched address belongs to it: punctuation and brackets at its end do not."""
    found = _TRAILING.search(text)
    if not found:
        return len(text)
    end = found.start()
    while end < len(text) and text[end] == ")" and text[: end + 1].count("(") >= text[: end + 1].count(")"):
        end += 1
    return end


def address(text: str) -> tuple[str, bool]:
    """What is said for a web address, and whether a path was left out."""
    bare = re.sub(r"^[a-z]+://", "", text, flags=re.IGNORECASE).rstrip("/")
    host, slash, rest = bare.partition("/")
    if not slash:
        found = re.search(r"[?#]", bare)
        host, rest = (bare[: found.start()], bare[found.start() :]) if found else (bare, "")
    said = spelled_out(host, by_digit=_IP.match(host) is not None)
    if not rest:
        return said, False
    if len(rest) > MAX_SPOKEN_PATH:
        return said, True
    return f"{said} {'slash ' if slash else ''}{spelled_out(rest)}", False


def _email(match: re.Match[str], _: Left) -> str:
    return spelled_out(match[0].removeprefix("mailto:"))


def _file(match: re.Match[str], _: Left) -> str:
    return spelled_out(match[0])


def _hashtag(match: re.Match[str], _: Left) -> str:
    return f"hashtag {identifier(match[1])}"


def _handle(match: re.Match[str], _: Left) -> str:
    return f"at {spelled_out(match[1])}"


URL = re.compile(
    r"(?:https?|ftp|wss?)://[^\s<>\"\x04]+|www\.[^\s<>\"\x04]+|"
    rf"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,62}})\.){{1,6}}(?:{_TLDS})(?![A-Za-z0-9@-]|\.[A-Za-z0-9])(?:[/?#:][^\s<>\"\x04]*)?"
)
"""A web address; `trimmed` says where it ends."""
RULES: tuple[Rule, ...] = (
    rule(
        r"(?:mailto:)?[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,6}(?<![-])",
        _email,
    ),
    rule(rf"[A-Za-z0-9_-]{{1,64}}(?:\.[A-Za-z0-9_-]{{1,64}}){{0,4}}\.(?:{_FILES})(?![\w-]|\.\w)", _file),
    rule(r"[A-Za-z0-9-]{1,40}\.js\b", _file),
)
TAGS: tuple[Rule, ...] = (
    rule(r"#(?=[A-Z]{1,3}-?\d)", lambda _match, _left: "number"),
    rule(r"#([A-Za-z]\w{0,63})", _hashtag),
    rule(r"@([A-Za-z_][\w.-]{0,63}\w|[A-Za-z])", _handle),
)
