"""Words released while text streams in, and where segments end."""

import pytest

from realtime.text import SpokenPiece, TextFrontEnd, TextWarning, spoken_form
from realtime.text.front_end import FIRST_CLAUSE_CHARS, MAX_CHARS, NEXT_SENTENCE_CHARS

SENTENCE = (
    "The committee, which had met for several hours in the afternoon and had heard from a great many "
    "witnesses, decided to postpone the vote until the following week because several members wanted to read "
    "the report in full before they would commit to any of the options that had been put in front of them by "
    "the chair."
)


def said(pieces: list[SpokenPiece]) -> str:
    """Words, with a bar where a segment ends."""
    return " ".join(
        item for piece in pieces for item in (*(w.spoken for w in piece.words), *["|"] * piece.end_segment)
    )


def all_said(text: str, **options: object) -> list[str]:
    front = TextFrontEnd(**options)  # type: ignore[arg-type]
    return [s.strip() for s in said(front.push(text) + front.flush()).split("|") if s.strip()]


def test_words_are_released_token_by_token() -> None:
    front = TextFrontEnd()
    released = [
        ("Sure", ""), ("!", ""), (" Your", "sure! |"), (" table", "your"), (" is", "table"), (" at", "is"),
        (" ", ""), ("7", "at"), (":", ""), ("30", ""), (" pm", ""), (" for", "seven thirty p m"),
        (" Dr", "for"), (".", ""), (" Smith", "doctor"), (".", ""),
    ]  # fmt: skip
    assert [(token, said(front.push(token))) for token, _ in released] == released
    assert said(front.flush()) == "smith. |"
    assert front.text == "".join(token for token, _ in released)


def test_ranges_point_into_what_was_pushed() -> None:
    text = "Pay $3.50 to Zoë — by 7:30, 👍🏽 please."
    front = TextFrontEnd()
    words = [word for piece in front.push(text) + front.flush() for word in piece.words]
    assert [(word.spoken, text[word.char_start : word.char_end]) for word in words] == [
        ("pay", "Pay"), ("three", "$3.50"), ("dollars", "$3.50"), ("and", "$3.50"), ("fifty", "$3.50"),
        ("cents", "$3.50"), ("to", "to"), ("zoe,", "Zoë"), ("by", "by"), ("seven", "7:30"),
        ("thirty,", "7:30"), ("please.", "please"),
    ]  # fmt: skip


def test_ranges_go_on_after_a_flush() -> None:
    front = TextFrontEnd()
    front.push("One two")
    front.flush()
    (piece,) = [*front.push(" three"), *front.flush()]
    assert [(w.spoken, w.char_start, w.char_end) for w in piece.words] == [("three.", 8, 13)]


def test_flush_ends_the_sentence_and_the_segment() -> None:
    front = TextFrontEnd()
    assert said(front.push("hello,")) == ""
    assert said(front.flush()) == "hello. |"
    assert front.flush() == []


def test_flush_ends_a_segment_whose_words_are_gone() -> None:
    front = TextFrontEnd()
    assert said(front.push("First, ")) == "first,"
    assert said(front.flush()) == "|"


@pytest.mark.parametrize("text", ["", " \n\t ", "...!?", "—", "🎉🎉", "**", "你好。", "\x00", "\ud83d"])
def test_nothing_to_say(text: str) -> None:
    front = TextFrontEnd()
    pieces = front.push(text) + front.flush()
    assert not any(piece.words or piece.end_segment for piece in pieces)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Hi 🎉🎉 and 👩‍👩‍👧 there", ["emoji", "emoji"]),
        ("Hi 你好 there", ["characters of a script this model does not speak"]),
        ("Hi\x00 there", ["control characters"]),
        ("Hi \ud83d there", ["lone surrogates"]),
        ("Hi ★ there", ["symbols without a spoken form"]),
        ("See https://a.com/" + "x/" * 40 + " there", ["the path of a long web address"]),
        ("Plain — “text” é ½ €5 ™ • → …", []),
    ],
)
def test_what_is_left_out_is_told(text: str, kinds: list[str]) -> None:
    front = TextFrontEnd()
    warnings = [w for piece in front.push(text) + front.flush() for w in piece.warnings]
    assert warnings == [TextWarning("text_dropped", f"left out, cannot be spoken: {kind}") for kind in kinds]


def test_sentences_are_segments() -> None:
    text = "Hello there. Is it 3.5, Dr. Lee? Yes! The U.S. won. Well... maybe"
    expected = ["hello there.", "is it three point five, doctor lee?", "yes!", "the u s won.", "well, maybe."]
    assert all_said(text) == expected
    assert all_said(text, mode="sentence") == expected


def test_clause_mode_ends_at_clauses_that_are_not_tiny() -> None:
    text = "Well, if you want to come along, bring a coat; it is cold."
    assert all_said(text, mode="clause") == ["well, if you want to come along,", "bring a coat; it is cold."]


def test_manual_mode_ends_by_flush_only() -> None:
    assert all_said("One. Two! Three? Four", mode="manual") == ["one. two! three? four."]


def test_min_chars_joins_sentences() -> None:
    assert all_said("One. Two. Three. Four five six.", min_chars=10) == ["one. two. three.", "four five six."]


@pytest.mark.parametrize("mode", ["auto", "clause", "sentence", "manual"])
@pytest.mark.parametrize("streaming", [True, False])
def test_no_segment_is_too_long_to_be_spoken_well(mode: str, streaming: bool) -> None:
    segments = all_said(" ".join([SENTENCE] * 4), mode=mode, streaming=streaming)
    assert " ".join(segments) == spoken_form(" ".join([SENTENCE] * 4))
    assert max(map(len, segments)) <= MAX_CHARS


def test_a_long_sentence_ends_where_a_clause_begins() -> None:
    first, second, *_ = all_said(SENTENCE, mode="sentence")
    assert first.endswith("until the following week")
    assert second.startswith("because")


def test_a_break_without_words_ends_the_segment() -> None:
    front = TextFrontEnd()
    assert said(front.push("One two, \n\nThree we")) == "one two, | three"


def test_whole_segments_only_when_the_model_needs_them() -> None:
    front = TextFrontEnd(streaming=False)
    assert front.push("If you are ready, ") == []
    assert said(front.push("we can start now, ")) == "if you are ready, we can start now, |"
    assert front.push("Fine. Good. ") == []
    assert said(front.push("That is all there is to say about it today. ")).startswith("fine. good. that is")


def test_the_first_whole_segment_may_be_short_and_later_ones_are_longer() -> None:
    text = "Let me have a look, please. " + "It is here. " * 12
    first, *others = all_said(text, streaming=False)
    assert first == "let me have a look, please."
    assert len(first) >= FIRST_CLAUSE_CHARS
    assert all(len(segment) >= NEXT_SENTENCE_CHARS for segment in others[:-1])


@pytest.mark.parametrize(
    "options", [{"mode": "word"}, {"language": "de"}, {"min_chars": -1}, {"language": ""}]
)
def test_bad_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"not|negative"):
        TextFrontEnd(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("language", ["en", "en-US", "en_GB", "EN"])
def test_english_of_any_region(language: str) -> None:
    assert said(TextFrontEnd(language=language).push("Hi. ")) == "hi. |"
