"""What holds for every text: nothing lost, nothing invented, chunking invisible, linear work."""

import random
import re
import time

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.text import SpokenPiece, TextFrontEnd, normalize
from realtime.text.front_end import MAX_CHARS
from realtime.text.segmenter import Segmenter

SPOKEN = re.compile(r"[a-z'.,?!;:-]*[a-z][a-z'.,?!;:-]*")
FRAGMENTS = [
    "Dr. ", "St. ", "e.g. ", "U.S. ", "7:30 ", "p.m. ", "pm", "$3.50", "/month", "12,345", "3.14", " ",
    "  ", "\n", "\n\n", "\r\n", "- ", "1. ", "## ", "**bold**", "`code`", "[x](http://a.b/c)",
    "https://example.com/a?b=c", "a@b.co", "Hello", "world", "The ", "I ", "it's ", "...", ".", "!",
    "?", ",", ";", ":", "—", " – ", "-", "(", ")", '"', "'", "“", "’", "&", "#1", "@you", "%", "°F",
    "5'10\"", "1/2", "½", "March ", "5", "th", ", ", "2026", "No. ", "J. ", "A", "NASA", "FBI's", "v2",
    "x", "×", "€", "😀", "👩‍👧", "🇩🇪", "e\u0301", "你好。", "สวัสดี", "नमस्ते", "\x00", "\ud83d", "\ude00",
    "\u200b", "=", "+1 (555) ", "<b>", "</b>", "|", "```", "~", "*", "_", "km/h", " million ", "VIII",
    "1990s", "24/7", "million", "etc. ", "and ",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(categories=None), max_size=60),
    st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join),
    st.text("0123456789.,:/-$% apmkKx°+()", max_size=25),
)
MODES = st.sampled_from(["auto", "clause", "sentence", "manual"])


def speak(
    chunks: list[str], *, flush_at: frozenset[int] = frozenset(), **options: object
) -> tuple[list[SpokenPiece], str]:
    front = TextFrontEnd(**options)  # type: ignore[arg-type]
    pieces: list[SpokenPiece] = []
    for i, chunk in enumerate(chunks):
        pieces += front.push(chunk)
        if i in flush_at:
            pieces += front.flush()
    return pieces + front.flush(), front.text


def chunked(text: str, rng: random.Random) -> list[str]:
    chunks = []
    while text:
        size = rng.choice((1, 1, 2, 3, 5, 8, 20))
        chunks.append(text[:size])
        text = text[size:]
    return chunks


def outcome(pieces: list[SpokenPiece]) -> list[object]:
    """Words and segment ends in order, however they were grouped; warnings with them."""
    flat: list[object] = []
    for piece in pieces:
        flat += piece.words
        flat += piece.warnings
        if piece.end_segment:
            flat.append("end")
    return flat


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_pieces_concatenate_to_the_input(text: str) -> None:
    segmenter = Segmenter()
    pieces = segmenter.push(text) + segmenter.flush()
    assert "".join(piece.text for piece in pieces) == text
    assert [piece.start for piece in pieces] == [
        sum(len(p.text) for p in pieces[:i]) for i in range(len(pieces))
    ]
    for piece in pieces:
        assert len(piece.at) == len(piece.folded) + 1
        assert list(piece.at) == sorted(piece.at)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_words_are_speakable_and_their_ranges_valid(text: str) -> None:
    end = 0
    previous = (0, 0)
    for word in normalize(text):
        assert SPOKEN.fullmatch(word.spoken)
        assert len(word.spoken) <= 41
        assert 0 <= word.char_start < word.char_end <= len(text)
        assert word.char_start >= end or (word.char_start, word.char_end) == previous
        previous, end = (word.char_start, word.char_end), word.char_end


