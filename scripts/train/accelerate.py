"""Compilation and CUDA-graph capture of the codec's training step."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import torch

from engine.models.ember.codec import Block
from scripts.train.codec_step import CodecTrainer

_COMPILED_VARIANTS = 64
_WARM_UP_STEPS = 3


class Mode(StrEnum):
    """How the step runs, fastest first; each later mode needs less of the machine."""

    FULL = "full"
    GRAPH = "graph"
    COMPILE = "compile"
    EAGER = "eager"


def compile_parts(trainer: CodecTrainer, backend: str = "inductor") -> None:
    """Compiles the ConvNeXt block (one program a shape, shared by all blocks) and the spectral loss."""
    torch._dynamo.config.recompile_limit = _COMPILED_VARIANTS
    Block.forward = torch.compile(Block.forward, dynamic=False, backend=backend)  # type: ignore[method-assign]
    trainer.distance = torch.compile(trainer.spectral.distance, dynamic=False, backend=backend)


def capture(trainer: CodecTrainer) -> Callable[[], None]:
    """Captures the whole step, both optimisers included, as one CUDA graph; returns its replay."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(_WARM_UP_STEPS):
            trainer.step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    trainer.generator_optimiser.zero_grad(set_to_none=True)
    trainer.disc_optimiser.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    # Other threads (the shard reader) may touch the driver meanwhile.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        trainer.step()
    graph.replay()
    torch.cuda.synchronize()
    return graph.replay


def prepare(trainer: CodecTrainer, mode: Mode) -> Callable[[], None]:
    """Warms up on noise and returns the fastest step of `mode`; the weights are as before."""
    saved = trainer.snapshot()
    trainer.wave.normal_().mul_(0.05)
    trainer.reference.normal_().mul_(0.05)
    if mode in (Mode.FULL, Mode.COMPILE):
        compile_parts(trainer)
    for _ in range(2):
        trainer.step()
        trainer.evaluate()
    cuda = trainer.device.startswith("cuda")
    run = capture(trainer) if cuda and mode in (Mode.FULL, Mode.GRAPH) else trainer.step
    trainer.restore(saved)
    return run
