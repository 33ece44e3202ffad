"""Word times and what was heard."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.contract import SpokenWord
from realtime.words import Spoken, WordTimeline


def timeline(*ranges: tuple[int, int]) -> WordTimeline:
    words = WordTimeline()
    words.add([SpokenWord(f"w{i}", start, end) for i, (start, end) in enumerate(ranges)])
    return words


def test_a_word_ends_where_the_next_begins() -> None:
    words = timeline((0, 2), (3, 5))
    assert words.begin(0, 0) is None
    assert words.begin(1, 100) == Spoken(0, 2, 0, 100)
    assert words.end(150) == Spoken(3, 5, 100, 150)
    assert words.end(160) is None


def test_words_of_one_item_are_one() -> None:
    words = timeline((0, 4), (0, 4), (5, 6))
    words.begin(0, 0)
    assert words.begin(1, 50) is None
    assert words.begin(2, 90) == Spoken(0, 4, 0, 90)


def test_skipped_words_have_no_time() -> None:
    words = timeline((0, 2), (3, 5), (6, 8))
    words.begin(0, 0)
    assert words.begin(2, 100) == Spoken(0, 2, 0, 100)


@pytest.mark.parametrize("index", [0, 3, -1])
def test_impossible_words(index: int) -> None:
    words = timeline((0, 2), (3, 5))
    words.begin(0, 0)
    with pytest.raises(ValueError, match="began"):
        words.begin(index, 10)


def test_time_does_not_go_back() -> None:
    words = timeline((0, 2), (3, 5))
    words.begin(0, 100)
    with pytest.raises(ValueError, match="before the one"):
        words.begin(1, 99)


def test_punctuation_goes_with_its_word() -> None:
    text = '"Well," she said—then.'
    words = timeline((1, 5), (8, 11), (12, 16), (17, 21))
    for index in range(4):
        words.begin(index, index * 100)
    words.end(400)
    heard = [text[: words.heard_chars(played, text)] for played in (0, 99, 100, 200, 300, 400)]
    assert heard == ["", "", '"Well,"', '"Well," she', '"Well," she said—', text]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(0, 3000))
def test_heard_grows_and_stays_within_the_text(lengths: list[int], played: int) -> None:
    text, ranges = "", []
    for length in lengths:
        ranges.append((len(text), len(text) + length))
        text += "x" * length + " "
    words = timeline(*ranges)
    for index in range(len(ranges)):
        words.begin(index, index * 100)
    words.end(len(ranges) * 100)
    cut = words.heard_chars(played, text)
    assert cut == (ranges[min(played // 100, len(ranges)) - 1][1] if played >= 100 else 0)
