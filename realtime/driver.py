"""Runs one session: performs its effects, pumps engine and encoder, reads and writes the channel.

The only place of `realtime` that creates tasks. All of a session's tasks are children of one group and are
gone when `SessionDriver.run` returns.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Protocol, TypeVar

from engine.contract import PcmChunk, SpeechDone, SpeechStream
from engine.errors import EngineError, GenerationFailed
from realtime import effects as do
from realtime.audio.encoder import make_encoder
from realtime.audio.formats import AudioFormat
from realtime.audio.packets import PacketEncoder
from realtime.errors import Draining, Fault, RealtimeError
from realtime.messages import AppendText, AudioReady, CloseConnection, Played
from realtime.protocols.base import Adapter, Frame
from realtime.registry import SessionHub
from realtime.session import Session

logger = logging.getLogger(__name__)

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, None]]
"""What a task does. Not a coroutine yet: a task that is cancelled before its first step never makes one."""

_SLICE_CHARS = 400
"""Text read without a pause: some milliseconds of work."""


class ChannelClosed(Exception):
    """The connection is gone."""


class Unforeseen(Exception):
    """What broke has no name among our errors; it is in the log, and the client is told no details."""


class Channel(Protocol):
    """A connection that carries messages. One reader and one writer use it at a time."""

    async def receive(self) -> Frame:
        """The client's next message. Raises `ChannelClosed`."""
        ...

    async def send(self, frame: Frame) -> None:
        """Hand over one message; waits while the client does not read. Raises `ChannelClosed`."""
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close in good order; may wait like `send`."""
        ...

    def abort(self) -> None:
        """Drop the connection at once, with whatever was not sent."""
        ...


class SessionDriver:
    """One session on one channel. `run` it once."""

    def __init__(
        self, hub: SessionHub, channel: Channel, adapter: Adapter, session_id: str | None = None
    ) -> None:
        self.id = session_id or hub.new_id()
        self._hub, self._channel, self._adapter = hub, channel, adapter
        self._clock = hub.clock
        self._session = Session(
            self.id,
            lambda: hub.engine.info,
            limits=hub.limits,
            tuning=hub.tuning,
            defaults=hub.defaults,
            now=self._clock.now(),
        )
        self._streams: dict[int, SpeechStream] = {}
        self._unclosed: dict[int, SpeechStream] = {}
        self._pumps: dict[int, asyncio.Task[None]] = {}
        self._spare: tuple[AudioFormat, PacketEncoder] | None = None
        self._outgoing, self._rearmed, self._over, self._written = (asyncio.Event() for _ in range(4))
        self._armed: float | None = None
        self._began_at = self._clock.now()
        self._admitted = False

    async def run(self) -> None:
        """From admission to the closed connection."""
        try:
            self._hub.enter(self.id, self)
            self._admitted = True
        except RealtimeError as error:
            self._fail(error)
        try:
            async with asyncio.TaskGroup() as self._group:
                tasks = [self._spawn(work) for work in (self._read, self._write, self._keep_time)]
                await self._over.wait()
                # What is still in the outbox (an error, the close) has this long to get out.
                await self._clock.wait(self._written, self._clock.now() + self._hub.tuning.close_s)
                if not self._written.is_set():
                    self._channel.abort()
                for task in (*tasks, *self._pumps.values()):
                    task.cancel()
        finally:
            self._session.connection_lost(self._clock.now())
            self._perform()
            for index in list(self._unclosed):
                await self._close_stream(index)
            self._hub.leave(self.id)

    def drain(self) -> None:
        """Begin no new utterance; close when those under way have ended."""
        self._session.drain(self._clock.now())
        self._perform()

    def stop(self, error: RealtimeError | None = None) -> None:
        """Fail what is under way, with ``error`` or else `Draining`, and close now."""
        self._fail(error or Draining())

    def played(self, index: int, samples: int) -> None:
        """A paced transport's own clock: ``samples`` (format's rate) of utterance ``index`` were played."""
        self._session.receive(Played(index, samples), self._clock.now())
        self._perform(rearm=False)

    # --- tasks ---

    def _spawn(self, work: Work, index: int | None = None) -> asyncio.Task[None]:
        return self._group.create_task(self._guarded(work, index))

    async def _guarded(self, work: Work, index: int | None) -> None:
        """Run a task; what breaks in it becomes the session's failure."""
        try:
            with self._boundary(index):
                await work()
        except ChannelClosed:
            self._session.connection_lost(self._clock.now())
            self._written.set()
            self._perform()
        except Unforeseen as error:
            self._fail(error, index)
        except (EngineError, RealtimeError) as error:
            if index is None or index in self._streams:
                self._fail(error, index)

    @contextmanager
    def _boundary(self, index: int | None) -> Iterator[None]:
        """The one place that takes whatever breaks inside a session: logged, it has a name from here on."""
        try:
            yield
        except (ChannelClosed, EngineError, RealtimeError):
            raise
        except Exception as error:
            logger.exception("session broke", extra={"session": self.id, "index": index})
            raise Unforeseen from error

    async def _read(self) -> None:
        while True:
            message = await self._channel.receive()
            now = self._clock.now()
            for command in self._adapter.receive(message):
                if isinstance(command, AppendText):
                    await self._read_text(command, now)
                else:
                    self._session.receive(command, now)
            self._perform()

    async def _read_text(self, command: AppendText, now: float) -> None:
        for piece in command.slices(_SLICE_CHARS):
            self._session.receive(piece, now)
            self._perform()
            if piece.more:
                await asyncio.sleep(0)

    async def _write(self) -> None:
        while True:
            event = self._session.next_event(self._clock.now())
            # Packets after the first change no deadline: that spares a third of the work on each.
            timed = not isinstance(event, AudioReady) or event.sequence == 0
            self._perform(rearm=timed)
            match event:
                case None:
                    self._outgoing.clear()
                    await self._outgoing.wait()
                case CloseConnection(code, reason):
                    await self._channel.close(code, reason)
                    self._written.set()
                    return
                case _:
                    for frame in self._adapter.render(event):
                        await self._channel.send(frame)
                    self._session.sent(event, self._clock.now())
                    self._perform(rearm=timed)
                    await asyncio.sleep(0)  # sending need not wait, and the reader must get its turn

    async def _keep_time(self) -> None:
        while True:
            self._rearmed.clear()
            self._armed = self._session.next_deadline(self._clock.now())
            await self._clock.wait(self._rearmed, self._armed)
            self._session.tick(self._clock.now())
            self._perform()

    async def _prewarm(self, voice: str, fmt: AudioFormat) -> None:
        prefix = await self._hub.engine.prewarm(voice)
        encoder = await self._off_loop(partial(make_encoder, fmt, self._model_rate))
        self._spare = fmt, encoder
        self._session.prewarmed(prefix, encoder.pre_skip, self._clock.now())
        self._perform()

    async def _pump(self, index: int, stream: SpeechStream, fmt: AudioFormat) -> None:
        try:
            encoder = await self._encoder(fmt)
            self._tell(index, do.EncoderReady(encoder.pre_skip))
            async for event in stream:
                match event:
                    case PcmChunk(samples, start):
                        self._tell(index, do.PcmMade(start, len(samples)))
                        packets = await self._off_loop(partial(encoder.encode, samples))
                        self._tell(index, do.Encoded(packets))
                    case SpeechDone():
                        self._tell(index, do.Encoded(await self._off_loop(encoder.finish)))
                        self._tell(index, do.SpeechEnded(event, encoder.length))
                        return
                    case _:
                        self._tell(index, event)
            raise GenerationFailed("the speech ended before it was complete")
        finally:
            self._pumps.pop(index, None)
            await self._close_stream(index)

    async def _close_stream(self, index: int) -> None:
        stream = self._unclosed.pop(index, None)
        if stream is not None:
            await stream.aclose()

    async def _encoder(self, fmt: AudioFormat) -> PacketEncoder:
        spare, self._spare = self._spare, None
        if spare is not None and spare[0] == fmt:
            return spare[1]
        return await self._off_loop(partial(make_encoder, fmt, self._model_rate))

    async def _off_loop(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._hub.encoders, work)

    @property
    def _model_rate(self) -> int:
        return self._hub.engine.info.sample_rate

    # --- the session ---

    def _tell(self, index: int, event: do.StreamEvent) -> None:
        self._session.heard_from(index, event, self._clock.now())
        self._perform(rearm=isinstance(event, do.SpeechEnded))

    def _fail(self, error: Exception, index: int | None = None) -> None:
        self._session.failed(error, self._clock.now(), index)
        self._perform()

    def _perform(self, *, rearm: bool = True) -> None:
        """Perform what the session asks for; wake the writer and, if a deadline may be nearer, the timer."""
        while effects := self._session.take_effects():
            for effect in effects:
                self._perform_one(effect)
        self._outgoing.set()
        if not rearm:
            return
        deadline = self._session.next_deadline(self._clock.now())
        if deadline is not None and (self._armed is None or deadline < self._armed):
            self._rearmed.set()

    def _perform_one(self, effect: do.Effect) -> None:
        match effect:
            case do.OpenStream() | do.PushWords() | do.FinishWords() | do.Grant():
                try:
                    # Here too, because the writer performs effects and must live to tell.
                    with self._boundary(effect.index):
                        self._command_stream(effect)
                except (EngineError, RealtimeError, Unforeseen) as error:
                    self._session.failed(error, self._clock.now(), effect.index)
            case do.CloseStream(index):
                self._cancel_stream(index)
            case do.Prewarm(voice, fmt):
                self._spawn(partial(self._prewarm, voice, fmt))
            case do.ReportUtterance(report):
                self._streams.pop(report.index, None)
                self._hub.observer.utterance_over(self.id, report)
                logger.info("utterance over", extra={"session": self.id, "report": asdict(report)})
            case do.CountWarning(code):
                self._hub.observer.warned(self.id, code)
                logger.warning("client warned", extra={"session": self.id, "code": code})
            case do.EndSession(fault):
                self._end(fault)

    def _command_stream(self, effect: do.OpenStream | do.PushWords | do.FinishWords | do.Grant) -> None:
        index = effect.index
        if isinstance(effect, do.OpenStream):
            opened = self._hub.engine.open(effect.request)
            self._streams[index] = self._unclosed[index] = opened
            self._pumps[index] = self._spawn(partial(self._pump, index, opened, effect.format), index)
            self._session.heard_from(index, do.StreamOpened(), self._clock.now())
            return
        stream = self._streams.get(index)
        if stream is None:
            return  # it failed to open, earlier among the same effects
        match effect:
            case do.PushWords(_, words, end_segment):
                stream.push(words, end_segment=end_segment)
            case do.FinishWords():
                stream.finish()
            case do.Grant(_, until):
                stream.grant(until)

    def _cancel_stream(self, index: int) -> None:
        self._streams.pop(index, None)
        pump = self._pumps.pop(index, None)
        if pump is not None:
            pump.cancel()  # also when it is the pump itself that is here: at its next wait
            self._spawn(partial(self._close_stream, index))  # the pump may not even have begun

    def _end(self, fault: Fault | None) -> None:
        self._over.set()
        seconds = self._clock.now() - self._began_at
        if self._admitted:
            self._hub.observer.session_closed(self.id, fault, seconds)
        logger.info(
            "session over",
            extra={"session": self.id, "code": fault.code.value if fault else None, "seconds": seconds},
        )
