"""What is measured of one utterance: for metrics and the log. Holds no text."""

from dataclasses import dataclass
from typing import Literal

from engine.contract import Usage
from realtime.errors import ErrorCode
from realtime.messages import TtfpParts

Outcome = Literal["complete", "empty", "cancelled", "failed", "lost"]
"""How it ended; ``lost`` is a connection that went away."""


@dataclass(frozen=True, slots=True)
class UtteranceReport:
    """Figures of one utterance that has ended.

    ``gap_ms`` is silence a listener heard inside it because audio came late; ``wasted_ms`` is audio that was
    made and never heard; ``words``/``words_spoken`` are counts in the spoken form; ``remade`` counts segments
    that had to be made again.
    """

    utterance: str
    index: int
    outcome: Outcome
    error: ErrorCode | None
    ttfp_ms: float | None
    ttfp_parts: TtfpParts | None
    budget_ms: float | None
    budget_met: bool | None
    audio_ms: float
    sent_ms: float
    gap_ms: float
    wasted_ms: float
    text_chars: int
    words: int
    words_spoken: int
    remade: int
    usage: Usage
