"""One RTP audio stream: which 20 ms packet leaves when, with which timestamp. Pure.

Packets leave on a grid of 20 ms, computed from one anchor, so that lateness never adds up. Every packet's
timestamp is 960 above the one before it: what is spoken, and the silence between utterances, are one stream
without gaps. After a stall the grid is anchored anew: a burst would only make the receiver's buffer grow.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

CLOCK_RATE: Final = 48_000
"""Of every Opus RTP stream, whatever the codec's rate (RFC 7587)."""
FRAME_S: Final = 0.020
FRAME_TICKS: Final = 960

SILENCE: Final = b"\xf8\xff\xfe"
"""20 ms of silence: CELT, full band, mono.

Its other layer makes a decoder forget the voice's state, as each utterance's encoder begins without one.
"""

_CATCH_UP_S: Final = 2 * FRAME_S
"""Later than this, what is overdue is not sent at once."""
_PATIENCE_S: Final = 0.080
"""How long to wait for an utterance's next packet: a receiver's buffer hides that much."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One packet that leaves now.

    Attributes:
        timestamp: at 48 kHz, from 0; not wrapped.
        payload: one Opus packet of 20 ms.
        index: the utterance it belongs to; None for silence.
        late_s: how much later it leaves than it could have.
    """

    timestamp: int
    payload: bytes
    index: int | None
    late_s: float


@dataclass(frozen=True, slots=True)
class _Waiting:
    index: int
    payload: bytes
    since: float


class Pacer:
    """See the module's docstring. Moments are seconds of one monotonic clock.

    Attributes:
        stalls: how often the grid was anchored anew while there was something to send.
        gaps: how often silence was sent in the middle of an utterance, because its audio came late.
    """

    def __init__(self, capacity: int, now: float) -> None:
        self._capacity = capacity
        self._queue: deque[_Waiting] = deque()
        self._timestamp = 0
        self._index: int | None = None
        self._finished: int | None = None
        self._open = self._audible = self._dry = False
        self._frames = 0
        self._taken_at = now
        self.stalls = self.gaps = 0
        self.begin(now)

    def begin(self, now: float) -> None:
        """The first packet is due now."""
        self._anchor, self._slots = now, 0

    @property
    def full(self) -> bool:
        """There is no room for another packet."""
        return len(self._queue) >= self._capacity

    def push(self, index: int, payload: bytes, now: float) -> None:
        """Queue the next packet of utterance ``index``. Raises ValueError when `full`."""
        if self.full:
            raise ValueError(f"{self._capacity} packets already wait")
        self._queue.append(_Waiting(index, payload, now))

    def finish(self, index: int) -> None:
        """No packet of utterance ``index`` follows those that were pushed."""
        if self._index == index and not self.pending(index):
            self._open = False
        self._finished = index

    def drop(self, index: int) -> None:
        """Throw away what still waits of utterance ``index``; nothing of it follows."""
        self._queue = deque(item for item in self._queue if item.index != index)
        if self._index == index:
            self._open = False

    def pending(self, index: int) -> int:
        """How many packets of utterance ``index`` wait."""
        return sum(item.index == index for item in self._queue)

    def heard_s(self, index: int, now: float) -> float | None:
        """Seconds of utterance ``index`` that have left for the listener; None if another came after it."""
        if self._index is not None and index < self._index:
            return None
        if index != self._index or not self._frames:
            return 0.0
        return (self._frames - 1) * FRAME_S + min(FRAME_S, max(0.0, now - self._taken_at))

    @property
    def wake_at(self) -> float:
        """When `take` will give something, if nothing is pushed before."""
        hoping = self._open and not self._queue and not self._dry
        return self._due + (_PATIENCE_S if hoping else 0.0)

    def take(self, now: float) -> Slot | None:
        """The packet that leaves now, or None before `wake_at`."""
        if now < self.wake_at:
            return None
        silent = not self._queue or (self._audible and self._queue[0].index != self._index)
        if silent:
            if self._open and not self._dry:
                self.gaps += not self._queue
                self._dry = True
            index, payload, ready_at = None, SILENCE, self.wake_at
        else:
            item = self._queue.popleft()
            index, payload, ready_at = item.index, item.payload, max(self._due, item.since)
            self._spoke(index, now)
        slot = Slot(self._timestamp, payload, index, now - ready_at)
        self._audible = not silent
        self._timestamp += FRAME_TICKS
        self._advance(now, ready_at)
        return slot

    @property
    def _due(self) -> float:
        return self._anchor + self._slots * FRAME_S

    def _spoke(self, index: int, now: float) -> None:
        if index != self._index:
            self._index, self._frames, self._open = index, 0, True
        self._frames += 1
        self._taken_at = now
        self._dry = False
        if self._finished == index and not self.pending(index):
            self._open = False

    def _advance(self, now: float, ready_at: float) -> None:
        if now - self._due > _CATCH_UP_S:
            self.stalls += now - ready_at > _CATCH_UP_S
            self.begin(now)
        self._slots += 1
