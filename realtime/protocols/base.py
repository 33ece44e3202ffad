"""What every dialect is to a session."""

from collections.abc import Sequence
from typing import Protocol

from realtime.messages import Command, Event

Frame = str | bytes
"""One message of the transport: text or binary."""


class Adapter(Protocol):
    """Translates for one connection. Never raises on what a client sent: that becomes a `Reject`."""

    def receive(self, message: Frame) -> Sequence[Command]:
        """What the client's message asks for."""
        ...

    def render(self, event: Event) -> Sequence[Frame]:
        """The frames that tell the client of ``event``, in order; none if the dialect has no word for it."""
        ...
