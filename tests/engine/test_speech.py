import asyncio

import numpy as np
import pytest

from engine.contract import (
    PcmChunk,
    Sampling,
    SegmentDone,
    SpeechBegun,
    SpeechDone,
    SpeechRequest,
    SpokenWord,
    WordStarted,
)
from engine.errors import (
    EngineDead,
    GenerationFailed,
    InvalidTokens,
    Overloaded,
    RequestRejected,
    Runaway,
    VocoderFailed,
    VoiceNotFound,
)
from engine.generation import GenerationPolicy
from engine.models.ember import layout
from engine.speech import CodecLmEngine, EngineSettings
from engine.stream import StreamPolicy
from tests.support.scripted_lm import LmFault, ScriptedLM, reader, word_codes
from tests.support.tiny_model import FRAME, TinyModel, offline

TEXT = "this is a sentence with a handful of words in it"


def words(text: str) -> list[SpokenWord]:
    return [SpokenWord(item, 0, len(item)) for item in text.split()]


def codes_of(text: str) -> list[int]:
    return [code for index, word in enumerate(text.split()) for code in word_codes(index, word)]


class Rig:
    """An engine on a scripted LM and a linear codec."""

    def __init__(self, lm: ScriptedLM | None = None, **policy: object) -> None:
        self.lm = lm or ScriptedLM(reader())
        generation = GenerationPolicy(**({"lead_samples": 10**9, "token_timeout_s": 0.2} | policy))  # type: ignore[arg-type]
        settings = EngineSettings(max_streams=4, policy=StreamPolicy(generation))
        self.engine = CodecLmEngine(TinyModel(), self.lm, settings)

    async def __aenter__(self) -> "Rig":
        await self.engine.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0.01)
        leaked = self.engine.live, self.engine._vocoder.open_streams, set(self.lm.live)
        await self.engine.stop()
        assert leaked == (0, 0, set()), "every path frees everything"
        assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("speech-")]

    def open(self, name: str = "r", voice: str = "ada", **options: object):
        return self.engine.open(SpeechRequest(name, voice, **options))  # type: ignore[arg-type]


async def collect(stream, into=None):
    events = [] if into is None else into
    async for event in stream:
        events.append(event)
    return events


def audio(events) -> np.ndarray:
    return np.concatenate([e.samples for e in events if isinstance(e, PcmChunk)])


async def test_full_text_at_once():
    async with Rig() as rig:
        stream = rig.open()
        stream.push(words(TEXT), end_segment=True)
        stream.finish()
        events = await collect(stream)
    assert np.allclose(audio(events), offline(codes_of(TEXT), 0.1), atol=1e-6)
    assert [e.index for e in events if isinstance(e, WordStarted)] == list(range(11))
    assert [(e.expected, e.spoken) for e in events if isinstance(e, SegmentDone)] == [(11, 11)]
    done = events[-1]
    assert isinstance(done, SpeechDone)
    assert done.samples == len(audio(events))
    assert done.usage.codec_tokens * FRAME == done.samples
    at, starts = 0, {}
    for event in events:
        if isinstance(event, WordStarted):
            assert event.start >= at, "a word is told before its audio"
            starts[event.index] = event.start
        elif isinstance(event, PcmChunk):
            assert event.start == at
            at += len(event.samples)
    assert starts[1] == len(word_codes(0, "this")) * FRAME


async def test_text_that_comes_word_by_word_says_the_same():
    async with Rig() as rig:
        stream = rig.open()
        task = asyncio.create_task(collect(stream))
        for word in words(TEXT):
            stream.push([word])
            await asyncio.sleep(0.002)
        stream.finish()
        events = await task
        assert len(rig.lm.requests) > 2
    assert np.allclose(audio(events), offline(codes_of(TEXT), 0.1), atol=1e-6)


async def test_first_audio_leaves_before_the_rest_of_the_text_exists():
    async with Rig() as rig:
        stream = rig.open()
        stream.push(words("only the first few words"))
        first = [await asyncio.wait_for(anext(stream), 1) for _ in range(3)]
        assert first[0] == SpeechBegun(calls=1)
        assert isinstance(first[1], WordStarted)
        assert len(first[2].samples) in (FRAME, 2 * FRAME)
        await stream.aclose()


