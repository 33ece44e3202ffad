"""The embedded model without a server around it: the same words and seeds, PCM before any encoder."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.contract import PcmChunk, Samples, Sampling, SpeechEngine, SpeechRequest
from realtime.text.front_end import TextFrontEnd
from web.engines import make_engine
from web.settings import Settings


async def speak_offline(model: Path, lines: Sequence[tuple[str, str]], seed: int) -> list[Samples]:
    """Let ``model``, in float32, speak (text, voice) lines one by one with ``seed``, a sentence at a time."""
    engine = make_engine(Settings(model=str(model), dtype="float32"))
    await engine.start()
    try:
        return [await _speak(engine, f"offline-{i}", *line, seed) for i, line in enumerate(lines)]
    finally:
        await engine.stop()


async def _speak(engine: SpeechEngine, name: str, text: str, voice: str, seed: int) -> Samples:
    front_end = TextFrontEnd("sentence", streaming=False)
    pieces = [*front_end.push(text), *front_end.flush()]
    pcm = [np.zeros(0, np.float32)]
    async with engine.open(SpeechRequest(name, voice, Sampling(seed=seed))) as stream:
        for piece in pieces:
            stream.push(piece.words, end_segment=piece.end_segment)
        stream.finish()
        async for event in stream:
            if isinstance(event, PcmChunk):
                pcm.append(event.samples)
            stream.grant(1 << 62)
    return np.concatenate(pcm)
