"""N sessions at once whose texts arrive at a language model's pace, each watched by a simulated player."""

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from realtime.client import connect
from scripts.bench.player import Player

TOKEN_CHARS = 4
"""Characters a token brings on average (English, common tokenisers)."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to offer.

    ``think_s`` is the pause of a session from the end of an utterance's playback to the next one, uniform in
    [0, 2 x it].
    """

    sessions: int
    utterances: int
    tokens_per_s: float = 30.0
    think_s: float = 0.5
    encoding: str = "opus"
    seed: int = 1


@dataclass(slots=True)
class Spoken:
    """One utterance as its listener saw it."""

    ttfp_ms: float
    """From the first text message to the first packet, in the client."""
    server_ttfp_ms: float
    parts: dict[str, float | None]
    audio_s: float
    wall_s: float
    stalls_s: list[float]
    audible: int
    cached: int
    prompt: int
    unheard_s: float
    """What the listener still has to hear when the last packet has come."""


@dataclass(slots=True)
class Outcome:
    """A whole run."""

    load: Load
    spoken: list[Spoken] = field(default_factory=list)
    wall_s: float = 0.0

    @property
    def audio_per_s(self) -> float:
        """Seconds of audio made per second, over all sessions."""
        return sum(u.audio_s for u in self.spoken) / self.wall_s if self.wall_s else 0.0


def deltas(text: str, random_: random.Random) -> Iterator[str]:
    """``text`` cut as a language model emits it: pieces of 1 to 7 characters, anywhere."""
    at = 0
    while at < len(text):
        size = random_.randint(1, 2 * TOKEN_CHARS - 1)
        yield text[at : at + size]
        at += size


async def offer(
    url: str, load: Load, texts: Sequence[str], voices: Sequence[str], tick: Callable[[], None]
) -> Outcome:
    """Run ``load``; sessions start spread over two seconds. ``tick`` is called after every utterance."""
    outcome = Outcome(load)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.TaskGroup() as group:
        for number in range(load.sessions):
            group.create_task(_session(url, load, number, texts, voices, outcome, tick))
    outcome.wall_s = loop.time() - begun
    return outcome


async def _session(
    url: str,
    load: Load,
    number: int,
    texts: Sequence[str],
    voices: Sequence[str],
    outcome: Outcome,
    tick: Callable[[], None],
) -> None:
    random_ = random.Random(f"{load.seed}/{number}")
    if load.sessions > 1:
        await asyncio.sleep(random_.uniform(0, 2))
    voice = voices[number % len(voices)]
    async with connect(url, voice=voice, format=load.encoding) as session:
        for _ in range(load.utterances):
            text = random_.choice(texts)
            spoken = await _speak(session.utterance(), text, load, random_)
            outcome.spoken.append(spoken)
            tick()
            # Whoever listens answers when it has been said, not when it has been sent.
            await asyncio.sleep(spoken.unheard_s + random_.uniform(0, 2 * load.think_s))


async def _speak(utterance, text: str, load: Load, random_: random.Random) -> Spoken:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    player = Player()

    async def write() -> None:
        due = loop.time()
        for delta in deltas(text, random_):
            await asyncio.sleep(due - loop.time())
            await utterance.send(delta)
            due += 1 / load.tokens_per_s
        await utterance.end()

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        async for packet in utterance.packets():
            player.arrived(loop.time(), packet.samples / utterance.format.sample_rate)
    done = utterance.done
    assert done is not None, "packets() ends without an error only when done"
    assert utterance.ttfp_ms is not None, "every text here can be spoken"
    return Spoken(
        ttfp_ms=utterance.ttfp_ms,
        server_ttfp_ms=done.ttfp_ms or 0.0,
        parts=dict(done.ttfp_parts),
        audio_s=done.samples / utterance.format.sample_rate,
        wall_s=loop.time() - begun,
        stalls_s=player.stalls_s,
        audible=player.audible,
        cached=done.usage.cached_tokens,
        prompt=done.usage.prompt_tokens,
        unheard_s=max(0.0, player.plays_until_s - loop.time()),
    )
