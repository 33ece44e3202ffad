"""The utterances of one session: who is meant by a name, who is next, and how many there may be. Pure."""

from collections import deque
from collections.abc import Callable, Iterator

from realtime.errors import InvalidRequest, TooLarge
from realtime.limits import Limits
from realtime.options import SessionConfig
from realtime.utterance import Phase, Utterance

_MAX_NAME = 64
_REMEMBERED = 64


class Roster:
    """Utterances without a terminal, in the order in which they are spoken.

    ``make`` builds an utterance from its name and index.
    """

    def __init__(self, limits: Limits, make: Callable[[str, int, SessionConfig], Utterance]) -> None:
        self._limits, self._make = limits, make
        self._live: dict[int, Utterance] = {}
        self._count = 0
        self._cut_off: deque[str] = deque(maxlen=_REMEMBERED)

    def __iter__(self) -> Iterator[Utterance]:
        return iter(list(self._live.values()))

    def __len__(self) -> int:
        return len(self._live)

    def get(self, index: int) -> Utterance | None:
        """The live utterance of that index."""
        return self._live.get(index)

    def speaking(self, index: int) -> Utterance | None:
        """The utterance of that index, if the engine has it."""
        utterance = self._live.get(index)
        return utterance if utterance is not None and utterance.phase is Phase.SPEAKING else None

    @property
    def current(self) -> Utterance | None:
        """The one to be spoken now: the first that is not wholly made yet."""
        return next((u for u in self._live.values() if u.phase is not Phase.DRAINING), None)

    @property
    def newest_open(self) -> Utterance | None:
        """Where text without a name belongs."""
        return next((u for u in reversed(self._live.values()) if not u.text_ended), None)

    def named(self, name: str) -> Utterance | None:
        """The live utterance of that name. Raises `InvalidRequest` for a name that cannot be one."""
        if not 0 < len(name) <= _MAX_NAME:
            raise InvalidRequest(f"a name has 1 to {_MAX_NAME} characters, got {len(name)}", "utterance")
        return next((u for u in self._live.values() if u.name == name), None)

    def cut_off(self, name: str | None) -> bool:
        """True when this one was cancelled before its text was over: what still comes for it is stale."""
        return name is not None and name in self._cut_off

    def add(self, name: str | None, config: SessionConfig) -> Utterance:
        """A new utterance, spoken after all others. Raises `TooLarge` when there are too many."""
        if len(self._live) >= self._limits.pending_utterances:
            raise TooLarge("pending_utterances", len(self._live) + 1, self._limits.pending_utterances)
        index = self._count
        self._count += 1
        utterance = self._make(name or self._unused(index + 1), index, config)
        self._live[index] = utterance
        return utterance

    def check_text(self, utterance: Utterance, chars: int) -> None:
        """May ``chars`` more characters be added to ``utterance``? Raises `TooLarge`."""
        size = len(utterance.text) + chars
        if size > self._limits.utterance_chars:
            raise TooLarge("utterance_chars", size, self._limits.utterance_chars)
        pending = sum(len(u.text) for u in self._live.values()) + chars
        if pending > self._limits.pending_chars:
            raise TooLarge("pending_chars", pending, self._limits.pending_chars)

    def remove(self, utterance: Utterance) -> None:
        """It has its terminal."""
        self._live.pop(utterance.index, None)
        if utterance.phase is Phase.CANCELLED and not utterance.text_ended:
            self._cut_off.append(utterance.name)

    def _unused(self, number: int) -> str:
        names = {u.name for u in self._live.values()}
        while f"u{number}" in names:
            number += 1
        return f"u{number}"
