"""One utterance as the client sees it: text goes in, checked packets or exact PCM come out."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import numpy as np

from realtime.client_decoder import Decoder, Pcm
from realtime.client_errors import ClientError, ProtocolViolation, StreamTruncated
from realtime.client_stream import Done, Frame, Packet, StreamCheck, StreamFormat

Send = Callable[[dict[str, Any]], Awaitable[None]]

_BUFFERED_PACKETS = 256
"""Packets kept for a caller that is busy; beyond them the socket is not read, so that the server feels it."""
_TEXT_PIECE = 4096
"""Code points of text in one message: 16 KiB at most."""


class Word(msgspec.Struct, frozen=True):
    """A word being spoken: times in ms from the utterance's start, code points in the utterance's text."""

    text: str
    start_ms: float
    end_ms: float
    char_start: int
    char_end: int


class Cancelled(msgspec.Struct, frozen=True):
    """The `utterance.cancelled` message: what the listener heard. ``clock`` is what the figure rests on."""

    utterance: str
    sent_ms: float
    heard_ms: float
    heard_text: str
    unheard_text: str
    clock: str


class Utterance:
    """Text in, speech out. Made by `Session.utterance`; iterate it for PCM or use `packets` for wire packets.

    Iteration ends after the sentinel, or after the server confirmed a `cancel`. It raises `StreamTruncated`,
    `ServerError` or `ProtocolViolation`; what was heard until then is not the whole utterance.
    """

    def __init__(self, name: str, fmt: StreamFormat, send: Send, timeout_s: float) -> None:
        self.name = name
        self.format = fmt
        self.words: list[Word] = []
        """Words so far, in the order spoken, when the session asked for them."""
        self.done: Done | None = None
        self.cancelled: Cancelled | None = None
        self.first_text_s: float | None = None
        """Event loop time at which the first text was about to be sent."""
        self.first_packet_s: float | None = None
        self._check = StreamCheck(fmt)
        self._send = send
        self._timeout_s = timeout_s
        self._ended = False
        self._dropping = False
        self._packets: deque[Packet] = deque()
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._over = False
        self._error: ClientError | None = None

    @property
    def over(self) -> bool:
        """Whether its terminal came (or its connection was lost)."""
        return self._over

    @property
    def ttfp_ms(self) -> float | None:
        """From the first text to the first packet, as this client saw it."""
        if self.first_text_s is None or self.first_packet_s is None:
            return None
        return (self.first_packet_s - self.first_text_s) * 1000

    async def send(self, text: str) -> None:
        """Send a piece of text, cut anywhere. Raises as iteration does when the session is over."""
        for start in range(0, len(text), _TEXT_PIECE):
            if self.first_text_s is None:
                self.first_text_s = asyncio.get_running_loop().time()
            await self._send(
                {"type": "text", "utterance": self.name, "text": text[start : start + _TEXT_PIECE]}
            )

    async def flush(self) -> None:
        """Have everything sent so far spoken now; more text may follow."""
        await self._send({"type": "flush", "utterance": self.name})

    async def end(self) -> None:
        """No more text."""
        await self._send({"type": "end", "utterance": self.name})
        self._ended = True

    async def cancel(self, played_ms: float | None = None) -> Cancelled | Done:
        """Stop now. Audio not yet iterated is dropped; ``played_ms`` is what the listener heard.

        Returns what the server says was heard, or `Done` if the utterance was complete before it could stop.
        """
        message: dict[str, Any] = {"type": "cancel", "utterance": self.name}
        if played_ms is not None:
            message["played_ms"] = played_ms
        self._drop()
        if not self._over:
            await self._send(message)
        while not self._over:
            await self._wait(self._timeout_s)
        if self._error is not None:
            raise self._error
        outcome = self.cancelled or self.done
        assert outcome is not None, "an utterance without an error has an outcome once it is over"
        return outcome

    async def packets(self) -> AsyncIterator[Packet]:
        """The utterance's packets as they came, checked."""
        while True:
            while self._packets:
                self._room.set()
                yield self._packets.popleft()
            if self._over:
                if self._error is not None:
                    raise self._error
                return
            await self._wait(self._timeout_s if self._ended else None)

    async def __aiter__(self) -> AsyncIterator[Pcm]:
        """PCM at `client_decoder.decoded_rate`, exact to the sample once iteration is over."""
        decoder = Decoder(self.format)
        async for packet in self.packets():
            pcm = decoder.decode(packet)
            if len(pcm):
                yield pcm
        if self.done is not None and self.done.samples:
            yield decoder.finish(self.done.samples)

    async def read(self) -> Pcm:
        """The whole utterance as one array, shape [N]."""
        return np.concatenate([np.zeros(0, np.float32), *[pcm async for pcm in self]])

    async def _wait(self, timeout_s: float | None) -> None:
        """Wait for something to happen. ``None``: for as long as the connection's own keep-alive holds."""
        self._changed.clear()
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            raise StreamTruncated(f"nothing came for {timeout_s:g} s") from None

    # What the session hands in, in the order in which it came.

    def _drop(self) -> None:
        """Take no more packets, so that nothing behind them has to wait for a caller who is gone."""
        self._dropping = True
        self._packets.clear()
        self._room.set()

    async def _frame(self, frame: Frame) -> None:
        self._open_still("a frame")
        packet = self._check.frame(frame)
        if packet is None:
            return
        if self.first_packet_s is None:
            self.first_packet_s = asyncio.get_running_loop().time()
        while len(self._packets) >= _BUFFERED_PACKETS and not self._dropping:
            self._room.clear()
            await self._room.wait()
        if not self._dropping:
            self._packets.append(packet)
            self._changed.set()

    def _words(self, words: list[Word]) -> None:
        self._open_still("words")
        self.words += words

    def _done(self, done: Done) -> None:
        self._open_still("utterance.done")
        self._check.done(done)
        self.done = done
        self._finish()

    def _cancelled(self, cancelled: Cancelled) -> None:
        self._open_still("utterance.cancelled")
        if self._check.length is not None:
            raise ProtocolViolation(f"utterance {self.name} was cancelled after its sentinel")
        self.cancelled = cancelled
        self._finish()

    def _fail(self, error: ClientError) -> None:
        if not self._over:
            self._error = error
            self._finish()

    def _finish(self) -> None:
        self._over = True
        self._changed.set()

    def _open_still(self, what: str) -> None:
        if self._over:
            raise ProtocolViolation(f"{what} follows the end of utterance {self.name}")