async def test_tells_which_call_made_speech_possible():
    async with Rig() as rig:
        stream = rig.open()
        for count, word in enumerate(["only", "the", "first", "few", "words", "make", "it", "begin"], 1):
            stream.push(words(word))
            await asyncio.sleep(0.01)
            if sum(len(w) + 1 for w in ["only", "the", "first", "few", "words"][:count]) >= 16:
                break
        assert await asyncio.wait_for(anext(stream), 1) == SpeechBegun(calls=4)
        await stream.aclose()


async def test_a_stall_of_text_is_silent_and_goes_on():
    async with Rig() as rig:
        stream, events = rig.open(), []
        task = asyncio.create_task(collect(stream, events))
        first, rest = TEXT.split()[:6], TEXT.split()[6:]
        stream.push(words(" ".join(first)))
        await asyncio.sleep(0.05)
        made, count = len(audio(events)), len(events)
        assert made > 0
        await asyncio.sleep(0.05)
        assert len(events) == count, "nothing is said while there is nothing to say"
        stream.push(words(" ".join(rest)), end_segment=True)
        stream.finish()
        await task
    assert np.allclose(audio(events), offline(codes_of(TEXT), 0.1), atol=1e-6)


async def test_segments_continue_in_one_context():
    async with Rig() as rig:
        stream = rig.open(voice="bob")
        for _ in range(5):
            stream.push(words("a short sentence here."), end_segment=True)
        stream.finish()
        events = await collect(stream)
        once = codes_of("a short sentence here.")
        prompts = [list(r.prompt) for r in rig.lm.requests]
    assert np.allclose(audio(events), offline(once * 5, 0.2), atol=1e-6)
    assert [e.index for e in events if isinstance(e, WordStarted)] == list(range(20))
    assert max(p.count(layout.EOS) for p in prompts) == 2, "history is bounded"


async def test_many_streams_do_not_mix():
    async with Rig(ScriptedLM(reader(), step_s=0.0005)) as rig:
        texts = [
            f"{word} speaks words that nobody else may hear" for word in ("alpha", "be", "gam", "deltas")
        ]

        async def speak(at: int):
            stream = rig.open(str(at), ("ada", "bob")[at % 2])
            stream.push(words(texts[at]), end_segment=True)
            stream.finish()
            return await collect(stream)

        results = await asyncio.gather(*map(speak, range(4)))
    for at, events in enumerate(results):
        assert np.allclose(audio(events), offline(codes_of(texts[at]), (at % 2 + 1) / 10), atol=1e-6)


async def test_grant_holds_the_lm_back():
    async with Rig(lead_samples=0) as rig:
        stream, events = rig.open(), []
        task = asyncio.create_task(collect(stream, events))
        stream.push(words(TEXT), end_segment=True)
        stream.finish()
        await asyncio.sleep(0.05)
        assert len(rig.lm.requests) == 1
        made = len(audio(events))
        assert 0 < made <= 96 * FRAME
        stream.grant(made)
        stream.grant(0)
        await asyncio.sleep(0.05)
        assert len(rig.lm.requests) == 2
        stream.grant(10**9)
        await task
    assert np.allclose(audio(events), offline(codes_of(TEXT), 0.1), atol=1e-6)


async def test_incomplete_segment_is_made_again_when_nothing_was_heard():
    lm = ScriptedLM(reader(skip=lambda r: int(len(lm.requests) == 1)), chunk=500)
    async with Rig(lm) as rig:
        stream = rig.open()
        stream.push(words("one two three."), end_segment=True)
        stream.finish()
        events = await collect(stream)
    assert [e for e in events if isinstance(e, SegmentDone)] == [SegmentDone(3, 3, len(audio(events)), 1)]
    assert np.allclose(audio(events), offline(codes_of("one two three."), 0.1), atol=1e-6)
    assert lm.requests[0].sampling.seed != lm.requests[1].sampling.seed


