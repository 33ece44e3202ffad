"""What enters the engine: checks before anything is spent, and the words given so far. Pure."""

from collections.abc import Sequence

from engine.contract import SAMPLING_LIMITS, ModelInfo, SpeechRequest, SpokenWord, VoiceInfo
from engine.errors import RequestRejected, VoiceNotFound

_MAX_SPOKEN = 128


def find_voice(info: ModelInfo, name: str) -> VoiceInfo:
    """The voice of that name. Raises `VoiceNotFound` with the names there are."""
    voice = info.voices.get(name)
    if voice is None:
        raise VoiceNotFound(name, tuple(sorted(info.voices)))
    return voice


def check_request(info: ModelInfo, request: SpeechRequest) -> None:
    """Raises `RequestRejected` naming the first field that is wrong and what it may be."""
    if not request.request_id:
        raise RequestRejected("request_id", "must not be empty")
    find_voice(info, request.voice)
    slowest, fastest = info.speed_range
    if not slowest <= request.speed <= fastest:
        allowed = f"between {slowest} and {fastest}" if fastest > slowest else f"only {slowest}"
        raise RequestRejected("speed", f"model {info.name} allows {allowed}, got {request.speed}")
    for name, (low, high) in SAMPLING_LIMITS.items():
        value = getattr(request.sampling, name)
        if value is not None and not low <= value <= high:
            raise RequestRejected(name, f"must be between {low} and {high}, got {value}")


class WordFeed:
    """The words of one utterance as they are pushed, cut into segments.

    ``ends[i]`` is the number of words up to and with segment ``i``; words past the last end belong to the
    open segment. Ending a segment that has no word yet does nothing, so that no segment is empty.
    """

    def __init__(self, max_words: int) -> None:
        self._max_words = max_words
        self.words: list[SpokenWord] = []
        self.ends: list[int] = []
        self.finished = False
        self.calls = 0
        """Calls of `push` and `finish` that were taken."""

    def push(self, words: Sequence[SpokenWord], *, end_segment: bool) -> None:
        """Add words. Raises `RequestRejected` (and adds none) when one is malformed or they are too many."""
        if self.finished and (words or end_segment):
            raise RequestRejected("words", "the utterance is finished; open another one")
        if len(self.words) + len(words) > self._max_words:
            raise RequestRejected("words", f"an utterance has at most {self._max_words} words")
        for word in words:
            _check_word(word)
        self.words.extend(words)
        self.calls += 1
        if end_segment:
            self._end()

    def finish(self) -> None:
        """No more words; ends the open segment. Doing it twice is the same as once."""
        self._end()
        self.finished = True
        self.calls += 1

    def _end(self) -> None:
        if len(self.words) > (self.ends[-1] if self.ends else 0):
            self.ends.append(len(self.words))

    def segment(self, index: int) -> tuple[int, int, bool]:
        """First word, one past the last word given so far, and whether segment ``index`` is complete."""
        first = self.ends[index - 1] if index > 0 else 0
        if index < len(self.ends):
            return first, self.ends[index], True
        return first, len(self.words), False

    def begun(self, index: int) -> bool:
        """True when segment ``index`` has a word."""
        first, count, _ = self.segment(index)
        return count > first

    def over(self, index: int) -> bool:
        """True when no segment ``index`` will ever exist."""
        return self.finished and index >= len(self.ends)


def _check_word(word: SpokenWord) -> None:
    spoken = word.spoken
    if not spoken or len(spoken) > _MAX_SPOKEN or any(c.isspace() for c in spoken):
        raise RequestRejected("words", f"a spoken word has 1 to {_MAX_SPOKEN} characters and no white space")
    if not any(c.isalpha() for c in spoken):
        raise RequestRejected("words", f"a spoken word has at least one letter, got {spoken!r}")
    if not 0 <= word.char_start <= word.char_end:
        raise RequestRejected("words", f"bad character range {word.char_start}..{word.char_end}")
