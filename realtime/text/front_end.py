"""The text front end of one utterance: deltas in, words to speak out, segments ended where prosody allows.

What comes out depends on the text and on the places of the flushes, never on how the text was chunked.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from engine.contract import SpokenWord
from realtime.text.lexicon import listed
from realtime.text.normalizer import Reader, Reading, ReadWord
from realtime.text.segmenter import Piece, Segmenter

SegmentMode = Literal["auto", "clause", "sentence", "manual"]
LANGUAGES = ("en",)
"""Primary language subtags that can be read."""

FIRST_CLAUSE_CHARS = 20
"""Whole segments only: the first one may end at a clause this long (in spoken characters)."""
NEXT_SENTENCE_CHARS = 48
"""Whole segments only: later sentences are joined up to this length; longer segments carry the prosody."""
CLAUSE_CHARS = 16
"""In clause mode a shorter clause is joined with the next."""
LONG_CHARS = 140
"""From here on, a segment ends at a semicolon, colon or dash; a comma will do 40 later."""
MAX_CHARS = 240
"""No segment gets longer: the model reads about 40 words well."""
_COMMA_CHARS = LONG_CHARS + 40
_STRONG_JOINT_CHARS = LONG_CHARS + 10
_JOINT_CHARS = MAX_CHARS - 40
_STRONG_JOINTS = listed(
    "because but which who where while when if although though since unless whereas before after"
)
_JOINTS = listed("and or so that then as to for with in on at from by of")


@dataclass(frozen=True, slots=True)
class TextWarning:
    """Something about the text that the client should know. ``code`` is for machines."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class SpokenPiece:
    """Words to speak. ``end_segment``: a sentence or clause is complete after them (there may be none)."""

    words: tuple[SpokenWord, ...]
    end_segment: bool
    warnings: tuple[TextWarning, ...] = ()


class TextFrontEnd:
    """Turns one utterance's text into `SpokenPiece`s. Pure and incremental; no clock.

    With ``streaming``, words are released as soon as nothing that follows can change how they are read;
    without it, a whole segment at a time. ``min_chars`` (spoken characters) keeps segments from ending
    earlier, except by `flush`.

    Raises:
        ValueError: unknown mode or language, negative ``min_chars``.
    """

    def __init__(
        self, mode: SegmentMode = "auto", *, streaming: bool = True, min_chars: int = 0, language: str = "en"
    ) -> None:
        if mode not in ("auto", "clause", "sentence", "manual"):
            raise ValueError(f"segment mode {mode!r} is not one of auto, clause, sentence, manual")
        if language.replace("_", "-").split("-")[0].lower() not in LANGUAGES:
            raise ValueError(f"language {language!r} is not one of {', '.join(LANGUAGES)}")
        if min_chars < 0:
            raise ValueError(f"min_chars is {min_chars}, but must not be negative")
        self._mode = mode
        self._streaming = streaming
        self._min_chars = min_chars
        self._segmenter = Segmenter()
        self._reader = Reader()
        self._deltas: list[str] = []
        self._length = 0
        self._segments = 0
        self._held: list[SpokenWord] = []
        self._warnings: list[TextWarning] = []

    @property
    def text(self) -> str:
        """Everything pushed so far, exactly."""
        self._deltas = ["".join(self._deltas)]
        return self._deltas[0]

    def push(self, delta: str) -> list[SpokenPiece]:
        """Take more text; return what can be spoken now."""
        self._deltas.append(delta)
        return self._speak(self._segmenter.push(delta))

    def flush(self) -> list[SpokenPiece]:
        """Return all pending text as words to speak; the segment ends."""
        pieces = self._speak(self._segmenter.flush())
        if self._length or self._held:
            pieces += self._end()
        if self._warnings:
            pieces += self._release(end=False)
        return _merged(pieces)

    def _speak(self, pieces: Iterable[Piece]) -> list[SpokenPiece]:
        spoken: list[SpokenPiece] = []
        for piece in pieces:
            reading = self._reader.read(piece)
            self._warnings += _warnings(reading)
            spoken += self._take(reading)
        return spoken

    def _take(self, reading: Reading) -> list[SpokenPiece]:
        """Group the words of one piece; end the segment where it may end."""
        done: list[SpokenPiece] = []
        if reading.stop and self._may_end("."):
            done += self._end()
        for read in reading.words:
            if self._must_end_before(read):
                done += self._end()
            self._held.append(read.word)
            self._length += len(read.word.spoken) + (self._length > 0)
            if self._may_end(read.mark):
                done += self._end()
        if self._streaming and (self._held or self._warnings):
            done += self._release(end=False)
        return _merged(done)

    def _may_end(self, mark: str) -> bool:
        """The segment may end after a word with this mark."""
        length = self._length
        if length == 0 or mark == "" or mark == "-":
            return False
        sentence = mark in ".!?"
        if length >= _COMMA_CHARS or (length >= LONG_CHARS and (sentence or mark in ";:")):
            return True
        if self._mode == "manual" or length < self._min_chars:
            return False
        if self._mode == "clause":
            return sentence or length >= CLAUSE_CHARS
        if self._streaming or self._mode == "sentence":
            return sentence
        if self._segments == 0:
            return sentence or length >= FIRST_CLAUSE_CHARS
        return sentence and length >= NEXT_SENTENCE_CHARS

    def _must_end_before(self, read: ReadWord) -> bool:
        """The segment is full: it ends before a word that begins a clause, at last before any word."""
        word, length = read.word.spoken, self._length
        if length == 0:
            return False
        strong = word in _STRONG_JOINTS and length >= _STRONG_JOINT_CHARS
        joint = word in _JOINTS and length >= _JOINT_CHARS
        return strong or joint or length + 1 + len(word) > MAX_CHARS

    def _end(self) -> list[SpokenPiece]:
        self._segments += 1
        self._length = 0
        return self._release(end=True)

    def _release(self, *, end: bool) -> list[SpokenPiece]:
        piece = SpokenPiece(tuple(self._held), end, tuple(dict.fromkeys(self._warnings)))
        self._held, self._warnings = [], []
        return [piece]


def _warnings(reading: Reading) -> list[TextWarning]:
    return [TextWarning("text_dropped", f"left out, cannot be spoken: {kind}") for kind in reading.dropped]


def _merged(pieces: list[SpokenPiece]) -> list[SpokenPiece]:
    """Join a piece that only ends the segment to the one before it."""
    done: list[SpokenPiece] = []
    for piece in pieces:
        if done and not piece.words and not done[-1].end_segment:
            last = done[-1]
            both = tuple(dict.fromkeys((*last.warnings, *piece.warnings)))
            done[-1] = replace(last, end_segment=piece.end_segment, warnings=both)
        else:
            done.append(piece)
    return done
