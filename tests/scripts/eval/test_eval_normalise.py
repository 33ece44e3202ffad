"""What a recogniser writes and what was said must come out as the same words."""

import pytest

from scripts.eval.normalise import hypothesis_words, readings, reference_words


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("your table is booked at seven thirty p m.", "Your table is booked at 7:30 p.m."),
        ("it is seven thirty p m.", "It is 7.30 p.m."),
        ("the total is forty eight dollars and fifty cents.", "The total is $48.50."),
        ("that is one thousand two hundred fifty dollars", "That is $1,250"),
        ("he was born on july fourth, nineteen eighty six.", "He was born on July 4th, 1986."),
        ("call four one five, eight oh two.", "Call 415-802."),
        ("order seven zero four four", "order 7044"),
        ("a high of fifty four degrees", "a high of 54°"),
        ("ten percent, or six point five", "10%, or 6.5"),
        ("served from six thirty to ten", "served from 6.30 to 10"),
        ("confirmed at nine fifty eight", "confirmed at 9.58"),
        ("back in the nineties", "back in the 90s"),
        ("a hundred people", "100 people"),
        ("one hundred and five miles", "105 miles"),
        ("okay, mister grey, the colour is fine", "OK, Mr. Gray, the color is fine"),
        ("at nine o'clock", "At 9"),
        ("twenty five years", "twenty-five years"),
    ],
)
def test_same_words(said: str, written: str) -> None:
    reference = reference_words(said)
    assert hypothesis_words(written, reference) == reference


def test_a_number_that_the_reference_lacks_is_read_plainly() -> None:
    assert hypothesis_words("platform 9", reference_words("platform nice")) == ["platform", "nine"]


def test_a_misheard_long_number_is_read_like_the_reference() -> None:
    reference = reference_words("order seven zero four four one eight")
    assert hypothesis_words("order 7,044,148", reference) == [
        "order",
        "seven",
        "o",
        "four",
        "four",
        "one",
        "four",
        "eight",
    ]


def test_annotations_and_fillers_are_dropped() -> None:
    assert reference_words("[music] Hmm, *laughs* well (applause)") == ["well"]


def test_readings_begin_with_the_usual_one() -> None:
    assert readings("42")[0] == ("forty", "two")
    assert readings("1986")[0] == ("nineteen", "eighty", "six")
    assert readings("007") == (("o", "o", "seven"),)
    assert ("four", "o", "four") in readings("404")
    assert ("twelfth",) in readings("12")
