"""The speech LM on vLLM, in process: an `AsyncLLM` with its engine core as a child process.

The only module that imports vllm, and only when it starts. Arguments are filtered by what the installed vLLM
knows, so that one code base serves several versions.
"""

import asyncio
import dataclasses
import gc
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from engine import vllm_noise
from engine.errors import EngineDead, GenerationFailed, RequestRejected
from engine.interrupts import children_uninterrupted
from engine.lm import LmHealth, LmRequest, LmState, TokenChunk, check_request


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """How vLLM runs the model.

    Attributes:
        folder: Hugging Face style folder of the LM.
        dtype: ``float32`` gives the same tokens alone and in a batch; ``bfloat16`` is faster.
        device: ``cpu`` or ``cuda``; decides about defaults below that only the CPU needs.
        threads: OpenMP threads of the engine core (CPU).
        kv_cache_bytes: memory of the KV cache; None leaves it to vLLM (CUDA).
        max_num_seqs: requests that run at once; further ones wait.
        max_model_len: most tokens of prompt and output together.
        compile: compile the model (slower start; needs a C++ compiler at run time on the CPU).
        prefix_caching: reuse KV of equal prompt beginnings.
        start_timeout_s: longest start-up.
    """

    folder: Path
    dtype: Literal["float32", "bfloat16", "float16", "auto"] = "bfloat16"
    device: Literal["cpu", "cuda"] = "cpu"
    threads: int = 1
    kv_cache_bytes: int | None = 256 << 20
    max_num_seqs: int = 64
    max_model_len: int = 2048
    compile: bool = False
    prefix_caching: bool = True
    start_timeout_s: float = 300.0


class VllmLM:
    """`SpeechLM` on an in-process `AsyncLLM`.

    vLLM spawns its engine core, so the program's entry module needs an ``if __name__ == "__main__"`` guard.
    """

    def __init__(self, settings: VllmSettings, vocab_size: int) -> None:
        self.settings = settings
        self.vocab_size = vocab_size
        self.max_context = settings.max_model_len
        self._engine: Any = None
        self._vllm: _Names | None = None
        self._state: LmState = "stopped"
        self._live: dict[str, bool] = {}
        """Requests by id: whether the first token has come."""

    async def start(self) -> None:
        folder = self.settings.folder
        if not (folder / "config.json").is_file():
            raise EngineDead(f"{folder} is no model: it has no config.json")
        self._state = "starting"
        build = asyncio.get_running_loop().run_in_executor(None, self._build)
        try:
            # Nothing is cancelled by `wait`: a start that is given up on shuts down when it has ended.
            await asyncio.wait({build}, timeout=self.settings.start_timeout_s)
        finally:
            if not build.done():
                build.add_done_callback(self._shut_down_late)
            self._state = "stopped"
        if not build.done():
            raise EngineDead(f"vLLM did not start within {self.settings.start_timeout_s:.0f} s")
        # vLLM passes on whatever torch, safetensors or the child process raised.
        if error := build.exception():
            raise EngineDead(f"vLLM did not start: {type(error).__name__}: {error}") from error
        self._state = "ready"

    def _build(self) -> None:
        """Blocks for seconds: imports vllm and waits for the engine core.

        Returns nothing: something in vllm keeps the frames of this call, and with them what it returned.
        """
        _set_environment(self.settings)
        self._vllm = _Names.load()
        args = self._vllm.engine_args(**_known(self._vllm.engine_args, _engine_args(self.settings)))
        with children_uninterrupted():
            self._engine = self._vllm.async_llm.from_engine_args(args)

    async def stop(self) -> None:
        engine, self._engine = self._engine, None
        self._state = "stopped"
        if engine is not None:
            loop = asyncio.get_running_loop()
            if not self._live and engine.output_handler is not None:
                engine.output_handler.cancel()  # or it reports the shutdown as a crash
            await loop.run_in_executor(None, engine.shutdown)
            _close_context(engine)
            del engine
            # It sits in reference cycles, and its finaliser fails when the interpreter is going down.
            await loop.run_in_executor(None, gc.collect)

    def _shut_down_late(self, build: "asyncio.Future[None]") -> None:
        """A start that was given up on has ended after all."""
        engine, self._engine = self._engine, None
        if not build.cancelled() and build.exception() is None and engine is not None:
            engine.shutdown()

    async def generate(self, request: LmRequest) -> AsyncGenerator[TokenChunk, None]:
        check_request(request, self.vocab_size, self.max_context)
        engine, names = self._alive()
        if request.request_id in self._live:
            raise RequestRejected("request_id", f"{request.request_id!r} is in use")
        self._live[request.request_id] = False
        outputs: AsyncGenerator[Any, None] = engine.generate(
            # vLLM extends the list it is given in place: it gets its own.
            _prompt(request),
            names.sampling(request),
            request_id=request.request_id,
            priority=request.priority,
        )
        try:
            async with aclosing(outputs):
                async for output in outputs:
                    self._live[request.request_id] = True
                    chunk = _chunk(output, request)
                    if chunk is not None:
                        yield chunk
        except names.dead as error:
            raise self._died(str(error)) from error
        except names.rejected as error:
            raise RequestRejected("request", str(error)) from error
        except names.failed as error:
            raise GenerationFailed(f"vLLM: {error.__cause__ or error}") from error
        finally:
            self._live.pop(request.request_id, None)

    async def abort(self, request_id: str) -> None:
        if self._engine is not None and request_id in self._live:
            await self._engine.abort(request_id)

    async def check(self) -> None:
        engine, names = self._alive()
        try:
            await engine.check_health()
        except names.dead as error:
            raise self._died(str(error)) from error

    def health(self) -> LmHealth:
        running = sum(self._live.values())
        return LmHealth(self._state, running, len(self._live) - running)

    def _alive(self) -> tuple[Any, "_Names"]:
        if self._engine is None or self._vllm is None:
            raise EngineDead(f"vLLM is {self._state}")
        if self._engine.errored:
            raise self._died("the engine core is gone")
        return self._engine, self._vllm

    def _died(self, reason: str) -> EngineDead:
        self._state = "stopped"
        return EngineDead(f"vLLM: {reason}")


