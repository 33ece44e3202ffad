"""The three ways of giving text, with a model that reads from a script."""

import itertools
from collections.abc import Sequence

import pytest

from engine.models.ember import layout
from scripts.eval.forms import Job, Speech, continued, full, interleaved, text_blocks, token_bound
from scripts.eval.lm_engine import Request, Sampling

TEXT = "the train leaves at noon, so there is plenty of time for coffee."
PREFIX = layout.voice_prefix("hello.", [layout.WORD, layout.CODE_BASE])


class ScriptedLm:
    """Says a word and eleven codes again and again; ends a final block after `words` words."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.requests: list[Request] = []

    def generate(self, requests: Sequence[Request]) -> list[list[int]]:
        self.requests += requests
        return [self._speak(request) for request in requests]

    def _speak(self, request: Request) -> list[int]:
        start = len(request.prompt) - 1 - request.prompt[::-1].index(layout.BOS)
        segment = request.prompt[start + len(PREFIX) :]
        word = [layout.WORD, *[layout.CODE_BASE + 7] * 11]
        if not request.final:
            return (word * 9)[: request.limit]
        left = self.words - segment.count(layout.WORD)
        return [*word * max(1, left), layout.EOS]


def jobs(*texts: str) -> list[Job]:
    return [Job(text, PREFIX, Sampling(seed=3)) for text in texts]


def test_text_blocks_join_to_the_text_and_follow_the_rule() -> None:
    blocks = text_blocks(TEXT)
    assert "".join(blocks) == TEXT
    assert all(len(b) >= layout.MIN_TEXT_BYTES and b.endswith(" ") for b in blocks[:-1])
    assert text_blocks("yes.") == ["yes."]


def test_full_is_one_final_block() -> None:
    lm = ScriptedLm(words=3)
    (speech,) = full(lm, jobs("yes it is."))
    assert lm.requests[0].prompt == PREFIX + layout.text_block("yes it is.", final=True)
    assert speech.finished
    assert speech.tokens.count(layout.WORD) == 3
    assert speech.codes == [7] * 33


def test_interleaved_feeds_blocks_of_24_and_keeps_the_history() -> None:
    lm = ScriptedLm(words=13)
    long, short = interleaved(lm, jobs(TEXT, "yes."))
    blocks = text_blocks(TEXT)
    assert long.finished
    assert short.finished
    assert len(long.tokens) == 24 * (len(blocks) - 1) + 12 * (13 - 2 * (len(blocks) - 1))
    own = [
        r for r in lm.requests if r.prompt[len(PREFIX) :][: 1 + 4] == layout.text_block(TEXT, final=False)[:5]
    ]
    assert [r.limit for r in own[:-1]] == [layout.BLOCK_TOKENS] * (len(blocks) - 1)
    assert [r.final for r in own] == [False] * (len(blocks) - 1) + [True]
    for earlier, later in itertools.pairwise(own):
        assert later.prompt[: len(earlier.prompt)] == earlier.prompt
        assert len(later.prompt) > len(earlier.prompt) + layout.BLOCK_TOKENS


def test_continued_comes_after_another_sentence_of_the_same_voice() -> None:
    lm = ScriptedLm(words=2)
    continued(lm, jobs("first one.", "second one."))
    before = PREFIX + layout.text_block("first one.", final=True)
    prompt = lm.requests[-1].prompt
    assert prompt[: len(before)] == before
    assert prompt[-len(layout.text_block("second one.", final=True)) - 1] == layout.EOS


def test_seeds_differ_by_request() -> None:
    lm = ScriptedLm(words=1)
    full(lm, jobs("a", "b"))
    assert lm.requests[0].sampling.seed != lm.requests[1].sampling.seed


def test_speech_notices_a_missing_end() -> None:
    speech = Speech()
    speech.take([layout.WORD, layout.CODE_BASE])
    assert not speech.finished
    speech.take([layout.EOS])
    assert speech.finished
    assert speech.tokens == [layout.WORD, layout.CODE_BASE]


@pytest.mark.parametrize("text", ["yes.", TEXT])
def test_bound_leaves_room(text: str) -> None:
    assert token_bound(text) > 2 * 3.4 * len(text)