async def test_incomplete_segment_is_told_when_it_was_heard():
    async with Rig(ScriptedLM(reader(skip=lambda _: 1), step_s=0.002)) as rig:
        stream = rig.open()
        stream.push(words("one two three."), end_segment=True)
        stream.finish()
        events = await collect(stream)
    assert [(e.expected, e.spoken) for e in events if isinstance(e, SegmentDone)] == [(3, 2)]


async def test_an_end_that_leaves_words_out_is_refused():
    """The LM wants to end two words early, after most was heard; what is missing still comes."""
    wanted: list[bool] = []

    def skip(request):
        wanted.append(layout.EOS in request.allowed)
        return 2 if wanted.count(True) == 1 and wanted[-1] else 0

    async with Rig(ScriptedLM(reader(skip), step_s=0.001)) as rig:
        stream = rig.open()
        stream.push(words(TEXT), end_segment=True)
        stream.finish()
        events = await collect(stream)
    assert wanted[0] is False, "nobody can say all this within the first request"
    assert [(e.expected, e.spoken) for e in events if isinstance(e, SegmentDone)] == [(11, 11)]
    assert np.allclose(audio(events), offline(codes_of(TEXT), 0.1), atol=1e-6)


async def test_a_segment_ahead_of_its_listener_is_checked_before_it_leaves():
    """The second segment fails its first attempt; much audio is ahead, so nobody hears that."""
    attempts: list[int] = []

    def skip(request):
        if list(request.prompt).count(layout.EOS) == 1:
            attempts.append(1)
        return int(len(attempts) == 1)

    async with Rig(ScriptedLM(reader(skip), step_s=0.0005)) as rig:
        stream = rig.open()
        stream.push(words("a first sentence that lasts for a good long while."), end_segment=True)
        stream.push(words("one two."), end_segment=True)
        stream.finish()
        events = await collect(stream)
    done = [e for e in events if isinstance(e, SegmentDone)]
    assert [(e.spoken, e.remade) for e in done] == [(10, 0), (2, 1)]


def faulty(fault: LmFault, **options: object) -> ScriptedLM:
    return ScriptedLM(reader(), faults={"r": fault}, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lm", "kind"),
    [
        (faulty(LmFault(30, GenerationFailed("out of memory"))), GenerationFailed),
        (faulty(LmFault(0, EngineDead("gone"))), EngineDead),
        (faulty(LmFault(5, MemoryError("unforeseen"))), GenerationFailed),
        (faulty(LmFault(9, token=layout.PAD)), InvalidTokens),
        (faulty(LmFault(9, token=99999)), InvalidTokens),
        (faulty(LmFault(9, stall=True)), GenerationFailed),
        (ScriptedLM(lambda r: [layout.CODE_BASE] * r.max_tokens, chunk=24), Runaway),
        (ScriptedLM(lambda _: [layout.CODE_BASE]), GenerationFailed),
    ],
    ids=["raises", "dies", "breaks", "marker", "out of vocabulary", "stalls", "never ends", "stops early"],
)
async def test_lm_faults_are_typed_and_free_everything(lm, kind):
    async with Rig(lm, remakes=0) as rig:
        stream = rig.open()
        stream.push(words(TEXT), end_segment=True)
        stream.finish()
        with pytest.raises(kind):
            await collect(stream)
        assert await collect(stream) == [], "nothing follows a failure"
        lm.faults.clear()
        lm.script = reader()
        other = rig.open("other")
        other.push(words(TEXT), end_segment=True)
        other.finish()
        assert isinstance((await collect(other))[-1], SpeechDone)


@pytest.mark.parametrize("how", ["fail_on", "nan_on"])
async def test_vocoder_faults_hit_one_stream(how):
    async with Rig(ScriptedLM(reader(), step_s=0.001)) as rig:
        await asyncio.sleep(0)
        setattr(rig.engine._model.codec, how, {105})
        bad, good = rig.open("bad"), rig.open("good")
        bad.push(words("longer words"), end_segment=True)
        good.push(words("single"), end_segment=True)
        bad.finish()
        good.finish()
        bad_result, good_result = await asyncio.gather(collect(bad), collect(good), return_exceptions=True)
    assert isinstance(bad_result, VocoderFailed)
    assert isinstance(good_result[-1], SpeechDone)


