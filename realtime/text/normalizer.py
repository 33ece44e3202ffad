"""Pieces of text to the words that are said for them.

A piece is read from left to right; at each place the first rule that holds says its match. Every spoken
word keeps the range of the text it was made from. What cannot be said is left out with a warning.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from engine.contract import SpokenWord
from realtime.text import datetimes, measures, money, phones, web, words
from realtime.text.folding import COMMA_LINE, DROPPED, EMOJI, END, GREEK, LAYOUT, STOP_LINE, VULGAR
from realtime.text.lexicon import ABBREVIATIONS, BARE_ABBREVIATIONS, NUMBERED, OPEN_ABBREVIATIONS
from realtime.text.numbers import cardinal
from realtime.text.rules import Left, Rule
from realtime.text.segmenter import Piece, Segmenter

_FAST = re.compile(r"[a-z]{2,}(?:'[a-z]+)*(?=[\s,;!?\x04]|[.:][\s\x04])")
_LINE_MARK = re.compile(
    r"#{1,6}(?=\s)|>+(?=\s|$)|(?:[-*_=]\s?){3,}(?=[\s\x04]|$)|[-*+•–](?=\s)|(?:```|~~~)[\w+-]*(?=\s)"
    r"|\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?)?\|?(?=\s|$)"
)
_LIST_NUMBER = re.compile(r"(?:(\d{1,3})[.)]|\((\d{1,2})\))(?=\s)|\(?([a-zA-Z])\)(?=\s)")
_SILENT = re.compile(
    r"\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\)|\]\[[^\]\s]*\]|!\[|\[\^?\d{1,3}\]|\[[ xX]\](?=\s)"
    r"|</?[A-Za-z][^<>]{0,400}>|<!--.{0,400}?-->|&(?:nbsp|quot|apos|zwj|shy|#\d{1,5});|\\(?=[^\w\s])"
)
_SPELT = {
    "&amp;": "and", "&lt;": "less than", "&gt;": "greater than", ">=": "greater than or equal to",
    "<=": "less than or equal to", "!=": "not equal to", "==": "equals",
}  # fmt: skip
"""Signs of several characters."""
_SEVERAL = re.compile("(?:" + "|".join(_SPELT) + ")(?![=>])")
_ARROW = re.compile(r"<?[-=]+>|<[-=]+")
_EMOTICON = re.compile(r"[:;=]['-]?[)(DPpOo|\]\[](?![\w])|<3(?!\d)|[xX]D(?!\w)")
_PUNCTUATION = re.compile(r"[.,;:!?]+")
_SENTENCE_AFTER = re.compile(r"[\s\"'*_()]*(?:(?!I\b)[A-Z]|[\x04\n]|$)")
_RATE = re.compile(r"(?<=[a-z]s)/(year|month|week|day|hour|minute|second|night|person|user|yr|mo|hr|min|s)\b")
_SUFFIX = re.compile(r"'(?:s|t|re|ve|ll|d|m)\b")
_UNSAID = re.compile(r"[^a-z'.,?!;:-]")
_CHUNK = re.compile(r".{1,40}")  # nobody says a longer word; a model would lose itself in it
_RUN = re.compile(r"([a-z])\1\1+")
"""Drawn-out letters ("aaaaah"): nothing the model was taught to read."""
_LETTER = re.compile(r"[a-z]")
_NAMES = {
    "&": "and", "=": "equals", "@": "at", "%": "percent", "×": "times", "÷": "divided by", "≈": "about",
    "≠": "not equal to", "≤": "less than or equal to", "≥": "greater than or equal to", "±": "plus or minus",
    "√": "square root of", "∞": "infinity", "§": "section", "²": "squared", "³": "cubed", "°": "degrees",
    **money.NAMES, **{letter: name for letter, name in GREEK.items() if letter != "μ"}, "μ": "mu",
}  # fmt: skip
_BEFORE_NUMBER = {
    "-": "minus", "−": "minus", "+": "plus", "~": "about", "≈": "about", "<": "less than", ">": "more than",
    "≤": "at most", "≥": "at least", "±": "plus or minus", "#": "number", "*": "times",
    "^": "to the power of",
}  # fmt: skip
_PAUSES = frozenset("(—–|•→")
_STRENGTH = {"": 0, ",": 1, "-": 1, ";": 2, ":": 3, ".": 4, "!": 5, "?": 6}
_LEFT_WORDS = 5

_LETTER_RULES: tuple[Rule, ...] = (
    *web.RULES,
    *datetimes.RULES,
    *money.SIGN_FIRST,
    *money.CODE_FIRST,
    *measures.VERSIONS,
    *words.RULES,
)
_DIGIT_RULES: tuple[Rule, ...] = (
    *web.RULES,
    *datetimes.RULES,
    *phones.SIGN_FIRST,
    *phones.RULES,
    *money.NUMBER_FIRST,
    *measures.VERSIONS,
    *measures.RULES,
    words.CODE,
    *measures.PLAIN,
)
_SIGN_RULES: tuple[Rule, ...] = (*web.TAGS, *phones.SIGN_FIRST, *money.SIGN_FIRST, datetimes.DECADE)
_SIGNS = frozenset("#@+($€£¥₹₩₽₺₪₫฿₿-−'")


@dataclass(frozen=True, slots=True)
class ReadWord:
    """A spoken word, and whether it is the last of its item: only there can a segment end."""

    word: SpokenWord
    last: bool = True

    @property
    def mark(self) -> str:
        """Its punctuation, or ""."""
        end = self.word.spoken[-1]
        return end if self.last and end in _STRENGTH else ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a piece says. ``stop``: a sentence ends before the first word, and its last word is gone already.

    ``dropped`` holds the kinds of what was left out, each once, as a person would say it.
    """

    words: tuple[ReadWord, ...]
    dropped: tuple[str, ...] = ()
    stop: bool = False