@settings(max_examples=250, deadline=None)
@given(TEXTS, MODES, st.booleans(), st.sampled_from([0, 30]), st.integers(0, 2**32))
def test_chunking_does_not_matter(text: str, mode: str, streaming: bool, min_chars: int, seed: int) -> None:
    options = {"mode": mode, "streaming": streaming, "min_chars": min_chars}
    whole, kept = speak([text], **options)
    assert kept == text
    by_character, _ = speak(list(text), **options)
    assert outcome(by_character) == outcome(whole)
    by_chunk, kept = speak(chunked(text, random.Random(seed)), **options)
    assert outcome(by_chunk) == outcome(whole)
    assert kept == text


def test_500_chunkings_of_one_text() -> None:
    text = (
        "**Dr. Lee:** it's $3.50/month (10% off!) — see https://a.com/b?c=d, e.g. v2.0.1, 3:00-4:30pm,\n"
        "Jan. 5th, 2026, 5'10\", 1 1/2 cups, +1 (555) 123-4567, #3, U.S. It's 20 °C 👩‍👩‍👧 cafe\u0301…\n\n"
        "- One\n- Two"
    )
    expected = outcome(speak([text])[0])
    for seed in range(500):
        assert outcome(speak(chunked(text, random.Random(seed)))[0]) == expected


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.integers(0, 2**32))
def test_flushes_count_by_their_place_in_the_text(parts: list[str], seed: int) -> None:
    rng = random.Random(seed)
    whole, _ = speak(parts, flush_at=frozenset(range(len(parts))))
    split: list[str] = []
    flush_at = set()
    for part in parts:
        split += chunked(part, rng) or [""]
        flush_at.add(len(split) - 1)
    assert outcome(speak(split, flush_at=frozenset(flush_at))[0]) == outcome(whole)


@settings(max_examples=200, deadline=None)
@given(TEXTS, MODES, st.booleans())
def test_segments_are_bounded_and_never_empty(text: str, mode: str, streaming: bool) -> None:
    pieces, _ = speak([text], mode=mode, streaming=streaming)
    length = words = 0
    for piece in pieces:
        length += sum(len(word.spoken) + 1 for word in piece.words)
        words += len(piece.words)
        if piece.end_segment:
            assert words
            assert length - 1 <= MAX_CHARS
            length = words = 0
    assert words == 0


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_streaming_changes_when_words_are_released_not_which(text: str) -> None:
    streamed = [word for piece in speak([text])[0] for word in piece.words]
    held = [word for piece in speak([text], streaming=False)[0] for word in piece.words]
    assert streamed == held == normalize(text)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_pieces_keep_graphemes_whole(text: str) -> None:
    """White space with a combining mark on it is the exception: waiting for one would cost time."""
    segmenter = Segmenter()
    cuts = {piece.start for piece in segmenter.push(text) + segmenter.flush()}
    for cluster in regex.finditer(r"\X", text):
        if not cluster[0][0].isspace() or cluster[0] == "\r\n":
            assert not cuts & set(range(cluster.start() + 1, cluster.end()))


LONG = {
    "prose": "The quick brown fox, e.g. the one on 5 May 2026, paid $3.50 for 2 km. ",
    "digits": "1234567890",
    "digit words": "7 ",
    "letters": "a",
    "hyphens": "a-",
    "dots": "a.",
    "punctuation": ".",
    "brackets": "[(",
    "angle": "<a",
    "comment": "<!--",
    "link": "](",
    "white space": " ",
    "new lines": "\n",
    "han": "漢字",
    "thai": "ภาษาไทย",
    "emoji": "👩‍👩‍👧",
    "combining": "e\u0301\u0301",
    "marks only": "\u0301",
    "at": "a@",
    "abbreviation": "U.S. ",
    "surrogates": "\ud83d",
    "url": "https://a.b/",
    "slashes": "1/",
    "markdown": "**_`",
}


@pytest.mark.parametrize("name", LONG)
def test_work_is_linear(name: str) -> None:
    """Long texts, one character at a time: far below what anything quadratic would need."""
    unit = LONG[name]
    length = 100_000 if name in ("prose", "letters", "thai") else 25_000
    text = (unit * (length // len(unit) + 1))[:length]
    began = time.process_time()
    assert speak(list(text))[1] == text
    assert time.process_time() - began < 10
