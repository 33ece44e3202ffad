"""The language model's training sequences keep the rules that the server relies on."""

import numpy as np
import pytest

from engine.models.ember import layout
from engine.models.ember.layout import AUDIO, BLOCK_TOKENS, END_TEXT, EOS, TEXT, WORD
from scripts.train import sequences
from scripts.train.sequences import Sequence, Spoken

LEXICON = ["a", "the", "train", "leaves", "at", "noon", "so", "please", "check", "your", "order", "tomorrow"]


def utterance(seed: int, codes_per_char: float = 3.2) -> Spoken:
    rng = np.random.default_rng(seed)
    text = " ".join(rng.choice(LEXICON, rng.integers(1, 16))) + "."
    lengths = [max(1, int(codes_per_char * (len(w) + 1))) for w in layout.spoken_words(text)]
    codes = rng.integers(0, 8000, sum(lengths) + 12)
    starts = 3 + np.cumsum([0, *lengths[:-1]])
    return Spoken(text, sequences.audio_tokens(codes, starts))


def blocks(ids: list[int]) -> list[tuple[str, bool, list[int]]]:
    """(text, final, audio tokens) of each block of one segment."""
    found, at = [], 0
    while at < len(ids):
        assert ids[at] == TEXT
        end = ids.index(AUDIO, at)
        final = ids[end - 1] == END_TEXT
        text = bytes(i - 16 for i in ids[at + 1 : end - final]).decode()
        stop = ids.index(TEXT, end) if TEXT in ids[end:] else len(ids)
        found.append((text, final, ids[end + 1 : stop]))
        at = stop
    return found


@pytest.mark.parametrize("seed", range(60))
def test_interleaved_segment_keeps_the_rules(seed: int) -> None:
    spoken, made = utterance(seed), Sequence()
    sequences.add_segment(made, spoken, np.random.default_rng(seed), interleaved=True)
    parts = blocks(made.ids)
    assert "".join(text for text, _, _ in parts).rstrip() == spoken.text
    audio = [token for _, _, tokens in parts for token in tokens]
    assert audio == [*spoken.audio.tolist(), EOS]
    assert [final for _, final, _ in parts] == [*[False] * (len(parts) - 1), True]
    given, begun = 0, 0
    for text, final, tokens in parts[:-1]:
        assert not final
        assert text.endswith(" ")
        given += len(layout.spoken_words(text))
        begun += tokens.count(WORD)
        assert len(tokens) % BLOCK_TOKENS == 0
        assert tokens
        assert begun <= given - 1
    if len(parts) > 1:
        assert len(parts[0][0]) >= layout.MIN_TEXT_BYTES


def test_loss_falls_on_audio_and_end_only() -> None:
    made = Sequence()
    sequences.add_prefix(made, utterance(1))
    for seed in (2, 3):
        sequences.add_segment(made, utterance(seed), np.random.default_rng(seed), interleaved=True)
    for token, loss in zip(made.ids, made.loss, strict=True):
        assert loss == (token >= layout.CODE_BASE or token in (WORD, EOS))
    assert made.ids.count(EOS) == 2


def test_slow_text_falls_back_to_full_form() -> None:
    made = Sequence()
    spoken = utterance(5, codes_per_char=0.6)  # speaks faster than text could be given
    sequences.add_segment(made, spoken, np.random.default_rng(0), interleaved=True)
    assert "".join(text for text, _, _ in blocks(made.ids)).rstrip() == spoken.text


def test_word_stands_before_its_first_code() -> None:
    audio = sequences.audio_tokens(np.arange(6), np.array([0, 2, 2, 5]))
    codes = [layout.CODE_BASE + c for c in range(6)]
    assert audio.tolist() == [WORD, *codes[:2], WORD, WORD, *codes[2:5], WORD, codes[5]]
