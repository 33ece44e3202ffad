"""Rules of the layer that no single module's test can hold."""

import ast
import asyncio
import logging
from pathlib import Path

import pytest

import realtime
from engine.errors import GenerationFailed
from engine.fake import FakeEngine, FakeTiming, Fault, fake_info
from realtime.driver import SessionDriver
from realtime.limits import Limits, Tuning
from realtime.protocols.native import NativeAdapter
from realtime.registry import SessionHub
from tests.support.channels import MemoryChannel

ROOT = Path(realtime.__file__).parent
IMPURE = {"driver", "registry", "clock", "oneshot"}
PURE = sorted(
    path
    for path in [*ROOT.glob("*.py"), *ROOT.glob("protocols/*.py")]
    if path.stem not in IMPURE and not path.stem.startswith("client")
)
FORBIDDEN = {
    "asyncio",
    "socket",
    "time",
    "random",
    "threading",
    "concurrent",
    "starlette",
    "fastapi",
    "uvicorn",
}


def imports(path: Path) -> set[str]:
    """Top-level names of what a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.stem)
def test_pure_modules_have_no_clock_and_no_io(path: Path) -> None:
    assert not imports(path) & FORBIDDEN
    tree = ast.walk(ast.parse(path.read_text()))
    assert not any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in tree)


async def spoken(text: str, *, fault: Fault | None = None, log_to: int = logging.DEBUG) -> MemoryChannel:
    """One session that speaks ``text``, cancels half of it and fails or closes."""
    logging.getLogger("realtime").setLevel(log_to)
    engine = FakeEngine(timing=FakeTiming(frame_s=0.001))
    await engine.start()
    if fault is not None:
        engine.next_faults.append(fault)
    hub = SessionHub(engine, limits=Limits(send_buffer_ms=600_000), tuning=Tuning(lead_ms=600_000))
    channel = MemoryChannel()
    await channel.say({"type": "session.start", "words": True, "format": {"encoding": "pcm_s16le"}})
    await channel.say({"type": "text", "text": text}, {"type": "end"}, {"type": "text", "text": text})
    session = asyncio.create_task(SessionDriver(hub, channel, NativeAdapter(65_536)).run())
    await channel.until_audio(1)
    await channel.say({"type": "cancel"}, {"type": "text", "text": text}, {"type": "close"})
    await channel.until_closed()
    await session
    hub.close()
    return channel


@pytest.mark.parametrize(
    "fault", [None, Fault(after_frames=4, error=GenerationFailed("broke"))], ids=["ok", "broke"]
)
async def test_no_spoken_text_in_the_log(fault: Fault | None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    await spoken("Xylophone quartz, zebra.", fault=fault)
    assert caplog.records
    for record in caplog.records:
        logged = f"{record.getMessage()} {vars(record)}".lower()
        for word in ("xylophone", "quartz", "zebra"):
            assert word not in logged


async def test_reading_a_long_text_does_not_hold_up_the_loop() -> None:
    """Others get their turn while one message of 18,000 characters is read."""
    engine = FakeEngine(info=fake_info(max_words=10_000))
    await engine.start()
    hub = SessionHub(engine, tuning=Tuning(lead_ms=100))
    channel = MemoryChannel()
    session = asyncio.create_task(SessionDriver(hub, channel, NativeAdapter(65_536)).run())
    await channel.say({"type": "session.start"})
    await channel.until("session.ready")
    text = "the quick brown fox, at 7:30. " * 600
    await channel.say({"type": "text", "text": text}, {"type": "cancel"})
    turns = 0
    while not channel.messages("utterance.cancelled"):
        turns += 1
        await asyncio.sleep(0)
    assert turns > 40
    assert len(channel.messages("utterance.cancelled")[0]["unheard_text"]) == len(text)
    await channel.vanish()
    await session
    hub.close()
