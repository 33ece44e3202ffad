"""The speech engine: a codec LM, its vocoder, and the utterances that are live."""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from engine.contract import EngineHealth, ModelInfo, PrefixUsage, SpeechRequest
from engine.errors import EngineDead, EngineError, GenerationFailed, Overloaded, RequestRejected
from engine.intake import check_request, find_voice
from engine.lm import LmRequest, LmSampling, SpeechLM
from engine.models.base import SpeechModel
from engine.stream import Parts, StreamPolicy, UtteranceStream
from engine.supervisor import RestartPolicy, Supervisor
from engine.vocoder import Vocoder

_FIRST = -(10**9)
"""Priority of a probe: it must not wait behind the streams it protects."""
_MAX_WARM = 256
"""Voices that are warmed again after a restart, latest used."""
_KEPT_WARM = 12
"""Voices whose prefixes are touched in turn."""
_GREEDY = LmSampling(temperature=0.0, top_p=1.0, top_k=0, repetition_penalty=1.0, seed=None)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Size and placement of the engine.

    Attributes:
        max_streams: utterances at once; more are refused with `Overloaded`.
        device: torch device of the vocoder.
        vocoder_bfloat16: decode in bfloat16; None: where the processor is fast at it.
        vocoder_threads: torch threads of a vocoder step.
        retry_after_s: what a refused caller is told.
        policy: how each utterance is made.
        restart: how a death is noticed and mended.
    """

    max_streams: int = 64
    device: str = "cpu"
    vocoder_bfloat16: bool | None = None
    vocoder_threads: int = 1
    retry_after_s: float = 1.0
    policy: StreamPolicy = field(default_factory=StreamPolicy)
    restart: RestartPolicy = field(default_factory=RestartPolicy)


class CodecLmEngine:
    """A `SpeechEngine` for models whose LM writes codec tokens.

    Args:
        model: what is spoken.
        lm: runs the model's LM; started and stopped by this engine.
        settings: see `EngineSettings`.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        model: SpeechModel,
        lm: SpeechLM,
        settings: EngineSettings | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._model, self._lm, self._clock = model, lm, clock
        self._settings = settings or EngineSettings()
        self._vocoder: Vocoder[object] | None = None
        self._live: dict[str, UtteranceStream] = {}
        self._warm: dict[tuple[str, str | None], None] = {}
        self._requests = self._probes = 0
        self._supervisor = Supervisor(
            self._settings.restart,
            check=self._check,
            probe=self._probe,
            restart=self._restart,
            lost=self.fail_all,
        )

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    @property
    def live(self) -> int:
        """Utterances that hold anything: an LM request, a vocoder row, a task."""
        return len(self._live)

    async def start(self) -> None:
        await asyncio.gather(self._lm.start(), self._start_vocoder())
        self._supervisor.start()

    async def _start_vocoder(self) -> None:
        settings = self._settings
        voice = self._model.voice(self.info.default_voice)
        loop = asyncio.get_running_loop()
        load = self._model.load_codec
        codec = await loop.run_in_executor(None, load, settings.device, settings.vocoder_bfloat16)
        self._vocoder = Vocoder(
            codec,
            rows=settings.max_streams,
            speaker_size=len(voice.speaker),
            device=settings.device,
            threads=settings.vocoder_threads,
        )
        await self._vocoder.start()

    async def stop(self) -> None:
        await self._supervisor.stop()
        self.fail_all(EngineDead("the engine was stopped"))
        await self._lm.stop()
        if self._vocoder is not None:
            await self._vocoder.stop()

    def fail_all(self, error: EngineError) -> None:
        """Let every live utterance raise ``error``."""
        for stream in list(self._live.values()):
            stream.fail(error)

    async def prewarm(self, voice: str, cache_salt: str | None = None) -> PrefixUsage:
        find_voice(self.info, voice)
        usage = await self._touch(voice, cache_salt, priority=0)
        self._warm.pop((voice, cache_salt), None)
        self._warm[voice, cache_salt] = None
        if len(self._warm) > _MAX_WARM:
            del self._warm[next(iter(self._warm))]
        return usage

    async def _touch(self, voice: str, cache_salt: str | None, priority: int) -> PrefixUsage:
        """Run a voice's prefix through the LM, which puts or keeps it in the prefix cache."""
        prefix, layout = self._model.voice(voice).prefix, self._model.layout
        self._requests += 1
        request = LmRequest(
            request_id=f"prefix-{self._requests}",
            # An LM never reuses the last id of a prompt: with something behind it the whole prefix is found.
            prompt=[*prefix, *layout.text_block("", False)],
            max_tokens=1,
            allowed=layout.audio,
            end=layout.end,
            sampling=_GREEDY,
            priority=priority,
            cache_salt=cache_salt,
        )
        cached = 0
        timeout = self._settings.policy.generation.token_timeout_s
        try:
            async with asyncio.timeout(timeout), aclosing(self._lm.generate(request)) as chunks:
                async for chunk in chunks:
                    cached = chunk.cached_tokens
        except TimeoutError as error:
            raise GenerationFailed(f"no token within {timeout:.0f} s") from error
        return PrefixUsage(len(prefix), min(cached, len(prefix)))

    async def _check(self) -> None:
        await self._lm.check()
        if self._vocoder is None or not self._vocoder.running:
            raise EngineDead("the vocoder has stopped")

    async def _probe(self) -> None:
        """Touch one of the voices in use, in turn: that keeps its prefix from being evicted, too."""
        recent = list(self._warm)[-_KEPT_WARM:] or [(self.info.default_voice, None)]
        self._probes += 1
        voice, cache_salt = recent[self._probes % len(recent)]
        await self._touch(voice, cache_salt, priority=_FIRST)

    async def _restart(self) -> None:
        if self._vocoder is None or not self._vocoder.running:
            await self._start_vocoder()
            if await self._lm_lives():
                return
        await self._lm.stop()
        await self._lm.start()
        for voice, cache_salt in list(self._warm):
            await self._touch(voice, cache_salt, priority=0)

    async def _lm_lives(self) -> bool:
        try:
            await self._lm.check()
        except EngineDead:
            return False
        return True

    def open(self, request: SpeechRequest) -> UtteranceStream:
        state = self._supervisor.state
        if self._vocoder is None or state != "ready":
            raise EngineDead(f"the engine is {state}")
        check_request(self.info, request)
        if request.request_id in self._live:
            raise RequestRejected("request_id", f"{request.request_id!r} is in use")
        limit = self._settings.max_streams
        if len(self._live) >= limit:
            raise Overloaded(f"all {limit} streams are in use", self._settings.retry_after_s)
        parts = Parts(self._model, self._lm, self._vocoder, self._settings.policy, self._clock)
        seed = request.sampling.seed if request.sampling.seed is not None else secrets.randbits(63)
        voice = self._model.voice(request.voice)
        stream = UtteranceStream(parts, request, voice, seed, lambda: self.release(request.request_id))
        self._live[request.request_id] = stream
        return stream

    def release(self, request_id: str) -> None:
        """Forget an utterance that holds nothing any more; an unknown id is ignored."""
        self._live.pop(request_id, None)

    def health(self) -> EngineHealth:
        lm = self._lm.health()
        state, restarts = self._supervisor.state, self._supervisor.restarts
        if lm.state == "starting" and state == "stopped":
            state = "starting"
        return EngineHealth(state, running=len(self._live), waiting=lm.waiting, restarts=restarts)
