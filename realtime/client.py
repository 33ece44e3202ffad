"""The Python client of the native protocol.

    async with connect("ws://127.0.0.1:8080/v1/stream", voice="grace") as session:
        utterance = session.utterance()
        await utterance.send("Hello there.")
        await utterance.end()
        async for pcm in utterance:
            ...

Everything the protocol promises is checked: sequence numbers, times, the sentinel, lengths and checksum. See
`realtime.client_errors` for what is raised.
"""

import asyncio
import ipaddress
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from realtime.client_decoder import Pcm, decoded_rate
from realtime.client_errors import (
    ClientError,
    ConnectFailed,
    ProtocolViolation,
    ServerError,
    StreamTruncated,
)
from realtime.client_stream import Done, Packet, StreamFormat, parse_frame
from realtime.client_utterance import Cancelled, Utterance, Word

__all__ = [
    "Cancelled",
    "ClientError",
    "ConnectFailed",
    "Done",
    "Packet",
    "Pcm",
    "ProtocolViolation",
    "Ready",
    "ServerError",
    "Session",
    "StreamFormat",
    "StreamTruncated",
    "Utterance",
    "Word",
    "connect",
]

SUBPROTOCOL = Subprotocol("voxwire.v1")

_MESSAGE_BYTES = 1 << 20
_WARNINGS = 100
_INDICES = 64
"""Utterance indices remembered after their end, so that a frame which follows an end is found out."""
_CLOSE_S = 2.0
_LAST_WORDS_S = 1.0
"""How long a failed send waits for the reader to find out why."""


class Ready(msgspec.Struct, frozen=True):
    """The `session.ready` message."""

    session: str
    model: str
    voice: str
    format: StreamFormat
    protocol: str | int = 1
    prefix: dict[str, int] = msgspec.field(default_factory=dict)
    limits: dict[str, float] = msgspec.field(default_factory=dict)


class Started(msgspec.Struct, frozen=True):
    """The `utterance.start` message: which index its frames carry."""

    utterance: str
    index: int


class Warned(msgspec.Struct, frozen=True):
    """A `warning` message: something the client should know; the stream goes on."""

    code: str
    message: str
    utterance: str | None = None