@dataclass(frozen=True)
class _Names:
    """What is used of vllm, imported when it starts: importing takes seconds."""

    async_llm: Any
    engine_args: Any
    sampling_params: Any
    delta: Any
    dead: type[Exception]
    failed: type[Exception]
    rejected: type[Exception]

    @classmethod
    def load(cls) -> "_Names":
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.exceptions import VLLMValidationError
        from vllm.sampling_params import RequestOutputKind, SamplingParams
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        return cls(
            async_llm=AsyncLLM,
            engine_args=AsyncEngineArgs,
            sampling_params=SamplingParams,
            delta=RequestOutputKind.DELTA,
            dead=EngineDeadError,
            failed=EngineGenerateError,
            rejected=VLLMValidationError,
        )

    def sampling(self, request: LmRequest) -> Any:
        sampling = request.sampling
        values = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "repetition_penalty": sampling.repetition_penalty,
            "seed": sampling.seed,
            "max_tokens": request.max_tokens,
            "allowed_token_ids": list(request.allowed),
            "stop_token_ids": [request.end] if request.end in request.allowed else None,
            "ignore_eos": True,
            "detokenize": False,
            "output_kind": self.delta,
            "skip_clone": True,
        }
        fields = self.sampling_params.__struct_fields__
        return self.sampling_params(**{name: value for name, value in values.items() if name in fields})


def _close_context(engine: Any) -> None:
    """VLLM leaves its ZeroMQ context, with its file descriptors, to the garbage collector."""
    resources = vars(engine.engine_core).get("resources")
    context = vars(resources).get("ctx") if resources is not None else None
    if context is not None:
        context.destroy(linger=0)


def _engine_args(settings: VllmSettings) -> dict[str, object]:
    cpu = settings.device == "cpu"
    return {
        "model": str(settings.folder),
        "skip_tokenizer_init": True,
        "dtype": settings.dtype,
        "enforce_eager": cpu and not settings.compile,
        # On the CPU 128 is the default and 32 the smallest that works; a new request per text block is cheap
        # only when little of its history lies past the last full block.
        "block_size": 32 if cpu else None,
        "kv_cache_memory_bytes": settings.kv_cache_bytes,
        "max_num_seqs": settings.max_num_seqs,
        "max_model_len": settings.max_model_len,
        # A prompt is read in one step or waits for the next: on the CPU vLLM's engine core dies of a seeded
        # request that was read in part ("CPU Generator does not use offset"), and every request has a seed.
        "enable_chunked_prefill": False if cpu else None,
        "max_num_batched_tokens": max(settings.max_model_len, settings.max_num_seqs) if cpu else None,
        "enable_prefix_caching": settings.prefix_caching,
        "scheduling_policy": "priority",
        "use_tqdm_on_load": False,
        "generation_config": "vllm",  # ours are decided before; vLLM must not mix in the folder's
    }


def _set_environment(settings: VllmSettings) -> None:
    """VLLM reads these when it is imported, and its engine core when it is spawned."""
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    vllm_noise.hush()
    if settings.device == "cpu":
        # One engine process instead of two: starts in 11 s instead of 40, and no polling worker.
        os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
        os.environ["OMP_NUM_THREADS"] = str(settings.threads)
        if settings.compile:
            os.environ.setdefault("VLLM_USE_AOT_COMPILE", "0")  # its cache never loads on the CPU


def _known(cls: Any, values: dict[str, object]) -> dict[str, object]:
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in values.items() if name in names and value is not None}


def _prompt(request: LmRequest) -> dict[str, object]:
    prompt: dict[str, object] = {"prompt_token_ids": list(request.prompt)}
    if request.cache_salt is not None:
        prompt["cache_salt"] = request.cache_salt
    return prompt


def _chunk(output: Any, request: LmRequest) -> TokenChunk | None:
    """What is new in a `RequestOutput`; None when nothing is (an abort)."""
    completion = output.outputs[0]
    ids = tuple(completion.token_ids)
    finished: Literal["end", "length"] | None = None
    if output.finished:
        finished = "end" if ids and ids[-1] == request.end else "length"
        if completion.finish_reason == "abort":
            return None
    queue_ms = prefill_ms = 0.0
    if (stats := output.metrics) is not None:
        queue_ms = (stats.scheduled_ts - stats.queued_ts) * 1000
        prefill_ms = (stats.first_token_ts - stats.scheduled_ts) * 1000
    return TokenChunk(ids, finished, output.num_cached_tokens or 0, queue_ms, prefill_ms)
