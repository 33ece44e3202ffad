"""What the server says is what it was asked to say."""

import itertools
import random
import re
from pathlib import Path

import numpy as np

from scripts.bench.load import deltas
from scripts.bench.served import Served
from scripts.eval.asr import Recogniser
from scripts.eval.scoring import score
from scripts.eval.sentences import everyday
from tests.support.offline import speak_offline
from tests.support.speaking import RATE, Said, say, say_all

SENTENCES = 40
SEED = 11
WHOLE = {"mode": "sentence"}
"""Words reach the model a sentence at a time: the same tokens however the text arrives."""


def lines(voices: list[str], count: int) -> list[tuple[str, str]]:
    return list(zip([s.written for s in everyday()[:count]], itertools.cycle(voices), strict=False))


def error_rate(texts: list[str], heard: list[str]) -> float:
    scores = [score(text, said) for text, said in zip(texts, heard, strict=True)]
    return sum(s.word_errors for s in scores) / sum(s.words for s in scores)


async def test_speech_over_opus_is_as_intelligible_as_the_model_offline(
    exact_server: Served, exact_model: Path, recogniser: Recogniser
) -> None:
    asked = lines(exact_server.voices(), SENTENCES)
    said = await say_all(exact_server.ws, asked, at_once=4, segment=WHOLE, sampling={"seed": SEED})
    heard = recogniser.transcribe([s.pcm for s in said])
    offline = recogniser.transcribe(await speak_offline(exact_model, asked, SEED))
    texts = [text for text, _ in asked]
    served_rate, offline_rate = error_rate(texts, heard), error_rate(texts, offline)
    print(f"word error rate: served {served_rate:.3f}, offline {offline_rate:.3f}")
    assert served_rate <= offline_rate + 0.02
    assert served_rate <= 0.15
    doubtful = [s for s, transcript in zip(said, heard, strict=True) if _is_broken(s.text, transcript)]
    # The recogniser loses a word now and then: what it says must be confirmed by its slow, careful setting.
    again = Recogniser(threads=2, full_window=True).transcribe([s.pcm for s in doubtful])
    broken = [
        (s.voice, s.text, transcript, len(s.pcm) / RATE, [w.text for w in s.words])
        for s, transcript in zip(doubtful, again, strict=True)
        if _is_broken(s.text, transcript)
    ]
    assert broken == [], "empty, cut off or repeated"


def _is_broken(text: str, transcript: str) -> bool:
    """Empty, cut off, or the same again and again; three equal digits in a row are not that."""
    verdict = score(text, transcript)
    goes_round = verdict.looped and len(verdict.hypothesis.split()) > 1.3 * verdict.words
    return not verdict.hypothesis or verdict.truncated or goes_round


async def test_text_at_a_language_models_pace_is_spoken_completely(
    server: Served, recogniser: Recogniser
) -> None:
    asked = lines(server.voices(), 8)
    said = [
        await say(
            server.ws, text, voice, deltas=re.findall(r".{1,4}", text, re.DOTALL), pause_s=0.03,
            sampling={"seed": SEED},
        )
        for text, voice in asked
    ]  # fmt: skip
    assert [s.done.text_chars for s in said] == [len(text) for text, _ in asked]
    heard = recogniser.transcribe([s.pcm for s in said])
    rate = error_rate([text for text, _ in asked], heard)
    print(f"word error rate at a language model's pace: {rate:.3f}")
    assert rate <= 0.25


async def test_eight_sessions_at_once_each_say_their_own_text(server: Served, recogniser: Recogniser) -> None:
    voices = server.voices()[:8]
    assert len(voices) == 8
    asked = lines(voices, 8)
    options = {"segment": WHOLE, "sampling": {"seed": SEED}}
    together = await say_all(server.ws, asked, at_once=8, **options)
    heard = recogniser.transcribe([s.pcm for s in together])
    for (text, _), transcript in zip(asked, heard, strict=True):
        own = error_rate([text], [transcript])
        others = min(error_rate([other], [transcript]) for other, _ in asked if other != text)
        assert own < others, f"{transcript!r} is not {text!r}"


async def test_a_seed_gives_the_same_speech_alone_and_among_eight(exact_server: Served) -> None:
    asked = lines(exact_server.voices()[:8], 8)
    options = {"segment": WHOLE, "sampling": {"seed": SEED}, "format": "pcm_f32le"}
    together = await say_all(exact_server.ws, asked, at_once=8, **options)
    for (text, voice), among in list(zip(asked, together, strict=True))[:2]:
        alone = await say(exact_server.ws, text, voice, **options)
        assert alone.words == among.words
        assert len(alone.pcm) == len(among.pcm)
        # The vocoder decodes ready streams in one batch, and sums of floats depend on a batch's shape.
        assert np.abs(alone.pcm - among.pcm).max() <= 1e-4


async def test_audio_is_whole_and_within_bounds(server: Served) -> None:
    said = await say(server.ws, "Your table for four is booked, see you at half past seven.", "grace")
    assert len(said.pcm) == said.done.samples
    assert 2.0 < len(said.pcm) / 24_000 < 8.0
    assert np.abs(said.pcm).max() > 0.05
    assert np.abs(said.pcm).max() <= 1.0
    assert _longest_gap_s(said) < 0.6, "a pause inside a sentence that punctuation did not ask for"


def _longest_gap_s(said: Said) -> float:
    """Longest stretch below -50 dB of the peak between the first and the last sound, in seconds."""
    block = 240
    level = np.abs(said.pcm[: len(said.pcm) // block * block]).reshape(-1, block).max(1)
    loud = np.flatnonzero(level > np.abs(said.pcm).max() * 10 ** (-50 / 20))
    return float(np.diff(loud).max() * block / 24_000)


async def test_words_come_with_times_and_ranges_in_the_clients_text(server: Served) -> None:
    text = "Your table for 4 is booked, see you at 7:30."
    said = await say(server.ws, text, "grace", sampling={"seed": SEED})
    starts = [word.start_ms for word in said.words]
    assert starts == sorted(starts)
    assert all(0 <= w.start_ms < w.end_ms <= said.done.audio_ms for w in said.words)
    assert [text[w.char_start : w.char_end].strip(" ,.") for w in said.words][:4] == [
        "Your",
        "table",
        "for",
        "4",
    ]


async def test_a_voice_is_found_in_the_prefix_cache_the_second_time(server: Served) -> None:
    first, second = [await say(server.ws, f"This is number {n}.", "owen") for n in ("one", "two")]
    prefix = second.done.usage.cached_tokens
    assert prefix > 0
    assert prefix % 32 == 0
    assert first.done.usage.prompt_tokens - prefix < 64, "all of the prompt but this text came from the cache"


async def test_any_cutting_of_the_text_is_spoken_as_the_same_words(exact_server: Served) -> None:
    text = "It costs $3.50, e.g. at 7:30 p.m. on Jan. 5th, Dr. Smith said."
    whole = await say(exact_server.ws, text, "tess", segment=WHOLE, sampling={"seed": SEED})
    for seed in range(3):
        pieces = list(deltas(text, random.Random(seed)))
        again = await say(
            exact_server.ws, text, "tess", deltas=pieces, segment=WHOLE, sampling={"seed": SEED}
        )
        assert again.words == whole.words
        assert again.done.samples == whole.done.samples
