"""When each word of an utterance is heard, in samples, and what was heard at a given moment. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from engine.contract import SpokenWord


@dataclass(frozen=True, slots=True)
class Spoken:
    """One item of the client's text as spoken: its characters, and its samples at the model's rate.

    Words that come from one item ("7:30" is read as two) are one.
    """

    char_start: int
    char_end: int
    start: int
    end: int


class WordTimeline:
    """Words pushed to the engine, and where they turned up in the audio."""

    def __init__(self) -> None:
        self._words: list[SpokenWord] = []
        self._spoken: list[Spoken] = []
        self._open: tuple[SpokenWord, int] | None = None
        self.started = 0
        """One past the last word that was begun."""

    def __len__(self) -> int:
        return len(self._words)

    def add(self, words: Sequence[SpokenWord]) -> None:
        """These words are pushed next."""
        self._words.extend(words)

    def begin(self, index: int, start: int) -> Spoken | None:
        """Word ``index`` begins at sample ``start``. Returns the item that this ends, if it does.

        Raises ValueError for a word that was not pushed, came before, or begins before its predecessor.
        """
        if not self.started <= index < len(self._words):
            raise ValueError(f"word {index} began; {self.started} of {len(self._words)} were begun before")
        word, self.started = self._words[index], index + 1
        if self._open is not None:
            earlier, began = self._open
            if start < began:
                raise ValueError(f"word {index} begins at {start}, before the one in front of it")
            if (earlier.char_start, earlier.char_end) == (word.char_start, word.char_end):
                return None
        ended = self.end(start)
        self._open = word, start
        return ended

    def end(self, at: int) -> Spoken | None:
        """The item being spoken, if there is one, ends at sample ``at``."""
        if self._open is None:
            return None
        word, start = self._open
        self._open = None
        item = Spoken(word.char_start, word.char_end, start, max(start, at))
        self._spoken.append(item)
        return item

    def heard_chars(self, played: int, text: str) -> int:
        """How much of ``text`` was heard when ``played`` samples were, in characters.

        That is up to the end of the last item heard whole, with the punctuation that hangs on it.
        """
        heard = bisect_right(self._spoken, played, key=lambda item: item.end)
        if heard == 0:
            return 0
        cut = max(item.char_end for item in self._spoken[:heard])
        following = (word.char_start for word in self._words if word.char_start >= cut)
        limit = min(following, default=len(text))
        while cut < limit and not text[cut].isspace():
            cut += 1
        return cut
