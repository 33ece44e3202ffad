"""The engine that the settings ask for."""

from engine.contract import SpeechEngine
from engine.models import registry
from engine.speech import CodecLmEngine, EngineSettings
from engine.vllm_lm import VllmLM, VllmSettings
from web.settings import Settings

_KV_CACHE_BYTES = 512 << 20
"""Of the CPU: 64k tokens of the embedded model in bfloat16. On a GPU vLLM takes what is free."""
_OWN_REQUESTS = 2
"""A prewarm and a probe may run beside the streams."""


def make_engine(settings: Settings) -> SpeechEngine:
    """An engine, not started yet: only the model's description has been read. Raises `ModelUnusable`."""
    model = registry.load(settings.model)
    device = settings.device
    if device == "auto":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
    lm = VllmLM(
        VllmSettings(
            folder=model.lm_folder,
            dtype=settings.dtype,
            device=device,
            threads=settings.threads,
            kv_cache_bytes=_KV_CACHE_BYTES if device == "cpu" else None,
            max_num_seqs=settings.streams + _OWN_REQUESTS,
        ),
        model.layout.vocab_size,
    )
    return CodecLmEngine(
        model,
        lm,
        EngineSettings(
            max_streams=settings.streams,
            device=device,
            # Who asks for float32 wants speech that no neighbour in a batch changes: the vocoder's too.
            vocoder_bfloat16=False if settings.dtype == "float32" else None,
        ),
    )
