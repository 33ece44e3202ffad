"""The hub: what all sessions of a server share, who is live, and how the server shuts down.

For the process edge:

    hub = SessionHub(engine, limits=Limits(...), tuning=Tuning(...), observer=...)
    await realtime.transports.websocket.serve(websocket, hub)  # one native session, from accept to close
    hub.admit()                 # raises ServerOverloaded, Draining
    hub.live                    # sessions by id
    await hub.drain(timeout_s)  # no new sessions; running utterances finish
    hub.close()                 # after the last session: ends the encoder threads
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from engine.contract import SpeechEngine
from realtime.clock import Clock, MonotonicClock
from realtime.errors import Draining, ErrorCode, Fault, RealtimeError, ServerOverloaded
from realtime.limits import Limits, Tuning
from realtime.options import SessionDefaults
from realtime.reports import UtteranceReport

_RETRY_AFTER_S = 2.0


class Observer(Protocol):
    """Where figures go: metrics. Called on the event loop; must not block or raise."""

    def session_opened(self, session: str) -> None:
        """A session was admitted."""

    def session_closed(self, session: str, fault: Fault | None, seconds: float) -> None:
        """A session is over; ``fault`` is what it failed with, if it did."""

    def utterance_over(self, session: str, report: UtteranceReport) -> None:
        """An utterance has its terminal."""

    def warned(self, session: str, code: str) -> None:
        """A `warning` was sent."""


class NullObserver:
    """Keeps nothing."""

    def session_opened(self, session: str) -> None:
        """See `Observer`."""

    def session_closed(self, session: str, fault: Fault | None, seconds: float) -> None:
        """See `Observer`."""

    def utterance_over(self, session: str, report: UtteranceReport) -> None:
        """See `Observer`."""

    def warned(self, session: str, code: str) -> None:
        """See `Observer`."""


class LiveSession(Protocol):
    """What the hub can ask of a running session."""

    def drain(self) -> None:
        """Begin no new utterance; close when those under way have ended."""

    def stop(self) -> None:
        """Fail what is under way with `Draining` and close now."""


@dataclass(eq=False)
class SessionHub:
    """Shared by all sessions; lives on one event loop.

    Attributes:
        engine: what speaks; its own start and stop are the owner's business.
        limits: told to every client.
        tuning: pace and patience, not told.
        defaults: for what a client does not set.
        observer: gets every session's figures.
        clock: the one clock of all sessions.
        encoder_threads: size of the pool in which all sessions encode.
        refused: sessions turned away, by code.
    """

    engine: SpeechEngine
    limits: Limits = field(default_factory=Limits)
    tuning: Tuning = field(default_factory=Tuning)
    defaults: SessionDefaults = field(default_factory=SessionDefaults)
    observer: Observer = field(default_factory=NullObserver)
    clock: Clock = field(default_factory=MonotonicClock)
    encoder_threads: int = 2

    def __post_init__(self) -> None:
        self.encoders = ThreadPoolExecutor(self.encoder_threads, thread_name_prefix="encoder")
        self.refused: Counter[ErrorCode] = Counter()
        self._live: dict[str, LiveSession] = {}
        self._left = asyncio.Event()
        self._draining = False

    @property
    def live(self) -> Mapping[str, LiveSession]:
        """Sessions by id."""
        return MappingProxyType(self._live)

    @property
    def draining(self) -> bool:
        """True once `drain` was called."""
        return self._draining

    @staticmethod
    def new_id() -> str:
        """A session id that cannot be guessed: whoever knows it may join the session."""
        return f"s_{secrets.token_urlsafe(12)}"

    def admit(self) -> None:
        """Is there room for one more session? Raises `Draining` or `ServerOverloaded`."""
        if self._draining:
            raise Draining
        if len(self._live) >= self.limits.sessions:
            raise ServerOverloaded(f"all {self.limits.sessions} sessions are in use", _RETRY_AFTER_S)
        state = self.engine.health().state
        if state != "ready":
            raise ServerOverloaded(f"the speech engine is {state}", _RETRY_AFTER_S)

    def enter(self, session_id: str, session: LiveSession) -> None:
        """Count a session in. Raises what `admit` raises."""
        try:
            self.admit()
        except RealtimeError as error:
            self.refused[error.code] += 1
            raise
        self._live[session_id] = session
        self.observer.session_opened(session_id)

    def leave(self, session_id: str) -> None:
        """Count a session out; as often as one likes."""
        self._live.pop(session_id, None)
        self._left.set()

    async def drain(self, timeout_s: float) -> bool:
        """Refuse new sessions, let running utterances finish, then close all sessions with 1012.

        What is not done after ``timeout_s`` is failed. Returns True when nothing had to be.
        """
        self._draining = True
        for session in list(self._live.values()):
            session.drain()
        finished = await self._all_left(self.clock.now() + timeout_s)
        for session in list(self._live.values()):
            session.stop()
        await self._all_left(self.clock.now() + self.tuning.close_s)
        return finished

    def close(self) -> None:
        """End the encoder threads."""
        self.encoders.shutdown(wait=False, cancel_futures=True)

    async def _all_left(self, until: float) -> bool:
        while self._live and self.clock.now() < until:
            self._left.clear()
            await self.clock.wait(self._left, until)
        return not self._live
