"""A connection in memory, with a client's end for tests."""

import asyncio
import json
from collections import deque
from typing import Any

from realtime.driver import ChannelClosed
from realtime.protocols.base import Frame
from realtime.protocols.frames import AudioFrame


class MemoryChannel:
    """See `realtime.driver.Channel`. ``reading`` cleared: the client does not read."""

    def __init__(self) -> None:
        self.sent: list[Frame] = []
        self.closed: tuple[int, str] | None = None
        self.dropped = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()
        self._inbox: deque[Frame] = deque()
        self._changed = asyncio.Condition()
        self._gone = False

    # --- the server's end ---

    async def receive(self) -> Frame:
        async with self._changed:
            await self._changed.wait_for(lambda: self._inbox or self._gone)
            if self._inbox:
                return self._inbox.popleft()
        raise ChannelClosed("gone")

    async def send(self, frame: Frame) -> None:
        await self.reading.wait()
        if self._gone:
            raise ChannelClosed("gone")
        self.sent.append(frame)
        await self._notify()

    async def close(self, code: int, reason: str) -> None:
        await self.reading.wait()
        self.closed = code, reason
        await self._notify()

    def abort(self) -> None:
        self.dropped.set()

    # --- the client's end ---

    async def say(self, *messages: dict[str, Any] | Frame) -> None:
        """Send messages to the server."""
        for message in messages:
            self._inbox.append(json.dumps(message) if isinstance(message, dict) else message)
        await self._notify()

    async def vanish(self) -> None:
        """The client is gone without a word."""
        self._gone = True
        self.reading.set()
        await self._notify()

    async def until(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for the ``count``-th JSON message of that type."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: len(self.messages(kind)) >= count)
        return self.messages(kind)[count - 1]

    async def until_closed(self) -> tuple[int, str]:
        """Wait for the close; its code and reason."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: self.closed is not None)
        assert self.closed is not None
        return self.closed

    async def until_audio(self, count: int) -> None:
        """Wait for that many audio frames."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: len(self.audio()) >= count)

    def messages(self, kind: str | None = None) -> list[dict[str, Any]]:
        """JSON messages so far, of one type or all."""
        decoded = [json.loads(frame) for frame in self.sent if isinstance(frame, str)]
        return [body for body in decoded if kind in (None, body["type"])]

    def audio(self, index: int | None = None) -> list[AudioFrame]:
        """Audio frames so far, sentinels included."""
        frames = [AudioFrame.parse(frame) for frame in self.sent if isinstance(frame, bytes)]
        return [frame for frame in frames if index in (None, frame.index)]

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