@dataclass(slots=True)
class _Sentence:
    """The words of the piece so far."""

    piece: Piece
    spoken: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    last: list[bool] = field(default_factory=list)
    dropped: dict[str, None] = field(default_factory=dict)
    stop: bool = False

    def add(self, said: str, start: int, end: int) -> None:
        """Add the words of one item that stands at folded ``start:end``."""
        clean = (part for word in said.split() for part in _CHUNK.findall(_UNSAID.sub("", word)))
        kept = [_RUN.sub(r"\1\1", part) for part in clean if _LETTER.search(part)]
        at = self.piece.at
        span = at[start], max(at[end], at[start] + 1)
        self.spoken += kept
        self.spans += [span] * len(kept)
        self.last += [False] * (len(kept) - 1) + [True] * bool(kept)

    def punctuate(self, mark: str) -> None:
        """Give the last word ``mark`` unless it has a stronger one."""
        if not self.spoken:
            self.stop = self.stop or _STRENGTH[mark] >= _STRENGTH["."]
            return
        bare = self.spoken[-1].rstrip(".,;:!?")
        own = self.spoken[-1][len(bare) :]
        if bare and _STRENGTH[mark] > _STRENGTH.get(own, 9 if own else 0):
            self.spoken[-1] = bare + mark

    def finish(self) -> None:
        """Nothing follows: a sentence that is only paused is ended."""
        if self.spoken:
            bare = self.spoken[-1].rstrip(",;:-")
            self.spoken[-1] = bare if bare[-1:] in ".!?" else bare + "."

    def reading(self) -> Reading:
        read = tuple(
            ReadWord(SpokenWord(spoken, start, end), last)
            for spoken, (start, end), last in zip(self.spoken, self.spans, self.last, strict=True)
        )
        return Reading(read, tuple(self.dropped), self.stop)


