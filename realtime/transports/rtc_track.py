"""The audio of one WebRTC session: ready Opus packets, given to aiortc when they are due."""

import asyncio
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final, Protocol

from aiortc import MediaStreamTrack
from aiortc.mediastreams import MediaStreamError
from av import Packet

from realtime.clock import Clock
from realtime.driver import ChannelClosed
from realtime.rtp.pacer import CLOCK_RATE, Pacer, Slot

_CAPACITY: Final = 3
"""Packets taken from the session ahead of time. Everything else waits where a barge-in can still drop it."""
_TIME_BASE: Final = Fraction(1, CLOCK_RATE)


class PacingObserver(Protocol):
    """Where figures of the media side go. Called on the event loop; must not block or raise."""

    def paced(self, late_s: float) -> None:
        """A packet left, that much later than it could have."""

    def media_over(self, gaps: int, stalls: int) -> None:
        """A peer is gone: how often it ran dry inside an utterance, how often the server stalled."""


class PacedTrack(MediaStreamTrack):
    """See the module's docstring. ``on_sent`` is called after each packet."""

    kind = "audio"

    def __init__(self, clock: Clock, observer: PacingObserver) -> None:
        super().__init__()
        self._clock, self._observer = clock, observer
        self._pacer = Pacer(_CAPACITY, clock.now())
        self._begun = False
        self._asleep_until = -math.inf
        self._changed, self._room = asyncio.Event(), asyncio.Event()
        self.on_sent: Callable[[], None] = lambda: None

    async def recv(self) -> Packet:
        """The next packet, when it is due."""
        if not self._begun:
            self._begun = True
            self._pacer.begin(self._clock.now())
        while (slot := self._take()) is None:
            self._changed.clear()
            self._asleep_until = self._pacer.wake_at
            await self._clock.wait(self._changed, self._asleep_until)
        self._asleep_until = -math.inf
        self._observer.paced(slot.late_s)
        packet = Packet(slot.payload)
        packet.pts = slot.timestamp
        packet.time_base = _TIME_BASE
        self._room.set()
        self.on_sent()
        return packet

    async def put(self, index: int, payload: bytes) -> None:
        """Hand over an utterance's next packet; waits for room. Raises `ChannelClosed`."""
        while self._pacer.full:
            self._check_live()
            self._room.clear()
            await self._room.wait()
        self._check_live()
        self._pacer.push(index, payload, self._clock.now())
        self._wake()

    def finish(self, index: int) -> None:
        """That was all of utterance ``index``."""
        self._pacer.finish(index)
        self._wake()

    def drop(self, index: int) -> None:
        """Send nothing more of utterance ``index``."""
        self._pacer.drop(index)
        self._room.set()
        self._wake()

    def pending(self, index: int) -> bool:
        """Whether packets of utterance ``index`` wait."""
        return self._pacer.pending(index) > 0

    def heard_s(self, index: int) -> float | None:
        """Seconds of utterance ``index`` that have left; None if they cannot be told any more."""
        return self._pacer.heard_s(index, self._clock.now())

    def stop(self) -> None:
        """No more packets: whoever waits is let go."""
        if self.readyState == "live":
            self._observer.media_over(self._pacer.gaps, self._pacer.stalls)
        super().stop()
        self._room.set()
        self._changed.set()

    def _wake(self) -> None:
        """Only for what is earlier than what is slept for: most packets just wait for their turn."""
        if self._pacer.wake_at < self._asleep_until:
            self._changed.set()

    def _take(self) -> Slot | None:
        if self.readyState != "live":
            raise MediaStreamError
        return self._pacer.take(self._clock.now())

    def _check_live(self) -> None:
        if self.readyState != "live":
            raise ChannelClosed("the peer is gone")