@pytest.mark.parametrize("wait_s", [0, 0.005, 0.03])
async def test_close_frees_everything_wherever_it_happens(wait_s):
    async with Rig(ScriptedLM(reader(), step_s=0.001)) as rig:
        idle, busy = rig.open("idle"), rig.open("busy")
        task = asyncio.create_task(collect(busy))
        busy.push(words(TEXT), end_segment=True)
        await asyncio.sleep(wait_s)
        for _ in range(2):
            await idle.aclose()
            await busy.aclose()
        assert rig.engine.live == 0
        assert not rig.lm.live
        events = await asyncio.wait_for(task, 1)
        assert not [e for e in events if isinstance(e, SpeechDone)]
        busy.push(words("late"))
        busy.grant(5)
        with pytest.raises(StopAsyncIteration):
            await anext(busy)


async def test_a_cancelled_pull_loses_nothing():
    async with Rig(ScriptedLM(reader(), step_s=0.001)) as rig:
        stream = rig.open()
        stream.push(words(TEXT), end_segment=True)
        stream.finish()
        events = []
        while not events or not isinstance(events[-1], SpeechDone):
            try:
                async with asyncio.timeout(0.003):
                    events.append(await anext(stream))
            except TimeoutError:
                continue
    assert np.allclose(audio(events), offline(codes_of(TEXT), 0.1), atol=1e-6)


async def test_stop_reaches_a_stream_that_waits_for_text():
    async with Rig() as rig:
        task = asyncio.create_task(collect(rig.open()))
        await asyncio.sleep(0.01)
        await rig.engine.stop()
        with pytest.raises(EngineDead):
            await asyncio.wait_for(task, 1)
        with pytest.raises(EngineDead):
            rig.open()


async def test_requests_are_checked_before_anything_is_spent():
    async with Rig() as rig:
        for kind, options in (
            (VoiceNotFound, {"voice": "eve"}),
            (RequestRejected, {"speed": 1.5}),
            (RequestRejected, {"sampling": Sampling(top_p=0.0)}),
        ):
            with pytest.raises(kind):
                rig.open(**options)
        streams = [rig.open(str(i)) for i in range(4)]
        with pytest.raises(RequestRejected, match="in use"):
            rig.open("1")
        with pytest.raises(Overloaded):
            rig.open("more")
        with pytest.raises(RequestRejected, match="cannot read"):
            streams[0].push([SpokenWord("Ünreadable", 0, 1)])
        for stream in streams:
            await stream.aclose()
        assert not rig.lm.requests


async def test_same_seed_same_requests_and_prefix_is_cached():
    seeds = []
    async with Rig() as rig:
        assert (await rig.engine.prewarm("ada")).cached == 0
        usage = await rig.engine.prewarm("ada")
        assert usage.cached == usage.tokens
        with pytest.raises(VoiceNotFound):
            await rig.engine.prewarm("eve")
        for name in ("first", "second", "other"):
            rig.lm.requests.clear()
            stream = rig.open(name, sampling=Sampling(seed=7 if name != "other" else 8))
            stream.push(words(TEXT), end_segment=True)
            stream.finish()
            events = await collect(stream)
            seeds.append([r.sampling.seed for r in rig.lm.requests])
            assert events[-1].usage.cached_tokens >= usage.tokens
    assert seeds[0] == seeds[1] != seeds[2]
    assert len(set(seeds[0])) == len(seeds[0])


async def test_who_has_less_to_hear_goes_first():
    async with Rig(ScriptedLM(reader(), step_s=0.0002)) as rig:
        stream = rig.open(priority=1)
        for _ in range(3):
            stream.push(words("a sentence that takes a good while to say."), end_segment=True)
        stream.finish()
        await collect(stream)
        priorities = [r.priority for r in rig.lm.requests]
    assert priorities[0] == 1_000_000
    assert 1_000_000 < priorities[-1] < 2_000_000, "the more is ahead, the later"


async def test_nothing_to_say():
    async with Rig() as rig:
        stream = rig.open()
        stream.finish()
        events = await collect(stream)
    assert [type(e) for e in events] == [SpeechDone]
    assert events[0].samples == 0
