"""The LM's side of one utterance: asks for block after block and puts what comes back into the outbox."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from engine.blocks import Continue, Give, Progress, Wait, may_end, next_step, token_bound, word_bound
from engine.contract import SpeechRequest, SpokenWord, Usage
from engine.errors import GenerationFailed, InvalidTokens, RequestRejected, Runaway
from engine.intake import WordFeed
from engine.lm import LmRequest, LmSampling, SpeechLM, TokenChunk
from engine.models.base import SpeechModel, segment_text
from engine.outbox import Outbox, SegmentEnd, Word

_PRIORITY_STEP = 1_000_000
"""Of the LM's priorities, one of ours; between two of them lies the lead in steps of 2 ms."""


_TRUNCATED_WORDS = 2


@dataclass(frozen=True, slots=True)
class GenerationPolicy:
    """How an utterance is generated.

    Attributes:
        lead_samples: audio that may be made before the first `grant`.
        remakes: how often a segment whose words are not complete is made again, while nothing of it has left.
        resumes: how often a segment that ends with words missing, and was heard already, is made to go on.
        token_timeout_s: longest wait for the LM's next token.
        cut_runaways: end a segment at its bound instead of failing. For work with untrained weights only.
    """

    lead_samples: int = 4 * 24_000
    remakes: int = 1
    resumes: int = 1
    token_timeout_s: float = 30.0
    cut_runaways: bool = False


@dataclass(slots=True)
class Marks:
    """Moments (clock seconds) and figures on the way to the first code."""

    begun_after: int | None = None
    """Calls of `Generation.push` and `Generation.finish` before the first request; None: not made yet."""
    usage: Usage | None = None
    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    first_token_s: float | None = None
    first_code_s: float | None = None


@dataclass(slots=True)
class _Segment:
    """A segment being made.

    ``ids``: its text blocks and audio tokens; ``audio``: how many are audio; ``since``: how many since the
    last word began, of at most ``limit``; ``held``: it must not end in its next block.
    """

    index: int
    attempt: int
    progress: Progress
    ids: list[int] = field(default_factory=list)
    audio: int = 0
    since: int = 0
    limit: int = word_bound("")
    resumed: int = 0
    held: bool = False
    ended: bool = False


