"""Vocabulary and sequence constants of the embedded voice: the one place where its token ids are defined.

A sequence interleaves text bytes and audio tokens. An *audio token* is a codec code or `WORD`, which
stands right before the first code of every spoken word.

    voice prefix   BOS PAD*n REF_TEXT bytes REF_AUDIO audio-tokens      (length a multiple of PREFIX_BLOCK)
    segment        (TEXT bytes AUDIO audio-tokens)* TEXT bytes END_TEXT AUDIO audio-tokens EOS

A non-final block holds exactly a multiple of `BLOCK_TOKENS` audio tokens. Further segments of one
utterance follow in the same context.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PAD, BOS, EOS = 0, 1, 2
REF_TEXT, REF_AUDIO = 3, 4
TEXT, AUDIO, END_TEXT = 5, 6, 7
WORD = 9

BYTE_BASE = 16
"""UTF-8 byte b has id BYTE_BASE + b."""
CODE_BASE = 272
"""Codec code c has id CODE_BASE + c."""
CODE_COUNT = 8000
VOCAB_SIZE = 8320

PREFIX_BLOCK = 32
"""The voice prefix is padded to a multiple of this (vLLM's block size on the CPU)."""
BLOCK_TOKENS = 24
"""Audio tokens of a non-final block come in multiples of this."""
MIN_TEXT_BYTES = 16
"""A non-final text block is the shortest cut at a word end with at least this many bytes."""

TOKEN_RATE_HZ = 50
SAMPLE_RATE_HZ = 24_000
SAMPLES_PER_CODE = SAMPLE_RATE_HZ // TOKEN_RATE_HZ

_LETTER = re.compile(r"[a-z]")


def text_ids(text: str) -> list[int]:
    """Token ids of a spoken-form text, one a UTF-8 byte."""
    return [BYTE_BASE + byte for byte in text.encode("utf-8")]


def spoken_words(text: str) -> list[str]:
    """The words of a spoken-form text: whitespace-separated items that contain a letter."""
    return [item for item in text.split() if _LETTER.search(item)]


def voice_prefix(text: str, audio_tokens: Iterable[int]) -> list[int]:
    """The reusable prefix of one voice; it holds nothing of the text to be spoken.

    Args:
        text: what the reference audio says, in spoken form.
        audio_tokens: token ids (codes and `WORD`) of the reference audio.

    Returns:
        Token ids whose count is a multiple of `PREFIX_BLOCK`, padded after `BOS`.
    """
    body = [REF_TEXT, *text_ids(text), REF_AUDIO, *audio_tokens]
    padding = -(1 + len(body)) % PREFIX_BLOCK
    return [BOS, *[PAD] * padding, *body]


def text_block(text: str, *, final: bool) -> list[int]:
    """Token ids that hand one block of text to the model; audio tokens follow."""
    return [TEXT, *text_ids(text), *([END_TEXT] if final else []), AUDIO]


def first_cut(text: str) -> int:
    """Length of the next text block: the shortest cut at a word end with enough bytes.

    The cut includes the trailing space. Spoken text is ASCII, so characters are bytes.

    Returns:
        The number of characters to take, or 0 when no word end is far enough along.
    """
    at = text.find(" ", MIN_TEXT_BYTES - 1)
    return at + 1 if 0 <= at < len(text) - 1 else 0
