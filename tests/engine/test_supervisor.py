import asyncio

import pytest

from engine.contract import SpeechDone, SpeechRequest
from engine.errors import EngineDead
from engine.speech import CodecLmEngine, EngineSettings
from engine.supervisor import RestartPolicy, Supervisor
from tests.engine.test_speech import TEXT, collect, words
from tests.support.scripted_lm import ScriptedLM, reader
from tests.support.tiny_model import TinyModel

FAST = RestartPolicy(check_s=0.005, probe_s=0.02, probe_timeout_s=0.1, first_delay_s=0.005, max_delay_s=0.02)


class Body:
    """Something that dies, hangs and fails to restart on command."""

    def __init__(self) -> None:
        self.dead = self.hung = False
        self.failures = self.attempts = 0
        self.lost: list[str] = []

    async def check(self) -> None:
        if self.dead:
            raise EngineDead("dead")

    async def probe(self) -> None:
        if self.hung:
            await asyncio.Event().wait()

    async def restart(self) -> None:
        self.attempts += 1
        if self.attempts <= self.failures:
            raise EngineDead("not yet")
        self.dead = self.hung = False


@pytest.fixture
async def body():
    return Body()


@pytest.fixture
async def supervisor(body):
    made = Supervisor(
        FAST,
        check=body.check,
        probe=body.probe,
        restart=body.restart,
        lost=lambda error: body.lost.append(str(error)),
    )
    made.start()
    yield made
    await made.stop()
    await made.stop()


async def until(ready) -> None:
    async with asyncio.timeout(2):
        while not ready():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def test_a_death_is_told_once_and_mended_after_failures(body, supervisor):
    body.failures, body.dead = 3, True
    await until(lambda: supervisor.state == "restarting")
    await until(lambda: supervisor.state == "ready")
    assert body.attempts == 4
    assert body.lost == ["dead"]
    assert supervisor.restarts == 1


async def test_a_hang_is_found_by_the_probe(body, supervisor):
    body.hung = True
    await until(lambda: supervisor.restarts == 1)
    assert "no answer" in body.lost[0]


async def test_streams_learn_of_a_death_and_new_ones_work_after_it():
    class MortalLM(ScriptedLM):
        async def start(self) -> None:
            self.dead = False
            await super().start()

    lm = MortalLM(reader(), step_s=0.002)
    engine = CodecLmEngine(TinyModel(), lm, EngineSettings(restart=FAST))
    await engine.start()
    await engine.prewarm("bob")
    speaking, waiting = (
        engine.open(SpeechRequest("speaking", "ada")),
        engine.open(SpeechRequest("waiting", "ada")),
    )
    speaking.push(words(TEXT), end_segment=True)
    tasks = [asyncio.create_task(collect(stream)) for stream in (speaking, waiting)]
    await asyncio.sleep(0.02)
    lm.requests.clear()
    lm.dead = True
    results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 1)
    assert [type(r) for r in results] == [EngineDead, EngineDead]
    assert engine.live == 0
    await until(lambda: engine.health().state == "ready")
    assert engine.health().restarts == 1
    assert any(
        r.prompt[: len(TinyModel().voice("bob").prefix)] == list(TinyModel().voice("bob").prefix)
        for r in lm.requests
    )
    again = engine.open(SpeechRequest("again", "ada"))
    again.push(words(TEXT), end_segment=True)
    again.finish()
    assert isinstance((await collect(again))[-1], SpeechDone)
    await engine.stop()
    assert engine.health().state == "stopped"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_dead_vocoder_is_replaced_without_touching_the_lm():
    lm = ScriptedLM(reader(), step_s=0.001)
    model = TinyModel()
    engine = CodecLmEngine(model, lm, EngineSettings(restart=FAST))
    await engine.start()
    step = model.codec.step

    def broken(*_):
        model.codec.step = step
        raise KeyError("unforeseen")

    model.codec.step = broken
    stream = engine.open(SpeechRequest("r", "ada"))
    stream.push(words(TEXT), end_segment=True)
    with pytest.raises(EngineDead):
        await collect(stream)
    await until(lambda: engine.health().restarts == 1)
    again = engine.open(SpeechRequest("r", "ada"))
    again.push(words(TEXT), end_segment=True)
    again.finish()
    assert isinstance((await collect(again))[-1], SpeechDone)
    assert lm.starts == 1
    await engine.stop()
