"""When the model is given which text, and for how many tokens it may speak then. Pure.

A segment is spoken in blocks: some text, then audio tokens. A non-final block holds a multiple of
``block_tokens`` audio tokens, and the model is never made to begin a word it was not given: blocks are sized
so that it cannot plausibly get through its text, and wait for more where it could.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockRules:
    """What a model was trained on; sizes in characters of spoken text (ASCII), lengths in audio tokens.

    ``fast_tokens_per_char`` is how few tokens a character takes when the model speaks fast: with it the look-
    ahead is estimated. ``streams_text`` False: every segment is one final block.
    """

    block_tokens: int = 24
    max_blocks: int = 4
    first_chars: int = 16
    later_chars: int = 8
    max_chars: int = 96
    max_whole_chars: int = 320
    fast_tokens_per_char: float = 2.5
    streams_text: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a segment stands.

    Attributes:
        words: spoken forms that the client has given of this segment so far.
        ended: no more words will be added to it.
        given: how many of them the model was given.
        begun: how many words it has begun to speak.
        blocks: multiples of ``block_tokens`` spoken in the open text block; 0 before the first one.
        final: the open text block is the final one.
    """

    words: Sequence[str]
    ended: bool
    given: int = 0
    begun: int = 0
    blocks: int = 0
    final: bool = False


@dataclass(frozen=True, slots=True)
class Give:
    """Give the next ``words`` words (may be 0 when ``final``), then ask for ``tokens`` audio tokens."""

    words: int
    final: bool
    tokens: int


@dataclass(frozen=True, slots=True)
class Continue:
    """Ask for ``tokens`` more audio tokens in the open text block."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be asked before there is more text, or the segment's end."""


Step = Give | Continue | Wait


def next_step(rules: BlockRules, now: Progress) -> Step:
    """What to ask of the model next. Called at block edges only."""
    whole = rules.block_tokens * rules.max_blocks
    if now.final:
        return Continue(whole)
    rest = _chars(now.words[now.given :])
    if now.ended:
        limit = rules.max_chars if now.given else rules.max_whole_chars
        if rest <= limit:
            return Give(len(now.words) - now.given, True, whole)
    step = (_give(rules, now) or _continue(rules, now)) if rules.streams_text else None
    if step is None:
        # An ended segment always gets on: one word may be longer than any block.
        return Give(len(now.words) - now.given, True, whole) if now.ended else Wait()
    return step


def _give(rules: BlockRules, now: Progress) -> Give | None:
    """The most text at hand that one block may hold, if it is enough to begin with."""
    count, chars = 0, 0
    for word in now.words[now.given :]:
        if count and chars + len(word) + 1 > rules.max_chars:
            break
        count, chars = count + 1, chars + len(word) + 1
    if chars < (rules.later_chars if now.given else rules.first_chars):
        return None
    blocks = _safe_blocks(rules, now, now.given + count)
    return Give(count, False, blocks * rules.block_tokens) if blocks else None


def _continue(rules: BlockRules, now: Progress) -> Continue | None:
    if not now.given:
        return None
    blocks = min(_safe_blocks(rules, now, now.given), rules.max_blocks - now.blocks)
    return Continue(blocks * rules.block_tokens) if blocks > 0 else None


def _safe_blocks(rules: BlockRules, now: Progress, given: int) -> int:
    """How many blocks surely end before the last of the first ``given`` words begins."""
    ahead = _chars(now.words[min(now.begun, given) : given - 1]) if given else 0
    return min(rules.max_blocks, int(ahead * rules.fast_tokens_per_char) // rules.block_tokens)


def _chars(words: Sequence[str]) -> int:
    return sum(len(word) + 1 for word in words)


def may_end(rules: BlockRules, now: Progress, tokens: int) -> bool:
    """Whether the segment could honestly end within ``tokens`` more audio tokens."""
    return _chars(now.words[now.begun :]) * rules.fast_tokens_per_char < tokens


def token_bound(words: Sequence[str]) -> int:
    """Audio tokens (50 a second) that no honest reading of ``words`` passes: a guard against runaways."""
    return 60 + sum(20 + 6 * len(word) for word in words)


def word_bound(word: str) -> int:
    """Audio tokens from a word's begin, or a segment's, until the next, or the end, at the latest."""
    return 80 + 10 * len(word)