class Generation:
    """Feeds one utterance's words to the LM. `run` is the task; all else may be called while it runs.

    Args:
        model, lm, policy: what is spoken, by what, and how.
        request: the utterance.
        prefix: the voice's token ids.
        seed: seed of the whole utterance.
        outbox: where codes and word boundaries go.
        changed: set whenever the outbox or `idle` has changed.
        clock: monotonic seconds.
        lead_s: how much audio the listener still has, in seconds: who has least is served first.
    """

    def __init__(
        self,
        model: SpeechModel,
        lm: SpeechLM,
        policy: GenerationPolicy,
        request: SpeechRequest,
        prefix: Sequence[int],
        seed: int,
        outbox: Outbox,
        changed: asyncio.Event,
        clock: Callable[[], float],
        lead_s: Callable[[], float],
    ) -> None:
        self._model, self._lm, self._policy, self._request = model, lm, policy, request
        self._prefix, self._seed, self._outbox, self._clock = prefix, seed, outbox, clock
        self._lead_s = lead_s
        self._sampling = request.sampling.over(model.info.defaults)
        self._feed = WordFeed(model.info.max_utterance_words)
        self._granted = policy.lead_samples
        self._history: list[list[int]] = []
        self._requests = 0
        self._changed = changed
        self._input = asyncio.Event()
        self.marks = Marks()
        self.idle = True
        """It waits for text or for a grant: nothing more comes by itself."""
        self.last_token_s = clock()

    def push(self, words: Sequence[SpokenWord], *, end_segment: bool) -> None:
        """See `SpeechStream.push`."""
        for word in words:
            if not self._model.word_pattern.fullmatch(word.spoken):
                raise RequestRejected("words", f"{self._model.info.name} cannot read {word.spoken!r}")
        self._feed.push(words, end_segment=end_segment)
        self._input.set()

    def finish(self) -> None:
        """See `SpeechStream.finish`."""
        self._feed.finish()
        self._input.set()

    def grant(self, until: int) -> None:
        """See `SpeechStream.grant`."""
        self._granted = max(self._granted, until)
        self._input.set()

    async def run(self) -> None:
        """Segment after segment until there is none left. Raises `GenerationFailed`, `EngineDead`."""
        index = 0
        while True:
            while not (self._feed.over(index) or self._feed.begun(index)):
                await self._pause()
            if self._feed.over(index):
                return
            await self._make_segment(index)
            index += 1

    async def _make_segment(self, index: int) -> None:
        """Make a segment, again if words are missing and nothing of it has been heard yet."""
        attempt = 0
        while True:
            segment = _Segment(index, attempt, Progress((), ended=False))
            failure = await self._speak(segment)
            first, count, _ = self._feed.segment(index)
            complete = failure is None and segment.progress.begun == count - first
            if complete or attempt >= self._policy.remakes or not self._outbox.retract():
                break
            attempt += 1
        if failure is not None:
            raise failure
        self._outbox.end_segment(SegmentEnd(count - first, segment.progress.begun, attempt))
        self._changed.set()
        self._remember(segment.ids)

    def _remember(self, ids: list[int]) -> None:
        most = self._model.history_segments
        self._history.append(ids)
        if len(self._history) > most:
            # Down to one, not just below the limit: each drop costs the prefix cache all that follows it.
            self._history = self._history[-1:] if most else []

    async def _speak(self, segment: _Segment) -> Runaway | None:
        """Run one attempt at a segment to its end, or until it has run away."""
        while not segment.ended:
            first, count, ended = self._feed.segment(segment.index)
            words = [word.spoken for word in self._feed.words[first:count]]
            segment.progress = replace(segment.progress, words=words, ended=ended)
            step = next_step(self._model.rules, segment.progress)
            if isinstance(step, Wait) or self._made() > self._granted:
                await self._pause()
                continue
            try:
                await self._run_step(segment, step)
            except Runaway as runaway:
                return None if self._policy.cut_runaways else runaway
        return None

    async def _run_step(self, segment: _Segment, step: Give | Continue) -> None:
        layout, now = self._model.layout, segment.progress
        if self.marks.begun_after is None:
            self.marks.begun_after = self._feed.calls
            self._changed.set()
        if isinstance(step, Give):
            given = now.given + step.words
            text = segment_text(now.words[now.given : given], more=not step.final)
            segment.ids += layout.text_block(text, step.final)
            segment.progress = now = replace(now, given=given, final=step.final, blocks=0)
        tokens = self._fit(segment, self._model.rules.block_tokens if segment.held else step.tokens)
        ends = now.final and not segment.held and may_end(self._model.rules, now, tokens)
        segment.held = False
        self._requests += 1
        request = LmRequest(
            request_id=f"{self._request.request_id}.{self._requests}",
            prompt=[*self._prefix, *(i for ids in self._history for i in ids), *segment.ids],
            max_tokens=tokens,
            allowed=layout.audio_or_end if ends else layout.audio,
            end=layout.end,
            sampling=self._lm_sampling(segment),
            priority=self._priority(),
            cache_salt=self._request.cache_salt,
        )
        got = 0
        timeout = self._policy.token_timeout_s
        clock = asyncio.get_running_loop().time
        try:
            async with asyncio.timeout(timeout) as deadline, aclosing(self._lm.generate(request)) as chunks:
                async for chunk in chunks:
                    deadline.reschedule(clock() + timeout)
                    self.last_token_s = self._clock()
                    self._note_first(request, chunk)
                    got += len(chunk.ids)
                    for token in chunk.ids:
                        self._take_token(segment, token)
                    self._changed.set()
        except TimeoutError as error:
            raise GenerationFailed(f"no token within {timeout:.0f} s") from error
        if got != tokens and not (segment.ended or segment.held):
            raise GenerationFailed(f"the LM stopped after {got} of {tokens} tokens without an end")
        blocks = segment.progress.blocks + got // self._model.rules.block_tokens
        segment.progress = replace(segment.progress, blocks=blocks)

    def _fit(self, segment: _Segment, tokens: int) -> int:
        """``tokens``, or what the context has room for once the oldest history is dropped."""
        model = self._model
        need = len(self._prefix) + len(segment.ids) + tokens
        while self._history and need + sum(map(len, self._history)) > model.context_tokens:
            del self._history[0]
        room = self._lm.max_context - (need - tokens)
        if segment.progress.final and room > 0:
            return min(tokens, room)
        if room < tokens:
            raise GenerationFailed("the segment is longer than the model's context")
        return tokens

    def _lm_sampling(self, segment: _Segment) -> LmSampling:
        """Each request has a seed of its own, told by the utterance's seed and how far it has got."""
        where = f"{self._seed}/{segment.index}/{segment.attempt}/{segment.audio}"
        digest = blake2b(where.encode(), digest_size=4).digest()
        sampling = self._sampling
        return LmSampling(
            temperature=sampling.temperature if sampling.temperature is not None else 1.0,
            top_p=sampling.top_p if sampling.top_p is not None else 1.0,
            top_k=sampling.top_k if sampling.top_k is not None else 0,
            repetition_penalty=sampling.repetition_penalty or 1.0,
            seed=int.from_bytes(digest, "big") & 0x7FFFFFFF,
        )

    def _take_token(self, segment: _Segment, token: int) -> None:
        layout, now = self._model.layout, segment.progress
        if layout.is_code(token):
            self._outbox.put(token - layout.code_base)
            if self.marks.first_code_s is None:
                self.marks.first_code_s = self._clock()
        elif token == layout.word:
            segment.progress = replace(now, begun=now.begun + 1)
            segment.since, segment.limit = 0, word_bound("")
            if now.begun < len(now.words):
                first, _, _ = self._feed.segment(segment.index)
                self._outbox.put(Word(first + now.begun))
                segment.limit = word_bound(now.words[now.begun])
        elif token == layout.end and now.final:
            if self._goes_on(segment):
                return
            segment.ended = True
        else:
            raise InvalidTokens(token)
        segment.ids.append(token)
        segment.audio += 1
        segment.since += 1
        if segment.since > segment.limit:
            raise Runaway(segment.limit, 1)
        if segment.audio > (bound := token_bound(now.words)):
            raise Runaway(bound, len(now.words))

    def _goes_on(self, segment: _Segment) -> bool:
        """Refuse an end that leaves words out, where the segment cannot be made again any more.

        One missing word may as well have been skipped in the middle: then there is nothing to go on with.
        """
        now = segment.progress
        missing = len(now.words) - now.begun
        again = segment.attempt < self._policy.remakes and not self._outbox.heard()
        if missing < _TRUNCATED_WORDS or again or segment.resumed >= self._policy.resumes:
            return False
        segment.resumed += 1
        segment.held = True
        return True

    def _priority(self) -> int:
        """Of equal callers, the one whose listener runs dry first."""
        lead_ms = int(self._lead_s() * 1000)
        return (
            self._request.priority * _PRIORITY_STEP + max(-_PRIORITY_STEP, min(_PRIORITY_STEP, lead_ms)) // 2
        )

    def _note_first(self, request: LmRequest, chunk: TokenChunk) -> None:
        if self.marks.usage is None:
            self.marks.usage = Usage(prompt_tokens=len(request.prompt), cached_tokens=chunk.cached_tokens)
            self.marks.queue_ms, self.marks.prefill_ms = chunk.queue_ms, chunk.prefill_ms
            self.marks.first_token_s = self._clock()

    def _made(self) -> int:
        """Samples of all codes so far, decoded or not."""
        return self._outbox.codes_put * self._model.info.frame_samples

    async def _pause(self) -> None:
        """Wait for text, its end or a grant; what is in the outbox is spoken meanwhile."""
        self.idle = True
        self._changed.set()
        self._input.clear()
        await self._input.wait()
        self.idle = False
