"""What the LM has said of one utterance and the vocoder has not yet spoken. Pure."""

from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """The ``index``-th word of the utterance begins at the next code."""

    index: int


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """The segment's codes end here; counts are words."""

    expected: int
    spoken: int
    remade: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Codes of one step, words by how many of the codes are before them, and the segment's end if reached."""

    codes: tuple[int, ...]
    words: tuple[tuple[int, int], ...]
    end: SegmentEnd | None


class Outbox:
    """Codes, word boundaries and segment ends in order, between LM and vocoder.

    Segments are numbered from 0. A segment of which nothing was taken yet can be retracted.
    """

    def __init__(self) -> None:
        self._items: deque[int | Word | SegmentEnd] = deque()
        self._of_segment = 0
        """Items of the segment being put."""
        self._ends = 0
        self.putting = 0
        """Number of the segment being put."""
        self.taking = 0
        """Number of the segment being taken."""
        self._begun = False
        """Something of the segment being taken was taken."""
        self.codes_put = 0

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: int | Word) -> None:
        """Append a code or a word boundary."""
        self._items.append(item)
        self._of_segment += 1
        self.codes_put += isinstance(item, int)

    def end_segment(self, end: SegmentEnd) -> None:
        """The segment being put is complete."""
        self._items.append(end)
        self._of_segment = 0
        self._ends += 1
        self.putting += 1

    def retract(self) -> bool:
        """Take back all of the segment being put, if nothing of it was taken. False: it is too late."""
        if self.heard():
            return False
        for _ in range(self._of_segment):
            self.codes_put -= isinstance(self._items.pop(), int)
        self._of_segment = 0
        return True

    def heard(self) -> bool:
        """True when something of the segment being put was taken: it can no longer be retracted."""
        return self.taking == self.putting and self._begun

    def waits_for_check(self) -> bool:
        """True while the segment to be taken next is untouched and incomplete: it may be retracted yet."""
        return not self._begun and self._ends == 0

    def ready(self, most: int) -> tuple[int, bool]:
        """Codes that could be taken at once (at most ``most``), and whether a segment end bounds them."""
        codes = 0
        for item in self._items:
            if isinstance(item, SegmentEnd):
                return codes, True
            if isinstance(item, int):
                codes += 1
                if codes == most:
                    break
        return codes, False

    def take(self, count: int, *, to_end: bool) -> Batch:
        """The next ``count`` codes of a segment with their words; ``to_end`` takes its end as well."""
        codes: list[int] = []
        words: list[tuple[int, int]] = []
        while self._items:
            item = self._items[0]
            if isinstance(item, SegmentEnd):
                return self._end(item, codes, words) if to_end else Batch(tuple(codes), tuple(words), None)
            if isinstance(item, int):
                if len(codes) == count:
                    break
                codes.append(item)
            else:
                if len(codes) == count and not to_end:
                    break
                words.append((len(codes), item.index))
            self._items.popleft()
            self._took()
        return Batch(tuple(codes), tuple(words), None)

    def _end(self, end: SegmentEnd, codes: list[int], words: list[tuple[int, int]]) -> Batch:
        self._items.popleft()
        self._ends -= 1
        self.taking += 1
        self._begun = False
        return Batch(tuple(codes), tuple(words), end)

    def _took(self) -> None:
        self._begun = True
        if self.taking == self.putting:
            self._of_segment -= 1
