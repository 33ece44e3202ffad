"""Where a piece may end while text streams in."""

import pytest

from realtime.text.segmenter import MAX_RUN, MAX_SCRIPT_RUN, Segmenter


def pieces(text: str) -> list[str]:
    segmenter = Segmenter()
    return [piece.text for piece in segmenter.push(text) + segmenter.flush()]


def pending(text: str) -> str:
    """What is still held back after ``text``."""
    segmenter = Segmenter()
    return text[sum(len(piece.text) for piece in segmenter.push(text)) :]


@pytest.mark.parametrize(
    "atom",
    [
        "3.14",
        "1,250.75",
        "7:30 pm",
        "7:30 p.m. and",
        "March 12, 2026",
        "5 May",
        "$3.50",
        "$5 million",
        "20 km",
        "+1 (555) 123-4567",
        "555 123 4567",
        "https://example.com/a?b=c.d,e",
        "john.doe@example.com",
        "e.g.",
        "Ph.D. in",
        "U.S. economy",
        "No. 5",
        "1 1/2 cups",
        "3 – 5",
        "👩‍👩‍👧‍👦",
        "e\u0301te\u0301",
        "2026-11-30T14:30:00Z",
        "[text](http://a.b/c)",
        '![x](img.png "Title")',
        "22,1",
        "50 %",
        "98.6 °F",
        "item\n- ",
    ],
)
def test_never_cut(atom: str) -> None:
    whole = f"so {atom} then more"
    start, end = 3, 3 + len(atom)
    place = 0
    for piece in pieces(whole):
        place += len(piece)
        assert not start < place < end, (piece, place)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Hello", "Hello"),
        ("Hello ", "Hello "),
        ("Hello w", "w"),
        ("Hello, ", ""),
        ("Done. ", ""),
        ("Done.", "Done."),
        ("Really? ", ""),
        ('He said "yes." ', ""),
        ("It is 20 ", "20 "),
        ("It is 20 minu", "20 minu"),
        ("It is 20 minutes l", "l"),
        ("It is 20. ", ""),
        ("Call Dr", "Dr"),
        ("Call Dr. ", ""),
        ("The U.S. ", "U.S. "),
        ("The U.S. G", "U.S. G"),
        ("In March ", "March "),
        ("In March we", "we"),
        ("In March 5", "March 5"),
        ("pay $", "$"),
        ("one\n", "one\n"),
        ("one\n\n", ""),
        ("one.\n", ""),
        ("wait ", "wait "),
        ("wait — ", "wait — "),
        ("wait — w", "w"),
        ("see (", "see ("),
        ("see (it i", "i"),
        ("No. ", "No. "),
        ("No. I", "I"),
        ("No. 5 ", "No. 5 "),
    ],
)
def test_released_as_soon_as_it_is_certain(text: str, held: str) -> None:
    assert pending(text) == held


def test_scripts_without_spaces_do_not_pile_up() -> None:
    for text in ("漢字かな交じり文" * 100, "ภาษาไทยไม่มีวรรค" * 100, "देवनागरीलिपि" * 100):
        assert max(map(len, pieces(text))) <= MAX_SCRIPT_RUN + 8


def test_an_endless_run_is_cut() -> None:
    assert max(map(len, pieces("x" * 3 * MAX_RUN))) <= MAX_RUN


def test_a_chain_of_numbers_is_cut_between_numbers() -> None:
    cut = pieces("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17")
    assert len(cut) > 1
    assert all(piece.endswith(" ") for piece in cut[:-1])


def test_flush_begins_anew() -> None:
    segmenter = Segmenter()
    assert segmenter.push("March") == []
    assert [piece.text for piece in segmenter.flush()] == ["March"]
    assert segmenter.flush() == []
    assert [piece.text for piece in segmenter.push("5, x")] == ["5, "]


def test_a_carriage_return_waits_for_its_line_feed() -> None:
    assert pieces("One.\r\n\r\nTwo") == ["One.\r\n", "\r\nTwo"]
    segmenter = Segmenter()
    assert segmenter.push("One.\r") == []
    assert [piece.text for piece in segmenter.push("\n")] == ["One.\r\n"]
