"""Speaking through the running server as a client does."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import soxr

from realtime.client import Done, Pcm, Word, connect
from realtime.client_decoder import Decoder

RATE = 24_000
"""Samples per second of `Said.pcm`, whatever the decoder's own rate."""


@dataclass(frozen=True, slots=True)
class Said:
    """One utterance: what was asked, and what came."""

    text: str
    voice: str
    pcm: Pcm
    payloads: tuple[bytes, ...]
    done: Done
    words: tuple[Word, ...]


async def say(
    url: str,
    text: str,
    voice: str,
    *,
    deltas: Sequence[str] | None = None,
    pause_s: float = 0.0,
    **options: Any,
) -> Said:
    """Speak ``text`` in a session of its own, cut into ``deltas`` that come ``pause_s`` apart."""
    async with connect(url, voice=voice, words=True, **options) as session:
        utterance = session.utterance()

        async def write() -> None:
            for delta in deltas or [text]:
                await utterance.send(delta)
                await asyncio.sleep(pause_s)
            await utterance.end()

        payloads: list[bytes] = []
        pcm: list[Pcm] = [np.zeros(0, np.float32)]
        decoder = Decoder(utterance.format)
        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            async for packet in utterance.packets():
                payloads.append(packet.payload)
                pcm.append(decoder.decode(packet))
        done = utterance.done
        assert done is not None
        if done.samples:
            pcm.append(decoder.finish(done.samples))
        exact = np.concatenate(pcm)
        if session.pcm_rate != RATE:
            exact = soxr.resample(exact, session.pcm_rate, RATE)
        return Said(text, voice, exact, tuple(payloads), done, tuple(utterance.words))


async def say_all(url: str, lines: Sequence[tuple[str, str]], *, at_once: int, **options: Any) -> list[Said]:
    """Speak (text, voice) lines, at most ``at_once`` at a time; results in order."""
    turn = asyncio.Semaphore(at_once)

    async def one(text: str, voice: str) -> Said:
        async with turn:
            return await say(url, text, voice, **options)

    return list(await asyncio.gather(*(one(text, voice) for text, voice in lines)))
