"""Raw text, as it streams in, to the smallest pieces that can be read without knowing what follows.

A piece ends where the text that is still to come can no longer change how it is read: a plain word ends
with the first character of the next one (which shows a dash, a bracket or a new line), a sentence's last
word with the space after its full stop, a number only when the word after it is whole. So a number with
its unit, a date, a time, money, a telephone number, an abbreviation, initials, a web address or an emoji
are never cut. Pieces concatenate to the input exactly.

The segmenter is fed one code point at a time and keeps a bounded look-back, so what it returns depends on
the text and on the places of the flushes alone, not on how the text was chunked, and costs linear time.
"""

import re
from dataclasses import dataclass
from enum import Enum

import regex

from realtime.text.folding import (
    COMMA_LINE,
    DROPPED,
    END,
    LINE,
    SCRIPT,
    STOP_LINE,
    VULGAR,
    fold,
)
from realtime.text.lexicon import digits_only, is_month, is_weekday, magnitude, may_end_sentence

MAX_RUN = 2048
"""Code points without white space after which a run is cut anyway (at a grapheme boundary)."""
MAX_SCRIPT_RUN = 64
"""The same for scripts that are written without spaces."""
MAX_CHAIN = 7
"""Runs that one piece can wait for."""
WRAP_COLUMN = 56
"""A line at least this long may have been wrapped: its end alone says nothing."""

OPENERS = "\"'([{*_~`<"
CLOSERS = "\"')]}*_~`>" + "".join(DROPPED)
_JOINING = frozenset("(-–—−.,;:!?/|&+=<>%•→×÷±°\\^" + "".join(DROPPED))
_CURRENCY = re.compile(r"[-+~]?(?:[A-Z]{1,3})?[$€£¥₹₩₽₿#+−–-]|[~<>≤≥±≈]|[A-Z]{3}")
_CURRENCY_NEXT = frozenset("$€£¥₹₩₽¢%°¼½¾")
_DAY = re.compile(r"\d{1,2}(?:st|nd|rd|th)?,")
_MARKER = re.compile(r"#{1,6}|[-=*_]{3,}|[-*•+–|]|>+|\d{1,3}[.)]|\(?[a-zA-Z][.)]|```[\w+-]*")
_MARK_START = frozenset("-*•+–>#0123456789|(`")
_OPEN_TAG = re.compile(r"<[A-Za-z/!][^>]*$|\]\([^)]*$")
_AREA_CODE = re.compile(r"\(\d{2,5}\)")
_THOUSANDS = re.compile(r"\d[\d.]*[MB]")
_HOURS = re.compile(r"\d{1,3}(?:h|hrs?|m)")
_GRAPHEME = regex.compile(r"\X")


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the input with its folded form.

    ``text`` is the input from code point ``start`` on. ``folded`` is the same as the rules read it, layout
    resolved; ``at[i]`` is the code point (in the whole text) that ``folded[i]`` came from, and ``at`` has
    one entry more, for the end.
    """

    text: str
    start: int
    folded: str
    at: tuple[int, ...]


class _State(Enum):
    LEADING = 1  # nothing visible yet
    RUN = 2  # inside a run of visible characters
    GAP = 3  # after a run, before the character that shows what its white space means


@dataclass(slots=True)
class _Line:
    """The line being read: how long it is, and whether it began with a list or heading mark."""

    length: int = 0
    marked: bool = False
    runs: int = 0

    def end_mark(self, following: str) -> str:
        """What the line's end asks of its last word, when the next line begins with ``following``."""
        if self.marked:
            return STOP_LINE
        if self.length >= WRAP_COLUMN or following.islower():
            return " "
        return COMMA_LINE