class Session:
    """A connection that speaks. Made by `connect`."""

    def __init__(self, socket: ClientConnection, timeout_s: float) -> None:
        self.warnings: deque[Warned] = deque(maxlen=_WARNINGS)
        self._socket = socket
        self._timeout_s = timeout_s
        self._ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
        self._utterances: dict[str, Utterance] = {}
        self._by_index: dict[int, Utterance] = {}
        self._opened = 0
        self._failure: ClientError | None = None
        self._reader = asyncio.create_task(self._read(), name="voxwire client reader")

    @property
    def ready(self) -> Ready:
        """What the server answered to the start of the session."""
        return self._ready.result()

    @property
    def format(self) -> StreamFormat:
        """The format packets come in."""
        return self.ready.format

    @property
    def pcm_rate(self) -> int:
        """Sample rate of iterated PCM."""
        return decoded_rate(self.format)

    def utterance(self, name: str | None = None) -> Utterance:
        """Open the next utterance. Utterances are spoken in the order in which their first text is sent."""
        self._opened += 1
        name = name or f"c{self._opened}"
        if name in self._utterances:
            raise ValueError(f"utterance {name!r} is still being spoken")
        utterance = Utterance(name, self.format, self._send, self._timeout_s)
        self._utterances[name] = utterance
        if self._failure is not None:
            utterance._fail(self._failure)
        return utterance

    async def update(self, **changes: Any) -> None:
        """Change voice, sampling, speed or others of `connect`'s options from the next utterance on."""
        if "format" in changes:
            raise ValueError(
                "this client keeps one format for a session; open another session for another one"
            )
        await self._send({"type": "session.update", **changes})

    async def keepalive(self) -> None:
        """Tell the server that somebody is still there, when no text is due for long."""
        await self._send({"type": "keepalive"})

    async def _start(self, options: dict[str, Any]) -> None:
        try:
            await self._send({"type": "session.start", **options})
            async with asyncio.timeout(self._timeout_s):
                await asyncio.shield(self._ready)
        except TimeoutError:
            raise ConnectFailed(f"no session.ready within {self._timeout_s:g} s") from None
        except StreamTruncated as error:
            raise ConnectFailed(f"the server left before the session was ready: {error}") from error

    async def _close(self) -> None:
        """Leave in order where nothing is pending; otherwise drop the connection, which cancels."""
        for utterance in self._utterances.values():
            utterance._drop()
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._failure is None and not self._utterances:
                    await self._socket.send('{"type":"close"}')
                    await asyncio.shield(self._reader)
                await self._socket.close()
        except (TimeoutError, ConnectionClosed):
            pass  # it is gone, or will be with the reader
        finally:
            self._reader.cancel()
            await asyncio.wait([self._reader])
            if self._ready.done() and not self._ready.cancelled():
                self._ready.exception()  # seen by `_start`, or nobody is left to see it

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            await self._socket.send(msgspec.json.encode(message).decode())
        except ConnectionClosed:
            await asyncio.wait([self._reader], timeout=_LAST_WORDS_S)
            raise self._failure or self._truncated() from None

    async def _read(self) -> None:
        """Read until the connection is over, and tell every open utterance how it ended."""
        failure: ClientError
        try:
            async for message in self._socket:
                await self._dispatch(message)
            failure = self._truncated()
        except ConnectionClosed:
            failure = self._truncated()
        except ClientError as error:
            failure = error
        self._failure = failure
        if not self._ready.done():
            self._ready.set_exception(failure)
        for utterance in self._utterances.values():
            utterance._fail(failure)
        await self._socket.close(1002 if isinstance(failure, ProtocolViolation) else 1000)

    def _truncated(self) -> StreamTruncated:
        code, reason = self._socket.close_code, self._socket.close_reason
        return StreamTruncated(
            f"the connection ended without a sentinel (close code {code}{', ' + reason if reason else ''})",
            close_code=code,
        )

    async def _dispatch(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            frame = parse_frame(message)
            utterance = self._by_index.get(frame.index)
            if utterance is None:
                raise ProtocolViolation(f"a frame of utterance index {frame.index}, which has not started")
            await utterance._frame(frame)
            return
        try:
            body = msgspec.json.decode(message, type=dict[str, Any])
            self._event(str(body.get("type")), body)
        except msgspec.MsgspecError as error:
            raise ProtocolViolation(f"the server's message cannot be read: {error}") from error

    def _event(self, kind: str, body: dict[str, Any]) -> None:
        match kind:
            case "session.ready":
                if self._ready.done():
                    raise ProtocolViolation("a second session.ready")
                self._ready.set_result(msgspec.convert(body, Ready))
            case "utterance.start":
                self._by_index[msgspec.convert(body, Started).index] = self._named(body)
            case "words":
                self._named(body)._words(msgspec.convert(body.get("words"), list[Word]))
            case "utterance.done":
                self._named(body)._done(msgspec.convert(body, Done))
                self._forget(body)
            case "utterance.cancelled":
                self._named(body)._cancelled(msgspec.convert(body, Cancelled))
                self._forget(body)
            case "warning":
                self.warnings.append(msgspec.convert(body, Warned))
            case "error":
                raise ServerError(
                    str(body.get("code")),
                    str(body.get("message")),
                    retryable=bool(body.get("retryable")),
                    utterance=body.get("utterance"),
                )
            case _:
                pass  # a later server may say more than this client knows

    def _named(self, body: dict[str, Any]) -> Utterance:
        utterance = self._utterances.get(str(body.get("utterance")))
        if utterance is None:
            raise ProtocolViolation(
                f"{body.get('type')} for utterance {body.get('utterance')!r}, which is not open"
            )
        return utterance

    def _forget(self, body: dict[str, Any]) -> None:
        self._utterances.pop(str(body["utterance"]))
        while len(self._by_index) > _INDICES:
            self._by_index.pop(next(iter(self._by_index)))


@asynccontextmanager
async def connect(
    url: str,
    *,
    voice: str | None = None,
    format: str | Mapping[str, Any] | None = None,
    words: bool = False,
    sampling: Mapping[str, Any] | None = None,
    speed: float | None = None,
    language: str | None = None,
    segment: Mapping[str, Any] | None = None,
    ttfp_budget_ms: float | None = None,
    on_budget_miss: Literal["continue", "fail"] | None = None,
    api_key: str | None = None,
    timeout_s: float = 30.0,
) -> AsyncIterator[Session]:
    """Open a session at ``url`` (``ws://host:port/v1/stream``) and close it at the end of the block.

    ``format`` is an encoding's name or the protocol's ``format`` object. What is not given is the server's to
    choose. ``timeout_s`` bounds every wait for an answer that is due. Raises `ConnectFailed`, `ServerError`.
    """
    options: dict[str, Any] = {
        "voice": voice,
        "format": {"encoding": format} if isinstance(format, str) else format,
        "words": words or None,
        "sampling": sampling,
        "speed": speed,
        "language": language,
        "segment": segment,
        "ttfp_budget_ms": ttfp_budget_ms,
        "on_budget_miss": on_budget_miss,
    }
    session = Session(await _open(url, api_key, timeout_s), timeout_s)
    try:
        await session._start({key: value for key, value in options.items() if value is not None})
        yield session
    finally:
        await session._close()


async def _open(url: str, api_key: str | None, timeout_s: float) -> ClientConnection:
    try:
        return await open_socket(
            url,
            subprotocols=[SUBPROTOCOL],
            compression=None,
            max_size=_MESSAGE_BYTES,
            open_timeout=timeout_s,
            close_timeout=_CLOSE_S,
            proxy=None if _is_loopback(url) else True,
            additional_headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
        )
    except InvalidStatus as error:
        raise _refusal(error) from error
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI) as error:
        raise ConnectFailed(f"cannot open {url}: {error}") from error


def _refusal(error: InvalidStatus) -> ClientError:
    """What a handshake answered with an HTTP error means: the error in its body, where there is one."""
    try:
        detail = msgspec.json.decode(error.response.body or b"", type=dict[str, dict[str, Any]])["error"]
        return ServerError(
            str(detail["code"]), str(detail["message"]), retryable=bool(detail.get("retryable"))
        )
    except (msgspec.MsgspecError, KeyError):
        return ConnectFailed(f"the server answered {error.response.status_code} to the handshake")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
