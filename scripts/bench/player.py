"""A simulated listener: plays what has arrived, and tells when it had nothing to play. Pure."""

from dataclasses import dataclass, field

AUDIBLE_S = 0.1
"""A gap longer than this is an audible fault (the bound of vLLM-Omni's `audio_continuity.py`)."""


@dataclass(slots=True)
class Player:
    """Starts with the first packet, plays at real time, and stalls when the next packet is late.

    ``arrived`` takes packets in order: arrival time in seconds on any monotonic clock, length in seconds.
    """

    stalls_s: list[float] = field(default_factory=list)
    lead_s: float = 0.0
    """Audio in hand when the last packet arrived, before it."""
    plays_until_s: float = float("-inf")
    """When everything that has arrived is played."""

    def arrived(self, now_s: float, length_s: float) -> None:
        """Take the next packet."""
        if self.plays_until_s == float("-inf"):
            self.plays_until_s = now_s
        self.lead_s = self.plays_until_s - now_s
        if self.lead_s < 0:
            self.stalls_s.append(-self.lead_s)
            self.plays_until_s = now_s
        self.plays_until_s += length_s

    @property
    def audible(self) -> int:
        """How many stalls a listener notices."""
        return sum(stall > AUDIBLE_S for stall in self.stalls_s)
