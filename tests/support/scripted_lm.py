"""A `SpeechLM` that follows a script: what it says, how slowly, and what goes wrong."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from engine.errors import EngineDead
from engine.lm import LmHealth, LmRequest, LmState, TokenChunk, check_request
from engine.models.ember import layout

Script = Callable[[LmRequest], Sequence[int]]


def spoken_text(ids: Sequence[int]) -> str:
    """The text bytes among ``ids``."""
    return "".join(chr(i - layout.BYTE_BASE) for i in ids if layout.BYTE_BASE <= i < layout.CODE_BASE)


def word_codes(index: int, word: str) -> list[int]:
    """What `reader` says for the ``index``-th word of a segment: three codes a character, of its own."""
    return [100 * (index % 80) + at for at in range(3 * (len(word) + 1))]


def reader(skip: Callable[[LmRequest], int] = lambda _: 0) -> Script:
    """Reads like the trained model, from the prompt alone: for each word WORD and its codes, at last EOS.

    ``skip`` says how many of the last words to leave out in a final block.
    """

    def script(request: LmRequest) -> list[int]:
        prompt = list(request.prompt)
        begin = prompt.index(layout.TEXT)
        while layout.EOS in prompt[begin:]:
            begin += prompt[begin:].index(layout.EOS) + 1
        segment = prompt[begin:]
        words = layout.spoken_words(spoken_text(segment))
        if not words and layout.END_TEXT not in segment:
            return [layout.CODE_BASE]  # a prewarm: anything will do
        said = sum(token == layout.WORD or token >= layout.CODE_BASE for token in segment)
        final = layout.END_TEXT in segment
        tokens: list[int] = []
        for index, word in enumerate(words[: len(words) - (skip(request) if final else 0)]):
            tokens += [layout.WORD, *(layout.CODE_BASE + code for code in word_codes(index, word))]
        tokens = tokens[said:]
        if final:
            tokens.append(layout.EOS)
        else:
            assert len(tokens) > request.max_tokens, "asked for words that were not given"
        return tokens[: request.max_tokens]

    return script


@dataclass(frozen=True, slots=True)
class LmFault:
    """Happens at token ``at`` of a request: raise ``error``, say the id ``token``, or ``stall`` for ever."""

    at: int = 0
    error: Exception | None = None
    token: int | None = None
    stall: bool = False


@dataclass(eq=False)
class ScriptedLM:
    """Says what ``script`` tells, ``chunk`` ids at a time; ``faults`` by utterance id."""

    script: Script
    chunk: int = 1
    step_s: float = 0.0
    vocab_size: int = layout.VOCAB_SIZE
    max_context: int = 2048
    faults: dict[str, LmFault] = field(default_factory=dict)
    requests: list[LmRequest] = field(default_factory=list)
    live: set[str] = field(default_factory=set)
    state: LmState = "stopped"
    dead: bool = False
    starts: int = 0
    _cached: set[tuple[object, ...]] = field(default_factory=set)

    async def start(self) -> None:
        self.state = "ready"
        self.starts += 1

    async def stop(self) -> None:
        self.state = "stopped"

    async def generate(self, request: LmRequest) -> AsyncGenerator[TokenChunk, None]:
        check_request(request, self.vocab_size, self.max_context)
        self.requests.append(request)
        self.live.add(request.request_id)
        fault = self.faults.get(request.request_id.rsplit(".", 1)[0])
        try:
            tokens = list(self.script(request))
            for at in range(0, len(tokens), self.chunk):
                await asyncio.sleep(self.step_s)
                ids = tokens[at : at + self.chunk]
                if fault and at <= fault.at < at + len(ids):
                    if fault.error is not None:
                        raise fault.error
                    if fault.stall:
                        await asyncio.Event().wait()
                    if fault.token is not None:
                        ids[fault.at - at] = fault.token
                if self.dead:
                    raise EngineDead("the scripted LM died")
                over = at + self.chunk >= len(tokens)
                ended = ids[-1] == request.end
                yield TokenChunk(
                    tuple(ids), "end" if ended else "length" if over else None, self._hit(request)
                )
        finally:
            self.live.discard(request.request_id)

    async def abort(self, request_id: str) -> None:
        self.live.discard(request_id)

    async def check(self) -> None:
        if self.dead:
            raise EngineDead("the scripted LM died")

    def health(self) -> LmHealth:
        return LmHealth(self.state, len(self.live), 0)

    def _hit(self, request: LmRequest) -> int:
        """Whole blocks of 32 ids seen at the beginning of a prompt before, like a prefix cache."""
        prompt, hit = tuple(request.prompt), 0
        for end in range(32, len(prompt), 32):
            if (request.cache_salt, *prompt[:end]) in self._cached:
                hit = end
            self._cached.add((request.cache_salt, *prompt[:end]))
        return hit
