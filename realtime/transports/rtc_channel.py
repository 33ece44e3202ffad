"""A data channel and a paced track as one `Channel`: text on the one, audio on the other, in order."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from aiortc import RTCDataChannel
from aiortc.exceptions import InvalidStateError

from realtime.driver import ChannelClosed
from realtime.protocols.base import Frame
from realtime.protocols.frames import AudioFrame, Flags
from realtime.transports.rtc_track import PacedTrack

logger = logging.getLogger(__name__)

_UNREAD_MESSAGES: Final = 4096
_UNSENT_BYTES: Final = 256 << 10


class RtcChannel:
    """See `Channel`. ``drop`` lets go of the whole connection at once.

    A sentinel goes out when the last packet of its utterance has; what follows it waits for it.
    """

    def __init__(self, data: RTCDataChannel, track: PacedTrack, drop: Callable[[], None]) -> None:
        self._data, self._track, self._drop = data, track, drop
        self._inbox: deque[Frame] = deque()
        self._held: deque[tuple[Frame, int | None]] = deque()
        self._arrived, self._flushed, self._drained, self._closed = (asyncio.Event() for _ in range(4))
        self._gone: str | None = None
        self._flushed.set()
        track.on_sent = self._flush
        data.bufferedAmountLowThreshold = _UNSENT_BYTES // 2
        data.on("message", self._take)
        data.on("close", self._data_closed)
        data.on("bufferedamountlow", self._drained.set)

    async def receive(self) -> Frame:
        """See `Channel`."""
        while not self._inbox:
            if self._gone is not None:
                raise ChannelClosed(self._gone)
            self._arrived.clear()
            await self._arrived.wait()
        return self._inbox.popleft()

    async def send(self, frame: Frame) -> None:
        """See `Channel`."""
        self._check()
        if isinstance(frame, str):
            self._hold(frame, None)
        else:
            await self._media(frame)
        while self._gone is None and self._data.bufferedAmount > _UNSENT_BYTES:
            self._drained.clear()
            await self._drained.wait()

    async def close(self, code: int, reason: str) -> None:
        """See `Channel`: a data channel has no close codes, what there is to say was said before."""
        await self._flushed.wait()
        self._check()
        self._data.close()
        await self._closed.wait()

    def abort(self) -> None:
        """See `Channel`."""
        self._drop()

    def lost(self, why: str) -> None:
        """The peer is gone: whoever waits is let go."""
        if self._gone is None:
            self._gone = why
        for event in (self._arrived, self._flushed, self._drained, self._closed):
            event.set()
        self._track.stop()

    async def _media(self, message: bytes) -> None:
        frame = AudioFrame.parse(message)
        if frame.flags & Flags.EOS:
            self._track.finish(frame.index)
            self._hold(message, frame.index)
        elif frame.flags & Flags.DISCONTINUITY:
            self._track.drop(frame.index)
            self._held = deque(item for item in self._held if item[1] != frame.index)
            self._flush()
        else:
            await self._track.put(frame.index, frame.payload)

    def _hold(self, frame: Frame, index: int | None) -> None:
        self._held.append((frame, index))
        self._flushed.clear()
        self._flush()

    def _flush(self) -> None:
        """Send what waits for no packet any more. ``index`` is the utterance whose packets it waits for."""
        while self._held:
            frame, index = self._held[0]
            if index is not None and self._track.pending(index):
                return
            self._held.popleft()
            if self._gone is None:
                self._tell(frame)
        self._flushed.set()

    def _tell(self, frame: Frame) -> None:
        try:
            self._data.send(frame)
        except InvalidStateError:
            self.lost("the data channel is closed")

    def _take(self, message: Frame) -> None:
        if len(self._inbox) >= _UNREAD_MESSAGES:
            logger.warning("peer dropped: it sends faster than it can be read")
            self._drop()
            return
        self._inbox.append(message)
        self._arrived.set()

    def _data_closed(self) -> None:
        self.lost("the data channel was closed")

    def _check(self) -> None:
        if self._gone is not None:
            raise ChannelClosed(self._gone)
