"""Training sequences of the language model: pure functions from utterances to token ids and loss masks.

The format is described in `engine.models.ember.layout`. Loss falls on audio tokens and `EOS` only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.models.ember import layout
from engine.models.ember.layout import BLOCK_TOKENS, EOS, WORD

_SIZES = (8, 96)
_MOST_BLOCKS = 4
_EMPTY_FINAL = 0.1


@dataclass(frozen=True, slots=True)
class Spoken:
    """An utterance: what was said, and its audio tokens (codes and `WORD`)."""

    text: str
    audio: NDArray[np.int32]


@dataclass(slots=True)
class Sequence:
    """Token ids with a mask of those that carry loss."""

    ids: list[int] = field(default_factory=list)
    loss: list[bool] = field(default_factory=list)

    def given(self, ids: list[int]) -> None:
        """Appends tokens the model is given."""
        self.ids += ids
        self.loss += [False] * len(ids)

    def spoken(self, ids: list[int]) -> None:
        """Appends tokens the model must produce."""
        self.ids += ids
        self.loss += [True] * len(ids)


@dataclass(frozen=True, slots=True)
class Cut:
    """One block of an interleaved segment: ends of its text and of its audio."""

    text_end: int
    audio_end: int


def audio_tokens(codes: NDArray[np.integer], word_at: NDArray[np.integer]) -> NDArray[np.int32]:
    """Token ids of an utterance, `WORD` right before the first code of each word."""
    ids = codes.astype(np.int32) + layout.CODE_BASE
    return np.insert(ids, word_at, WORD)


def _cuts_after(text: str, start: int, size: int) -> list[int]:
    """Word ends at least `size` characters after `start` that leave some text over."""
    ends, at = [], text.find(" ", start + size - 1)
    while 0 <= at < len(text) - 1:
        ends.append(at + 1)
        at = text.find(" ", at + 1)
    return ends


def interleave(spoken: Spoken, rng: np.random.Generator, *, varied: bool) -> list[Cut] | None:
    """Non-final blocks of an interleaved segment.

    Holds at the end of each block: of the words given so far at least one has not begun yet.

    Args:
        spoken: the utterance.
        rng: source of the block sizes.
        varied: random sizes; otherwise the shortest cut of `MIN_TEXT_BYTES` and one `BLOCK_TOKENS`.

    Returns:
        One cut a block, or None where the rule leaves no non-final block.
    """
    text, total = spoken.text, len(spoken.audio)
    begun = np.concatenate([[0], np.cumsum(spoken.audio == WORD)])
    cuts: list[Cut] = []
    text_at = audio_at = 0
    while True:
        size = layout.MIN_TEXT_BYTES
        if varied:
            size = int(rng.integers(_SIZES[0] if cuts else size, _SIZES[1]))
        blocks = int(rng.integers(1, _MOST_BLOCKS + 1)) if varied else 1
        ends = _cuts_after(text, text_at, size)
        cut = None
        for end in ends if varied else ends[:1]:
            given = len(layout.spoken_words(text[:end]))
            for count in range(blocks, 0, -1):
                audio_end = audio_at + count * BLOCK_TOKENS
                if audio_end < total and begun[audio_end] < given:
                    cut = Cut(end, audio_end)
                    break
            if cut:
                break
        if cut is None:
            if ends and not varied and audio_at + BLOCK_TOKENS < total:
                return None  # The fixed rule would ask for a word that was not given.
            return cuts or None
        cuts.append(cut)
        text_at, audio_at = cut.text_end, cut.audio_end


def _add_segment(sequence: Sequence, spoken: Spoken, cuts: list[Cut]) -> None:
    text_at = audio_at = 0
    for cut in cuts:
        text = spoken.text[text_at : cut.text_end]
        if cut.text_end == len(spoken.text):
            text += " "  # as before any text that may still follow
        sequence.given(layout.text_block(text, final=False))
        sequence.spoken(spoken.audio[audio_at : cut.audio_end].tolist())
        text_at, audio_at = cut.text_end, cut.audio_end
    sequence.given(layout.text_block(spoken.text[text_at:], final=True))
    sequence.spoken([*spoken.audio[audio_at:].tolist(), EOS])


def _last_text_early(spoken: Spoken, cuts: list[Cut]) -> list[Cut]:
    """Gives all text before the last non-final block, so that the final text block is empty."""
    return [*cuts[:-1], Cut(len(spoken.text), cuts[-1].audio_end)]


def add_segment(sequence: Sequence, spoken: Spoken, rng: np.random.Generator, *, interleaved: bool) -> None:
    """Appends one segment, in full-text form where it cannot be interleaved."""
    cuts: list[Cut] = []
    if interleaved:
        cuts = interleave(spoken, rng, varied=bool(rng.random() < 0.5)) or []
    if cuts and rng.random() < _EMPTY_FINAL:
        cuts = _last_text_early(spoken, cuts)
    _add_segment(sequence, spoken, cuts)


def add_prefix(sequence: Sequence, reference: Spoken | None) -> None:
    """Appends the voice prefix, or just `BOS` without a voice."""
    if reference is None:
        sequence.given([layout.BOS])
        return
    audio = reference.audio.tolist()
    prefix = layout.voice_prefix(reference.text, audio)
    sequence.given(prefix[: len(prefix) - len(audio)])
    sequence.spoken(audio)