class Segmenter:
    """Cuts one utterance's text into `Piece`s."""

    def __init__(self) -> None:
        self._consumed = 0
        self._raw: list[str] = []
        self._folded: list[str] = []
        self._at: list[int] = []
        self._state = _State.LEADING
        self._run = 0
        self._chain = 0
        self._core = ""
        self._before = ""
        self._line = _Line()
        self._gap_break = -1
        self._return = False

    def push(self, delta: str) -> list[Piece]:
        """Take more text; return the pieces that have become certain."""
        done: list[Piece] = []
        for char in delta:
            if self._return:
                self._return = False
                if char == "\n":
                    self._raw.append(char)
                    self._space("\n", done)
                    continue
                self._space("\n", done)
            folded = fold(char)
            if char == "\r":  # a line feed may belong to it
                self._raw.append(char)
                self._return = True
            elif folded in (" ", "\n"):
                self._raw.append(char)
                self._space(folded, done)
            elif folded:
                self._visible(char, folded, done)
            else:
                self._raw.append(char)
        return done

    def flush(self) -> list[Piece]:
        """Return all that is pending; what follows is read as a new beginning."""
        done: list[Piece] = []
        if self._return:
            self._return = False
            self._space("\n", done)
        if self._raw:
            self._folded.append(END)
            self._at.append(self._consumed + len(self._raw))
            done.append(self._cut())
        self._line = _Line()
        self._core = self._before = ""
        return done

    def _space(self, folded: str, done: list[Piece]) -> None:
        """White space whose code point is the last of ``_raw``."""
        newline = folded == "\n"
        position = self._consumed + len(self._raw) - 1
        if self._state is _State.RUN:
            self._end_run()
            if self._is_line_mark() or _ends_now(self._core, self._before):
                self._put(LINE if newline else " ", position)
                done.append(self._cut())
                if newline:
                    self._line = _Line()
                return
            self._state = _State.GAP
            self._gap_break = -1
        if self._state is _State.GAP:
            if newline and self._gap_break >= 0:
                self._folded[self._gap_break] = STOP_LINE  # an empty line: the paragraph is over
                self._put(LINE, position)
                done.append(self._cut())
                self._line = _Line()
            else:
                if newline:
                    self._gap_break = len(self._folded)
                self._put(" ", position)
            return
        previous = self._folded[-1:]
        self._put(folded if not newline else STOP_LINE if previous == [LINE] else LINE, position)
        if newline:
            self._line = _Line()

    def _visible(self, char: str, folded: str, done: list[Piece]) -> None:
        if self._state is _State.GAP:
            self._decide(folded[0], done)
        elif self._state is _State.RUN and self._over_long(char, folded):
            self._end_run()
            done.append(self._cut())
        if self._state is not _State.RUN:
            self._state = _State.RUN
            self._run = len(self._folded)
        position = self._consumed + len(self._raw)
        self._raw.append(char)
        for part in folded:
            self._put(part, position)

    def _decide(self, following: str, done: list[Piece]) -> None:
        """The gap is over: does the piece end, or does its reading depend on the run that begins now?"""
        newline = self._gap_break >= 0
        if newline:
            self._folded[self._gap_break] = self._line.end_mark(following)
            if following not in _MARK_START:
                self._gap_break = -1
            self._line = _Line()
        waits = following in _JOINING or (newline and following in _MARK_START)
        if (waits or _reaches(self._core, self._before, following)) and self._chain < MAX_CHAIN:
            self._chain += 1
            self._before = self._core
            return
        done.append(self._cut())

    def _end_run(self) -> None:
        self._core = "".join(self._folded[self._run :])
        self._line.runs += 1
        if self._line.runs == 1:
            self._line.marked = _MARKER.fullmatch(self._core) is not None

    def _is_line_mark(self) -> bool:
        """The run is a list or heading mark. A line break inside the piece was one between items, then."""
        if not (self._line.runs == 1 and self._line.marked):
            return False
        if self._gap_break >= 0:
            self._folded[self._gap_break] = STOP_LINE
        return True

    def _over_long(self, char: str, folded: str) -> bool:
        length = len(self._raw)
        script = folded == SCRIPT and self._folded[-1:] == [SCRIPT]
        if length < (MAX_SCRIPT_RUN if script else MAX_RUN):
            return False
        tail = "".join(self._raw[-64:]) + char
        return bool(_GRAPHEME.findall(tail)[-1] == char)

    def _put(self, folded: str, position: int) -> None:
        self._folded.append(folded)
        self._at.append(position)
        self._line.length += 1

    def _cut(self) -> Piece:
        """All that was taken so far, as a piece."""
        start = self._consumed
        self._consumed += len(self._raw)
        piece = Piece("".join(self._raw), start, "".join(self._folded), (*self._at, self._consumed))
        self._raw, self._folded, self._at = [], [], []
        self._state = _State.LEADING
        self._run = 0
        self._chain = 0
        self._before = self._core
        self._gap_break = -1
        return piece


def _ends_now(core: str, before: str) -> bool:
    """The run ends in punctuation that no following text can change."""
    bare = core.rstrip(CLOSERS)
    last = bare[-1:]
    if last == ",":
        return not (_DAY.fullmatch(bare) and is_month(before)) and not is_weekday(bare)
    if last == ".":
        return not bare.endswith("..") and not may_end_sentence(bare.lstrip(OPENERS), before)
    return last != "" and last in "!?;:"


def _reaches(core: str, before: str, following: str) -> bool:
    """The run's reading may depend on the one that begins with ``following``."""
    bare = core.strip(OPENERS).rstrip(CLOSERS)
    last = bare[-1:]
    digit = following.isdigit() or following in VULGAR
    if core == "*":
        return digit and before[-1:].isdigit()
    if not last:
        return _OPEN_TAG.search(core) is not None
    if last == ".":
        return digit or not digits_only(bare)
    if _OPEN_TAG.search(core):
        return True
    if (
        _AREA_CODE.fullmatch(core)
        or _HOURS.fullmatch(bare)
        or (bare in "-–—−xX×/÷" and before[-1:].isdigit())
    ):
        return digit
    if last.isdigit() or last in VULGAR:
        return digit or following.isalpha() or following in _CURRENCY_NEXT or following in "(*"
    if _CURRENCY.fullmatch(core) or is_month(bare) or digits_only(bare + ".") or last == ",":
        return digit or following in _CURRENCY_NEXT or (last == "," and following.isupper())
    if _THOUSANDS.fullmatch(bare):
        return following.isupper()
    if magnitude(bare) and before[-1:].isdigit():
        return following.isalpha()
    return is_weekday(bare) and (digit or following.isupper())
