"""Who a session speaks for, and what they may: text is put to them before the session sees it."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from realtime.errors import RealtimeError
from realtime.messages import AppendText, Command, Event, Reject
from realtime.protocols.base import Adapter, Frame

CALLER_STATE: Final = "voxwire.caller"
"""Key of the ASGI scope's ``state``: the `Caller`, where the server knows its callers."""


class Caller(Protocol):
    """Whoever is at the other end of a connection."""

    @property
    def name(self) -> str | None:
        """Of the key; None for a caller that needs none."""
        ...

    def take_text(self, session: str, utterance: str | None, text: str) -> None:
        """``text`` is to be spoken. Raises `RateLimited` when that is more than the caller may have."""
        ...


class TokenBucket:
    """``capacity`` units that refill in ``period_s`` seconds. Pure: ``now`` is any clock's, in seconds."""

    def __init__(self, capacity: float, period_s: float, now: float) -> None:
        self.capacity = capacity
        self._rate = capacity / period_s
        self._level = capacity
        self._at = now

    def take(self, amount: float, now: float) -> float:
        """Take ``amount``. Returns 0, or the seconds until it can be had if there is too little now.

        More than the whole capacity can be had from a full bucket: what follows waits the longer for it.
        """
        self._level = min(self.capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        lacking = min(amount, self.capacity) - self._level
        if lacking > 0:
            return lacking / self._rate
        self._level -= amount
        return 0.0


class MeteredAdapter:
    """An adapter whose texts are put to ``take`` first; what it raises fails the session in their place."""

    def __init__(self, inner: Adapter, take: Callable[[AppendText], None]) -> None:
        self._inner = inner
        self._take = take

    def receive(self, message: Frame) -> Sequence[Command]:
        """See `Adapter`."""
        commands: list[Command] = []
        for command in self._inner.receive(message):
            if isinstance(command, AppendText):
                try:
                    self._take(command)
                except RealtimeError as error:
                    return [*commands, Reject(error)]
            commands.append(command)
        return commands

    def render(self, event: Event) -> Sequence[Frame]:
        """See `Adapter`."""
        return self._inner.render(event)
