"""The ways a text can be given to the model, each as a batched generation.

full         the whole text in one final block
interleaved  the text in blocks as a stream would bring it, 24 audio tokens after each
continued    the full form, after another sentence of the same voice in the same context
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.models.ember import layout
from scripts.eval.lm_engine import Request, Sampling


class Lm(Protocol):
    """What generates: see `lm_engine.OfflineLm`."""

    def generate(self, requests: Sequence[Request]) -> list[list[int]]:
        """Tokens for every request."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """One text in one voice, with its own sampling settings."""

    text: str
    prefix: list[int]
    sampling: Sampling


@dataclass(slots=True)
class Speech:
    """What the model said.

    Attributes:
        tokens: codes and `WORD`.
        finished: the model ended the segment itself, within the bound.
        starved: blocks at whose end every given word had been begun, so that the model had run ahead of
            its text.
    """

    tokens: list[int] = field(default_factory=list)
    finished: bool = False
    starved: int = 0

    @property
    def codes(self) -> list[int]:
        """Codec codes."""
        return [t - layout.CODE_BASE for t in self.tokens if t >= layout.CODE_BASE]

    def take(self, tokens: list[int]) -> None:
        """Adds drawn tokens and notices the end."""
        self.finished = bool(tokens) and tokens[-1] == layout.EOS
        self.tokens += tokens[:-1] if self.finished else tokens


def token_bound(text: str) -> int:
    """More audio tokens than any sane reading of `text` needs (speech takes about 3.4 a character)."""
    return 80 + 8 * len(text)


def text_blocks(text: str) -> list[str]:
    """Cuts a text as the server does when it streams in; the last piece is the final block."""
    blocks = []
    while size := layout.first_cut(text):
        blocks.append(text[:size])
        text = text[size:]
    return [*blocks, text]


def full(lm: Lm, jobs: Sequence[Job]) -> list[Speech]:
    """One generation a text."""
    requests = [
        Request(
            job.prefix + layout.text_block(job.text, final=True),
            job.sampling.for_request(i),
            token_bound(job.text),
        )
        for i, job in enumerate(jobs)
    ]
    return _speeches(lm.generate(requests))


def _speeches(drawn: Sequence[list[int]]) -> list[Speech]:
    speeches = []
    for tokens in drawn:
        speech = Speech()
        speech.take(tokens)
        speeches.append(speech)
    return speeches


def interleaved(lm: Lm, jobs: Sequence[Job]) -> list[Speech]:
    """A generation for every text block, all texts in step."""
    blocks = [text_blocks(job.text) for job in jobs]
    histories = [list(job.prefix) for job in jobs]
    speeches = [Speech() for _ in jobs]
    for turn in range(max(map(len, blocks), default=0)):
        active = [i for i in range(len(jobs)) if turn < len(blocks[i])]
        requests = []
        for i in active:
            final = turn == len(blocks[i]) - 1
            histories[i] += layout.text_block(blocks[i][turn], final=final)
            limit = token_bound(jobs[i].text) if final else layout.BLOCK_TOKENS
            sampling = jobs[i].sampling.for_request(i + 1000 * turn)
            requests.append(Request(list(histories[i]), sampling, limit, final))
        for i, tokens in zip(active, lm.generate(requests), strict=True):
            speeches[i].take(tokens)
            histories[i] += tokens
            given = len(layout.spoken_words("".join(blocks[i][: turn + 1])))
            waiting = turn < len(blocks[i]) - 1
            speeches[i].starved += waiting and speeches[i].tokens.count(layout.WORD) >= given
    return speeches


def continued(lm: Lm, jobs: Sequence[Job]) -> list[Speech]:
    """Every text after the text of the job before it, spoken in this job's own voice."""
    before = [Job(jobs[i - 1].text, job.prefix, job.sampling) for i, job in enumerate(jobs)]
    first = full(lm, before)
    histories = [
        job.prefix + layout.text_block(job.text, final=True) + speech.tokens + [layout.EOS]
        for job, speech in zip(before, first, strict=True)
    ]
    after = [Job(job.text, history, job.sampling) for job, history in zip(jobs, histories, strict=True)]
    return full(lm, after)


FORMS: dict[str, Callable[[Lm, Sequence[Job]], list[Speech]]] = {
    "full": full,
    "interleaved": interleaved,
    "continued": continued,
}