class Reader:
    """Reads the pieces of one utterance in order. Keeps the few tokens before, nothing else."""

    def __init__(self) -> None:
        self._left = Left()
        self._aside = False

    def read(self, piece: Piece) -> Reading:
        """What ``piece`` says."""
        out = _Sentence(piece)
        text = piece.folded
        place = 0
        while place < len(text):
            place = self._step(text, place, out)
        return out.reading()

    def _step(self, text: str, place: int, out: _Sentence) -> int:
        """Read one item at ``place``; return where the next begins."""
        char = text[place]
        if char == " ":
            return place + 1
        if char in LAYOUT:
            self._layout(char, out)
            return place + 1
        if char in DROPPED:
            out.dropped[DROPPED[char]] = None
            return place + 1
        if self._left.line_start and (after := self._line_mark(text, place, out)):
            return after
        fresh = place == 0 or not text[place - 1].isalnum()
        found = _FAST.match(text, place) if fresh else None
        if found and found[0] not in BARE_ABBREVIATIONS and found[0] not in _STOPPED:
            return self._say(words.WORD.say(found, self._left) or "", found, out)
        if char.isascii() and char.isalnum():
            if fresh and (after := self._address(text, place, out)):
                return after
            rules = _DIGIT_RULES if char.isdigit() else _LETTER_RULES
            return self._apply(rules, text, place, out) or place + 1
        return self._sign(text, place, out)

    def _apply(self, rules: tuple[Rule, ...], text: str, place: int, out: _Sentence) -> int:
        for candidate in rules:
            found = candidate.pattern.match(text, place)
            if found and found.end() > place:
                said = candidate.say(found, self._left)
                if said is not None:
                    return self._say(said, found, out)
        return 0

    def _say(self, said: str, found: re.Match[str], out: _Sentence) -> int:
        out.add(said, found.start(), found.end())
        self._remember(found[0], ended=said.endswith("."))
        return found.end()

    def _remember(self, token: str, *, ended: bool = False) -> None:
        before = () if ended else self._left.words[-_LEFT_WORDS + 1 :]
        self._left = Left(
            (*before, *(word.rstrip(".") for word in token[:80].split()[-_LEFT_WORDS:])), line_start=False
        )

    def _layout(self, char: str, out: _Sentence) -> None:
        if char == COMMA_LINE:
            out.punctuate(",")
        elif char == STOP_LINE:
            out.punctuate(".")
        elif char == END:
            out.finish()
        words_kept = () if char in (STOP_LINE, END) else self._left.words
        self._left = Left(words_kept, line_start=True)

    def _line_mark(self, text: str, place: int, out: _Sentence) -> int:
        """Skip a heading, list, quotation or table mark at a line's start; say a list's number."""
        found = _LINE_MARK.match(text, place)
        if found:
            return found.end()
        number = _LIST_NUMBER.match(text, place)
        if not number:
            return 0
        digits = number[1] or number[2]
        said = cardinal(int(digits)) if digits else number[3].lower()
        out.add(said + ",", place, number.end())
        self._left = Left((), line_start=False)
        return number.end()

    def _address(self, text: str, place: int, out: _Sentence) -> int:
        found = web.URL.match(text, place)
        if not found:
            return 0
        end = place + web.trimmed(found[0])
        said, shortened = web.address(text[place:end])
        if not said:
            return 0
        if shortened:
            out.dropped["the path of a long web address"] = None
        out.add(said, place, end)
        self._remember(text[place:end])
        return end

    def _sign(self, text: str, place: int, out: _Sentence) -> int:
        """A character that is neither letter nor digit."""
        char = text[place]
        before = text[place - 1] if place else " "
        after = text[place + 1] if place + 1 < len(text) else " "
        if (skipped := _SILENT.match(text, place)) or (skipped := _several(text, place, out)):
            return skipped.end()
        if char == "/" and (rate := _RATE.match(text, place)):
            return self._say(f"per {measures.UNITS.get(rate[1], (rate[1],))[0]}", rate, out)
        if char in _SIGNS and not before.isalnum() and (end := self._apply(_SIGN_RULES, text, place, out)):
            return end
        if char == "'" and (end := self._apostrophe(text, place, out)):
            return end
        if char in VULGAR or (char == "." and after.isdigit() and not before.isalnum()):
            return self._apply(_DIGIT_RULES, text, place, out) or place + 1
        if (emoticon := _EMOTICON.match(text, place)) and not before.isalnum():
            out.dropped[DROPPED[EMOJI]] = None
            return emoticon.end()
        if (arrow := _ARROW.match(text, place)) and not after.isdigit():
            out.punctuate(",")
            return arrow.end()
        if char in ".,;:!?":
            return self._punctuation(text, place, out)
        return self._symbol(text, place, before, after, out)

    def _symbol(self, text: str, place: int, before: str, after: str, out: _Sentence) -> int:
        char = text[place]
        spaced = before in " \f\v\n" and after in " \f\v\n\x04"
        number_follows = _NUMBER_FOLLOWS.match(text, place + 1) is not None
        said = ""
        if char == "+":
            said = "plus" if number_follows or before.isalnum() or spaced else ""
        elif char in "-–—" and number_follows and before.isalnum() and self._left.numeric():
            said = "to"
        elif char in "-−":
            if text.startswith("--", place) or spaced:
                out.punctuate(",")
            elif number_follows and not before.isalnum() and before not in ")]":
                said = "minus"
        elif char in "*^" and not (before.isdigit() and number_follows):
            said = ""
        elif char in "<>" and not number_follows:
            if spaced:
                out.punctuate(",")
        elif char == "#" and spaced:
            said = "hash"
        elif char in "~#" and not (number_follows and not before.isalnum()):
            said = ""
        elif char == "(":
            self._aside = not before.isalnum()
            if self._aside:
                out.punctuate(",")
        elif char == ")":
            if self._aside:
                out.punctuate(",")
        elif char in _PAUSES:
            out.punctuate(",")
        elif char == "/" and number_follows and text[max(place - 2, 0) : place].rstrip()[-1:].isdigit():
            said = "divided by" if spaced else "over" if "=" in text else ""
        elif number_follows and char in _BEFORE_NUMBER:
            said = _BEFORE_NUMBER[char]
        elif char in _NAMES:
            said = _NAMES[char]
        if said:
            out.add(said, place, place + 1)
            self._remember(char)
        return place + 1

    def _apostrophe(self, text: str, place: int, out: _Sentence) -> int:
        """An ending that mark-up has cut off its word: **API**'s."""
        found = _SUFFIX.match(text, place)
        if not found or not out.spoken or text[place - 1] not in "*_`)]~" or out.spoken[-1][-1] in _STRENGTH:
            return 0
        out.spoken[-1] += found[0]
        out.spans[-1] = out.spans[-1][0], out.piece.at[found.end()]
        return found.end()

    def _punctuation(self, text: str, place: int, out: _Sentence) -> int:
        found = _PUNCTUATION.match(text, place)
        if not found:
            return place + 1
        marks = found[0]
        touching = text[found.end() : found.end() + 1]
        if (
            marks == "."
            and place
            and text[place - 1].isalnum()
            and touching.isalnum()
            and not touching.isupper()
        ):
            out.add("dot" if touching.islower() else "point", place, place + 1)
        elif marks == "." and touching.isalpha() and (not place or text[place - 1] == " "):
            out.add("dot", place, place + 1)
        elif marks == ".." or (marks.startswith("...") and set(marks) == {"."}):
            out.punctuate("." if _SENTENCE_AFTER.match(text, found.end()) else ",")
        else:
            out.punctuate(max(marks, key=lambda mark: _STRENGTH[mark]))
        if out.spoken and out.spoken[-1][-1] in ".!?":
            self._left = Left((), line_start=False)
        else:
            self._remember(",")
        return found.end()


_NUMBER_FOLLOWS = re.compile(r"\s?[$€£¥₹]?\.?\d")
_STOPPED = frozenset(
    word
    for word in (*ABBREVIATIONS, *OPEN_ABBREVIATIONS, *(name.lower() for name in NUMBERED))
    if "." not in word and len(word) > 1
)


def _several(text: str, place: int, out: _Sentence) -> re.Match[str] | None:
    found = _SEVERAL.match(text, place)
    if found:
        out.add(_SPELT[found[0]], place, found.end())
    return found


def read_all(text: str) -> Iterator[tuple[Piece, Reading]]:
    """Read a whole text: every piece with what it says."""
    segmenter, reader = Segmenter(), Reader()
    for piece in (*segmenter.push(text), *segmenter.flush()):
        yield piece, reader.read(piece)


def normalize(text: str, offset: int = 0) -> list[SpokenWord]:
    """The words said for a whole text; character ranges count from ``offset``."""
    return [
        SpokenWord(read.word.spoken, read.word.char_start + offset, read.word.char_end + offset)
        for _, reading in read_all(text)
        for read in reading.words
    ]


def spoken_form(text: str) -> str:
    """The whole text as the model reads it."""
    return " ".join(word.spoken for word in normalize(text))
