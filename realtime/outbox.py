"""Events on their way to the client: two lanes and a bound. Pure.

The urgent lane (errors, warnings, `utterance.cancelled`) overtakes everything queued; the ordered lane keeps
an utterance's start, audio, words, sentinel and terminal in order.
"""

from collections import deque

from realtime.errors import SlowConsumer
from realtime.messages import (
    AudioEnded,
    AudioReady,
    CloseConnection,
    Event,
    UtteranceDone,
    UtteranceStarted,
    WordsSpoken,
)

_MAX_URGENT = 256


class Outbox:
    """What the writer takes from. ``audio_ms`` of it is audio; the session holds that to its limit.

    Everything else in it is bounded by what is bounded elsewhere: words by the utterance's text, terminals
    by the number of utterances.
    """

    def __init__(self) -> None:
        self._urgent: deque[Event] = deque()
        self._ordered: deque[tuple[Event, float]] = deque()
        self.audio_ms = 0.0

    def __len__(self) -> int:
        return len(self._urgent) + len(self._ordered)

    def push(self, event: Event, audio_ms: float = 0.0) -> None:
        """Queue ``event`` behind everything that is in order; ``audio_ms`` is the length of its audio."""
        self._ordered.append((event, audio_ms))
        self.audio_ms += audio_ms

    def push_urgent(self, event: Event) -> None:
        """Queue ``event`` before everything but earlier urgent ones.

        Raises `SlowConsumer` when the client goes on causing such events without reading them.
        """
        if len(self._urgent) >= _MAX_URGENT:
            raise SlowConsumer(f"{_MAX_URGENT} messages wait for the client to read")
        self._urgent.append(event)

    def pop(self) -> Event | None:
        """The next event to send, or None."""
        if self._urgent:
            return self._urgent.popleft()
        if not self._ordered:
            return None
        event, audio_ms = self._ordered.popleft()
        self.audio_ms -= audio_ms
        return event

    def drop(self, index: int) -> bool:
        """Remove everything of utterance ``index``. True when even its start had not been sent yet."""
        kept: deque[tuple[Event, float]] = deque()
        unstarted = False
        for event, audio_ms in self._ordered:
            if _index(event) == index:
                self.audio_ms -= audio_ms
                unstarted = unstarted or isinstance(event, UtteranceStarted)
            else:
                kept.append((event, audio_ms))
        self._ordered = kept
        return unstarted

    def clear(self) -> None:
        """Throw everything away."""
        self._urgent.clear()
        self._ordered.clear()
        self.audio_ms = 0.0

    def close(self, *last: Event, code: int, reason: str = "") -> None:
        """Throw everything away; ``last`` and then the close of the connection are all that is sent."""
        self.clear()
        self._urgent.extend((*last, CloseConnection(code, reason)))


def _index(event: Event) -> int | None:
    match event:
        case UtteranceStarted() | AudioReady() | AudioEnded() | WordsSpoken() | UtteranceDone():
            return event.index
        case _:
            return None
