"""Admission, membership and drain of the hub."""

import asyncio

import pytest

from engine.fake import FakeEngine
from realtime.errors import Draining, ErrorCode, ServerOverloaded
from realtime.limits import Limits
from realtime.registry import SessionHub
from tests.support.clocks import ManualClock, settle


class Member:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def drain(self) -> None:
        self.calls.append("drain")

    def stop(self) -> None:
        self.calls.append("stop")


@pytest.fixture
async def hub() -> SessionHub:
    engine = FakeEngine()
    await engine.start()
    return SessionHub(engine, limits=Limits(sessions=2), clock=ManualClock())


async def test_sessions_are_limited(hub: SessionHub) -> None:
    hub.enter("a", Member())
    hub.enter("b", Member())
    with pytest.raises(ServerOverloaded, match="all 2 sessions"):
        hub.enter("c", Member())
    hub.leave("a")
    hub.leave("a")
    hub.enter("c", Member())
    assert list(hub.live) == ["b", "c"]
    assert hub.refused == {ErrorCode.OVERLOADED: 1}


async def test_no_session_without_an_engine() -> None:
    hub = SessionHub(FakeEngine())
    with pytest.raises(ServerOverloaded, match="starting") as refusal:
        hub.admit()
    assert refusal.value.retry_after_s


async def test_ids_cannot_be_guessed(hub: SessionHub) -> None:
    ids = {hub.new_id() for _ in range(100)}
    assert len(ids) == 100
    assert min(map(len, ids)) >= 16


async def test_drain_waits_for_those_who_finish(hub: SessionHub) -> None:
    quick, slow = Member(), Member()
    hub.enter("quick", quick)
    hub.enter("slow", slow)
    assert isinstance(hub.clock, ManualClock)
    draining = asyncio.create_task(hub.drain(5.0))
    await settle()
    assert hub.draining
    with pytest.raises(Draining):
        hub.admit()
    hub.leave("quick")
    await hub.clock.advance(4.9, step_s=1)
    assert not draining.done()
    await hub.clock.advance(0.2, step_s=1)
    hub.leave("slow")
    await hub.clock.advance(3, step_s=1)
    assert not await draining
    assert (quick.calls, slow.calls) == (["drain"], ["drain", "stop"])


async def test_drain_of_nobody(hub: SessionHub) -> None:
    assert await hub.drain(5.0)
