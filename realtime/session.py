"""One speaking session as a state machine: commands, engine events and time in; effects and events out.

    NEW --start--> STARTING --prewarmed--> READY --close, drain--> CLOSING --all spoken--> CLOSED
     |                |                      |                        |                      ^
     +----------------+------ failure, lost connection ---------------+----------------------+

Pure: no I/O, no tasks, no clock. After every call the driver performs `take_effects`. The writer takes events
with `next_event` and says `sent` once the transport has them.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from types import MappingProxyType

from engine.contract import ModelInfo, PrefixUsage
from engine.errors import EngineError, GenerationFailed
from realtime import effects as do
from realtime import messages as msg
from realtime.errors import (
    Draining,
    Fault,
    IdleTimeout,
    InvalidRequest,
    RealtimeError,
    SlowConsumer,
    fault_of,
)
from realtime.limits import Limits, Tuning
from realtime.options import SessionConfig, SessionDefaults, SessionOptions, resolve
from realtime.roster import Roster
from realtime.stage import Stage, Timer
from realtime.utterance import Utterance

logger = logging.getLogger(__name__)


class State(Enum):
    """Where a session is in its life."""

    NEW = auto()
    STARTING = auto()
    READY = auto()
    CLOSING = auto()
    CLOSED = auto()


STATES: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.NEW: frozenset({State.STARTING, State.CLOSED}),
        State.STARTING: frozenset({State.READY, State.CLOSED}),
        State.READY: frozenset({State.CLOSING, State.CLOSED}),
        State.CLOSING: frozenset({State.CLOSED}),
        State.CLOSED: frozenset(),
    }
)
"""Every transition there is."""


class Leaving(Enum):
    """Why a session is to close once everything is spoken."""

    CLIENT = auto()
    DRAIN = auto()


class Session:
    """See the module's docstring. ``model`` gives the model as it is now: voices come and go."""

    def __init__(
        self,
        session_id: str,
        model: Callable[[], ModelInfo],
        *,
        limits: Limits,
        tuning: Tuning,
        defaults: SessionDefaults,
        now: float,
    ) -> None:
        self.id = session_id
        self._model, self._limits, self._tuning, self._defaults = model, limits, tuning, defaults
        self._state = State.NEW
        self._leaving: Leaving | None = None
        self._options = SessionOptions()
        self._config: SessionConfig | None = None
        self._effects: list[do.Effect] = []
        self._roster = Roster(limits, self._make)
        self._stage = Stage(session_id, self._roster, limits, tuning, self._effects)
        self._began_at = self._active_at = now
        self._sending_since: float | None = None

    @property
    def state(self) -> State:
        """Where it is."""
        return self._state

    @property
    def busy(self) -> int:
        """Number of utterances without a terminal."""
        return len(self._roster)

    def take_effects(self) -> list[do.Effect]:
        """What is to be done now, in order."""
        taken = self._effects[:]
        self._effects.clear()
        return taken

    # --- from the client ---

    def receive(self, command: msg.Command, now: float) -> None:
        """Take a client's command. Whatever is wrong with it fails the session."""
        if self._state is State.CLOSED:
            return
        if not isinstance(command, msg.Played):  # that is the transport, not the client
            self._active_at = now
        try:
            self._dispatch(command, now)
        except RealtimeError as error:
            self.failed(error, now)
        self._advance(now)

    def _dispatch(self, command: msg.Command, now: float) -> None:
        match command:
            case msg.Reject(error):
                raise error
            case msg.StartSession(options):
                self._start(options)
            case _ if self._state is State.NEW:
                raise InvalidRequest("the first message must be session.start", "type")
            case msg.UpdateSession(options):
                self._update(options)
            case msg.AppendText():
                self._append(command, now)
            case msg.Flush(name):
                self._flush(name, now)
            case msg.End(name):
                self._end(name, now)
            case msg.Cancel(name, played_ms):
                self._cancel(name, played_ms, now)
            case msg.Played(index, samples):
                self._stage.played(index, samples)
            case msg.Close():
                self._close(now)
            case msg.KeepAlive():
                pass

    def _start(self, options: SessionOptions) -> None:
        if self._state is not State.NEW:
            raise InvalidRequest("the session was already started; session.update changes it", "type")
        self._configure(options)
        self._enter(State.STARTING)

    def _update(self, options: SessionOptions) -> None:
        self._configure(options.over(self._options))

    def _configure(self, options: SessionOptions) -> None:
        before = self._config
        self._options, self._config = options, resolve(options, self._model(), self._defaults)
        if before is None or before.voice != self._config.voice:
            self._effects.append(do.Prewarm(self._config.voice, self._config.format))

    def _append(self, piece: msg.AppendText, now: float) -> None:
        utterance = self._target(piece.utterance, opens=True)
        if utterance is None:
            return
        try:
            self._roster.check_text(utterance, len(piece.text) + piece.more)
            self._stage.give(utterance, piece.text, self._model().max_utterance_words, now)
        except RealtimeError as error:
            self.failed(error, now, utterance.index)

    def _flush(self, name: str | None, now: float) -> None:
        utterance = self._target(name, opens=False)
        if utterance is not None:
            self._stage.give(utterance, None, self._model().max_utterance_words, now)

    def _end(self, name: str | None, now: float) -> None:
        # An end without any text before it is an utterance too: an empty one, with a start and a terminal.
        utterance = self._target(name, opens=True)
        if utterance is not None:
            self._stage.end_text(utterance, self._model().max_utterance_words, now)

    def _target(self, name: str | None, *, opens: bool) -> Utterance | None:
        """The utterance that is meant; a new one if it ``opens``. None when the message is to be ignored."""
        found = self._roster.newest_open if name is None else self._roster.named(name)
        if found is not None and not found.text_ended:
            return found
        if found is not None and opens:
            raise InvalidRequest(f"{found.name!r} has already ended; take a new name", "utterance")
        if self._roster.cut_off(name):
            self._stage.warn("text_dropped", f"{name!r} was cancelled; what still comes for it is dropped")
            return None
        if not opens:
            return None
        if self._leaving is Leaving.DRAIN:
            self._stage.warn("draining", "the server is shutting down; no new utterance is begun")
            return None
        if self._leaving is Leaving.CLIENT:
            raise InvalidRequest("no text may follow close", "type")
        return self._roster.add(name, self._configured)

    def _cancel(self, name: str | None, played_ms: float | None, now: float) -> None:
        if name is None:
            doomed = list(self._roster)
        else:
            named = self._roster.named(name)
            doomed = [named] if named is not None else []
        if not doomed:
            self._stage.warn("nothing_to_cancel", "everything that was said has already ended")
        self._stage.cancel(doomed, played_ms, everything=name is None, now=now)

    def _close(self, now: float) -> None:
        self._leaving = self._leaving or Leaving.CLIENT
        for utterance in self._roster:
            if not utterance.text_ended:
                self._stage.end_text(utterance, self._model().max_utterance_words, now)

    # --- from the driver ---

    def prewarmed(self, prefix: PrefixUsage, pre_skip: int, now: float) -> None:
        """The voice is ready; the client drops the first ``pre_skip`` decoded samples of each utterance."""
        if self._state is not State.STARTING:
            return
        self._enter(State.READY)
        config = self._configured
        self._stage.outbox.push_urgent(
            msg.SessionReady(
                session=self.id,
                model=self._model().name,
                voice=config.voice,
                format=config.format,
                pre_skip=pre_skip,
                prefix=prefix,
                limits=self._limits.told(),
            )
        )
        self._advance(now)

    def heard_from(self, index: int, event: do.StreamEvent, now: float) -> None:
        """The engine or the encoder of utterance ``index`` gave something."""
        utterance = self._roster.speaking(index)
        if utterance is None:
            return
        try:
            self._stage.take(utterance, event, now)
        except (EngineError, RealtimeError) as error:
            self.failed(error, now, index)
        self._advance(now)

    def failed(self, error: Exception, now: float, index: int | None = None) -> None:
        """Something broke, here or at the client: all ends with one `error`, then the connection closes."""
        if self._state is State.CLOSED:
            return
        fault = fault_of(error)
        subject = None if index is None else self._roster.get(index)
        self._stage.abandon("failed", fault.code, now)
        self._stage.outbox.close(
            msg.Failed(fault, subject.name if subject else None), code=fault.close, reason=fault.code.value
        )
        self._over(fault)

    def connection_lost(self, now: float) -> None:
        """The client is gone: free everything."""
        if self._state is not State.CLOSED:
            self._stage.abandon("lost", None, now)
            self._over(None)
        self._stage.outbox.clear()

    def drain(self, now: float) -> None:
        """Begin nothing new; close with `Draining` when what is under way has ended."""
        if self._state in (State.NEW, State.STARTING):
            self.failed(Draining(), now)
        self._leaving = Leaving.DRAIN
        self._advance(now)

    # --- to the client ---

    def next_event(self, now: float) -> msg.Event | None:
        """The event to be sent now, or None. Only one is under way at a time."""
        try:
            event = self._stage.next_event(now)
        except RealtimeError as error:
            self.failed(error, now)
            event = self._stage.next_event(now)
        self._sending_since = None if event is None else now
        if isinstance(event, msg.UtteranceDone):
            self._active_at = now
            self._advance(now)
        return event

    def sent(self, event: msg.Event, now: float) -> None:
        """The transport has taken ``event``."""
        self._sending_since = None
        if isinstance(event, msg.AudioReady):
            self._active_at = now
            self._stage.sent(event, now)

    # --- time ---

    def next_deadline(self, now: float) -> float | None:
        """When `tick` has something to do, or None."""
        when = min((when for when, _ in self._timers(now)), default=float("inf"))
        return None if when == float("inf") else when

    def tick(self, now: float) -> None:
        """Do what is due."""
        for when, action in list(self._timers(now)):
            if when <= now and self._state is not State.CLOSED:
                try:
                    action()
                except (EngineError, RealtimeError) as error:
                    self.failed(error, now)
        self._advance(now)

    def _timers(self, now: float) -> Iterator[Timer]:
        if self._state is State.CLOSED:
            return
        limits = self._limits
        if self._sending_since is not None:
            yield (
                self._sending_since + limits.send_timeout_s,
                _raiser(SlowConsumer(f"a frame waited {limits.send_timeout_s:g} s for the client to read")),
            )
        if self._state is State.NEW:
            message = f"no session.start within {limits.start_s:g} s"
            yield self._began_at + limits.start_s, _raiser(IdleTimeout(message))
            return
        if self._state is State.STARTING:
            stalled = GenerationFailed("the voice could not be made ready in time")
            yield self._active_at + self._tuning.stall_s, _raiser(stalled)
        idle = IdleTimeout(f"no message for {limits.idle_s:g} s; send keepalive to hold a session open")
        yield self._active_at + limits.idle_s, _raiser(idle)
        yield from self._stage.timers(now)

    # --- inside ---

    @property
    def _configured(self) -> SessionConfig:
        if self._config is None:
            raise InvalidRequest("the first message must be session.start", "type")
        return self._config

    def _make(self, name: str, index: int, config: SessionConfig) -> Utterance:
        model = self._model()
        return Utterance(name, index, config, model.sample_rate, model.streams_text)

    def _advance(self, now: float) -> None:
        if self._state is State.STARTING:
            self._stage.mark_text(now)
        if self._state is State.READY and self._leaving is not None:
            self._enter(State.CLOSING)
        if self._state in (State.READY, State.CLOSING):
            self._stage.advance(now)
        if self._state is State.CLOSING and not len(self._roster):
            if self._leaving is Leaving.DRAIN:
                self.failed(Draining(), now)
            else:
                self._stage.outbox.push(msg.CloseConnection(1000, "closed"))
                self._over(None)

    def _over(self, fault: Fault | None) -> None:
        self._enter(State.CLOSED)
        self._effects.append(do.EndSession(fault))

    def _enter(self, state: State) -> None:
        if state not in STATES[self._state]:
            raise ValueError(f"a session cannot go from {self._state.name} to {state.name}")
        logger.debug("session state", extra={"session": self.id, "state": state.name})
        self._state = state


def _raiser(error: Exception) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action
