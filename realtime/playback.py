"""How much of the sent audio the listener has heard, and how much still lies in the client's buffer. Pure.

A player is simulated: it begins with the first packet, plays in real time, stops when its buffer is empty
and goes on with the next packet. A transport that knows better (RTP, telephony marks) reports what it
really played. Positions are samples of the utterance; moments are seconds of the session's clock.
"""

import math
from dataclasses import dataclass


@dataclass(slots=True)
class Track:
    """One utterance in the player. From sample ``anchor`` on, it plays without a stop since ``anchor_at``."""

    rate: int
    sent: int = 0
    anchor: int = 0
    anchor_at: float = math.inf
    reported: int | None = None
    gap_s: float = 0.0
    """Silence in the middle of the utterance, because its audio came after the buffer had run dry."""

    def played(self, now: float) -> int:
        """Samples heard until ``now``."""
        if self.reported is not None:
            return min(self.sent, self.reported)
        if now <= self.anchor_at:
            return self.anchor
        return min(self.sent, self.anchor + round((now - self.anchor_at) * self.rate))

    def unplayed_s(self, now: float) -> float:
        """Seconds sent and not heard yet."""
        return (self.sent - self.played(now)) / self.rate


class Player:
    """The simulated player of one session; utterances play one after the other."""

    def __init__(self) -> None:
        self.ends_at = -math.inf
        """When the client's buffer will be empty."""

    def sent(self, track: Track, until: int, now: float) -> float:
        """Audio of ``track`` up to sample ``until`` was handed over.

        Returns the seconds of silence in front of it, if it came after the buffer had run dry in the middle
        of the utterance.
        """
        start, first = max(now, self.ends_at), track.sent == 0
        gap = 0.0
        if first or start > self.ends_at:
            gap = 0.0 if first else start - self.ends_at
            track.anchor, track.anchor_at = track.sent, start
            track.gap_s += gap
        self.ends_at = start + max(0, until - track.sent) / track.rate
        track.sent = max(track.sent, until)
        return gap

    def remaining_s(self, now: float) -> float:
        """Seconds of audio still to be heard, of all utterances."""
        return max(0.0, self.ends_at - now)

    def dropped(self, seconds: float) -> None:
        """The client threw ``seconds`` of sent audio away."""
        self.ends_at -= seconds

    def stopped(self, now: float) -> None:
        """The client threw away all it had."""
        self.ends_at = min(self.ends_at, now)
