"""The spoken form, and phonemes that map one to one to words."""

import pytest

from scripts.train import phonemes as ph
from scripts.train import text
from scripts.train.spoken import spoken, words

VOCABULARY = {c: 20 + k for k, c in enumerate("abcdefghiklmnopstuvwɪʊðəɹzæˈ")} | {" ": 16, ".": 4, ",": 3}


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "It's $1,250, and 7:30 pm.",
            "it's one thousand two hundred and fifty dollars, and seven thirty p m.",
        ),
        ("Meet Dr. Lee at 9:00", "meet doctor lee at nine o'clock."),
        ("Born July 4, 1986", "born july fourth, nineteen eighty six."),
        ("Code K 7 R", "code k seven r."),
        ("About 30% — maybe 2.5", "about thirty percent, maybe two point five."),
        ("", ""),
    ],
)
def test_spoken(written: str, said: str) -> None:
    assert spoken(written) == said


def test_words_need_a_letter() -> None:
    assert words("well - re-do it, p m.") == ["well", "re-do", "it,", "p", "m."]


def test_sentences_with_punctuation_inside_words_are_not_clean() -> None:
    assert text.clean("one, two.")
    assert not text.clean("issue.not that")
    assert not text.clean("Capital")


def test_generated_sentences_are_clean_and_reproducible() -> None:
    some = text.generated(replies=50, dialogue=50)
    assert some == text.generated(replies=50, dialogue=50)
    assert len(some) > 120
    assert all(text.clean(s.text) for s in some)


def test_evaluation_sentences_are_excluded_whatever_their_punctuation() -> None:
    assert text.key("Yes, please!".lower()) == text.key("yes please.")


def test_distance_prefers_other_vowels_to_other_consonants() -> None:
    assert ph.distance("ðə", "ðɪ") < ph.distance("ðə", "zə") < ph.distance("ðə", "")


def test_joined_groups_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = {"in": "ɪn", "the": "ðə", "air": "ɛɹ", "was": "wʌz"}
    monkeypatch.setattr(ph, "isolated", lambda w: alone[w])
    assert ph.align(["was", "in", "the", "air."], ["wʌz", "ɪnðə", "ˈɛɹ"]) == ["wʌz", "ɪn", "ðə", "ˈɛɹ"]


def test_split_hyphenated_words_stay_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = {"re-do": "riduː", "it": "ɪt"}
    monkeypatch.setattr(ph, "isolated", lambda w: alone[w])
    assert ph.align(["re-do", "it"], ["ɹˈiː", "dˈuː", "ɪt"]) == ["ɹˈiː dˈuː", "ɪt"]


def test_unlike_groups_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ph, "isolated", lambda w: {"a": "ɐ", "b": "biː"}[w])
    assert ph.align(["a", "b"], ["kwsɛntʃɪmpl", "ʃɹʌŋkstɹɛŋθs", "plˈɪŋks"]) is None


def test_punctuation_stays_behind_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ph, "espeak", lambda _: "ɪnðə, ˈɪn.")
    monkeypatch.setattr(ph, "isolated", lambda w: {"in": "ɪn", "the": "ðə"}[w])
    result = ph.phonemes("in the, in.", VOCABULARY)
    assert result is not None
    letters = {v: k for k, v in VOCABULARY.items()}
    assert "".join(letters[i] for i in result.ids) == "ɪn ðə, ˈɪn."
    assert [letters[result.ids[s]] for s in result.starts] == ["ɪ", "ð", "ˈ"]


def test_encode_refuses_a_word_without_phonemes() -> None:
    assert ph.encode(["in", "."], VOCABULARY) is None


def test_espeak_itself() -> None:
    pytest.importorskip("piper")
    vocabulary = {
        c: 20 + k for k, c in enumerate(sorted(set("abdefhijklmnpstuvwzæðŋɑɔəɛɜɡɪɹʃʊʌʒˈˌθAIOWYᵊᵻʤʧT")))
    }
    vocabulary |= {" ": 16, ".": 4, ",": 3}
    for line in ("she walked in the rain, out of the house.", "seven p m.", "do not do it."):
        result = ph.phonemes(line, vocabulary)
        assert result is not None
        assert len(result.starts) == len(words(line))
