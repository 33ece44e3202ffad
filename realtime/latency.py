"""Time to the first packet (TTFP) of an utterance, split into its parts. Pure.

It runs from the arrival of the text that made speech possible (for an utterance that had to wait for the one
before it: from the end of that wait) to the hand-over of the first packet to the transport.
"""

from dataclasses import dataclass, field

from engine.contract import Timings
from realtime.messages import TtfpParts


@dataclass(slots=True)
class TtfpMarks:
    """Moments of one utterance, in seconds of the session's clock; None while not reached."""

    text_at: float | None = None
    """The text that made speech possible arrived, or the wait for the utterance before was over."""
    opened_at: float | None = None
    """The engine has words, and has begun if it told so."""
    pcm_at: float | None = None
    """The first samples came from the engine."""
    encoded_at: float | None = None
    """The first packet is ready."""
    sent_at: float | None = None
    """The transport has taken the first packet."""
    _calls: list[float] = field(default_factory=list)
    """When the engine was given words or their end, until it began."""
    has_begun: bool = False
    """The engine told that the text was enough to begin."""

    def called(self, now: float) -> None:
        """The engine is being given words, or their end."""
        if not self.has_begun:
            self._calls.append(now)

    def begun(self, calls: int, now: float) -> None:
        """The engine began with what it was given in the first ``calls`` calls.

        What came before the last of them was not enough to speak: the clock runs from that one.
        """
        if 0 < calls <= len(self._calls):
            self.text_at = max(self._calls[calls - 1], self.text_at or 0.0)
        self.opened_at = now
        self.has_begun = True
        self._calls.clear()

    @property
    def ttfp_ms(self) -> float | None:
        """The whole, in ms; None before the first packet was sent."""
        if self.text_at is None or self.sent_at is None:
            return None
        return (self.sent_at - self.text_at) * 1000

    def parts(self, engine: Timings) -> TtfpParts | None:
        """The parts, in ms, or None before the first packet was sent. They add up to ``ttfp_ms``.

        ``engine`` splits the time inside the engine; what it does not account for was waiting.
        """
        marks = (self.text_at, self.opened_at, self.pcm_at, self.encoded_at, self.sent_at)
        text_at, opened_at, pcm_at, encoded_at, sent_at = marks
        if text_at is None or opened_at is None or pcm_at is None or encoded_at is None or sent_at is None:
            return None
        inside = (pcm_at - opened_at) * 1000
        told = engine.prefill_ms + engine.decode_ms + engine.vocode_ms
        # Its clock is not ours: should its parts exceed the time we saw pass, they are scaled into it.
        scale = min(1.0, inside / told) if told > 0 else 0.0
        return TtfpParts(
            segment=(opened_at - text_at) * 1000,
            queue=inside - told * scale,
            prefill=engine.prefill_ms * scale,
            decode=engine.decode_ms * scale,
            vocode=engine.vocode_ms * scale,
            encode=(encoded_at - pcm_at) * 1000,
            send=(sent_at - encoded_at) * 1000,
        )
