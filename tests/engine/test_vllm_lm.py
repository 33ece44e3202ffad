"""The real vLLM with a very small random model, in float32: start-up takes seconds, so engines are shared."""

import asyncio
import os
import signal
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from engine.errors import EngineDead, RequestRejected
from engine.lm import LmRequest, LmSampling
from engine.models.ember import layout
from engine.models.ember.model import EmberModel
from engine.vllm_lm import VllmLM, VllmSettings
from tests.support.random_lm import write_random_lm

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("default"),  # vLLM's and torch's own
]

AUDIO = EmberModel.layout.audio
PREFIX = layout.voice_prefix("a voice.", [layout.WORD, *range(layout.CODE_BASE, layout.CODE_BASE + 170)])
BLOCK = 32


def request(
    name: str, text: str = "say this. ", *, tokens: int = 24, seed: int | None = 1, **options: object
) -> LmRequest:
    prompt = [*PREFIX, *layout.text_block(text, final=False)]
    sampling = LmSampling(temperature=0.8, top_p=1.0, top_k=50, repetition_penalty=1.0, seed=seed)
    values = {
        "prompt": prompt,
        "max_tokens": tokens,
        "allowed": AUDIO,
        "end": layout.EOS,
        "sampling": sampling,
    }
    return LmRequest(request_id=name, **(values | options))  # type: ignore[arg-type]


async def run(lm: VllmLM, asked: LmRequest) -> tuple[list[int], int]:
    ids: list[int] = []
    cached = 0
    async for chunk in lm.generate(asked):
        ids += chunk.ids
        cached = chunk.cached_tokens
    return ids, cached


def make(folder: Path, **options: object) -> VllmLM:
    settings = VllmSettings(
        folder=folder,
        dtype="float32",
        kv_cache_bytes=64 << 20,
        max_num_seqs=8,
        **options,  # type: ignore[arg-type]
    )
    return VllmLM(settings, layout.VOCAB_SIZE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_random_lm(tmp_path_factory.mktemp("lm"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lm(folder):
    lm = make(folder)
    await lm.start()
    yield lm
    await lm.stop()


async def test_second_use_finds_the_whole_voice_prefix(lm):
    first = await run(lm, request("first", "one thing. "))
    second = await run(lm, request("second", "another. "))
    assert len(PREFIX) % BLOCK == 0
    assert second[1] == len(PREFIX)
    assert first[0] != second[0]
    salted = await run(lm, request("salted", "another. ", cache_salt="tenant"))
    assert salted == (second[0], 0), "a salt keeps the cache apart and changes nothing else"


async def test_a_continued_request_finds_its_history(lm):
    asked = request("block", tokens=48)
    ids, _ = await run(lm, asked)
    prompt = [*asked.prompt, *ids, *layout.text_block("and more. ", final=False)]
    _, cached = await run(lm, request("next", prompt=prompt))
    assert cached >= len(asked.prompt) + len(ids) - BLOCK


async def test_eight_at_once_equal_each_alone(lm):
    asked = [request(f"alone{i}", f"text number {i}. ", tokens=64, seed=i) for i in range(8)]
    alone = [(await run(lm, a))[0] for a in asked]
    together = await asyncio.gather(*(run(lm, a) for a in asked))
    assert [ids for ids, _ in together] == alone
    assert all(set(ids) <= set(AUDIO) for ids in alone)
    assert lm.health().running == lm.health().waiting == 0


async def test_more_new_prompts_than_one_step_holds_wait_their_turn(lm):
    text = "a long text that nobody has in the cache. " * 9
    asked = [request(f"cold{i}", text, seed=i, cache_salt=f"cold{i}") for i in range(16)]
    assert sum(len(a.prompt) for a in asked) > 2 * lm.settings.max_model_len
    spoken = await asyncio.gather(*(run(lm, a) for a in asked))
    assert [(len(ids), cached) for ids, cached in spoken] == [(24, 0)] * 16


async def test_end_is_returned_and_finishes(lm):
    asked = request("end", allowed=[layout.EOS], tokens=5)
    chunks = [chunk async for chunk in lm.generate(asked)]
    assert [i for c in chunks for i in c.ids] == [layout.EOS]
    assert chunks[-1].finished == "end"


async def test_closing_the_iterator_frees_the_slot(lm):
    for at in range(12):  # more than there are slots
        async with aclosing(lm.generate(request(f"closed{at}", tokens=1500))) as chunks:
            await anext(chunks)
    stuck = [asyncio.create_task(run(lm, request(f"cut{at}", tokens=1500))) for at in range(12)]
    await asyncio.sleep(0.2)
    for task in stuck:
        task.cancel()
    await asyncio.wait(stuck)
    assert (lm.health().running, lm.health().waiting) == (0, 0)
    assert len((await asyncio.wait_for(run(lm, request("after")), 10))[0]) == 24


async def test_abort_by_id(lm):
    task = asyncio.create_task(run(lm, request("aborted", tokens=1500)))
    await asyncio.sleep(0.1)
    await lm.abort("aborted")
    await lm.abort("never was")
    ids, _ = await asyncio.wait_for(task, 5)
    assert len(ids) < 1500


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("prompt", {"prompt": [1, 2, layout.VOCAB_SIZE]}),
        ("prompt", {"prompt": [1, -1]}),
        ("prompt", {"prompt": [1, 2.0]}),
        ("prompt", {"prompt": [1, True]}),
        ("prompt", {"prompt": []}),
        ("prompt", {"prompt": [1] * 2040}),
        ("allowed", {"allowed": [layout.VOCAB_SIZE]}),
        ("max_tokens", {"max_tokens": 0}),
    ],
)
async def test_what_would_kill_the_engine_never_reaches_it(lm, field, options):
    with pytest.raises(RequestRejected) as caught:
        await run(lm, request("bad", **options))
    assert caught.value.field == field
    assert len((await run(lm, request("good")))[0]) == 24


async def test_without_a_prefix_cache_the_tokens_are_the_same(lm, folder):
    asked = [request(f"cache{i}", f"text number {i}. ", tokens=48, seed=i) for i in range(3)]
    cached = [await run(lm, a) for a in asked]
    assert all(hit >= len(PREFIX) for _, hit in cached[1:])
    other = make(folder, prefix_caching=False)
    await other.start()
    try:
        plain = [await run(other, a) for a in asked]
        assert plain == [(ids, 0) for ids, _ in cached]
        with pytest.raises(EngineDead):
            await kill(other)
    finally:
        await other.stop()
    with pytest.raises(EngineDead):
        await run(other, asked[0])


async def kill(lm: VllmLM) -> None:
    """SIGKILL of the engine core while it speaks."""
    task = asyncio.create_task(run(lm, request("victim", tokens=1500)))
    await asyncio.sleep(0.1)
    for process in lm._engine.engine_core.resources.engine_manager.processes:
        os.kill(process.pid, signal.SIGKILL)
    await asyncio.wait_for(task, 2)
