"""A spoken HTTP response: chunked audio, or the same bytes as server-sent events.

The status waits for the first bytes of audio, so that what fails before them is an HTTP error. What fails
later cuts the chunked body: its last chunk is only ever sent after everything was said.
"""

import asyncio
import base64
import json
import logging
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from engine.errors import EngineError
from realtime.errors import Draining, ErrorCode, Fault, RealtimeError, SlowConsumer, fault_of
from realtime.oneshot import OneShot, SpeechJob
from realtime.registry import SessionHub
from realtime.reports import Outcome

logger = logging.getLogger(__name__)

ABORT_STATE = "voxwire.abort"
"""Key of the ASGI scope's ``state``: a callable that drops the connection at once, if the server has one."""


def error_body(fault: Fault) -> dict[str, Any]:
    """A fault in the shape of OpenAI's errors, with our ``retryable``."""
    kind = "invalid_request_error" if fault.http < 500 else "server_error"
    return {
        "error": {
            "message": fault.message,
            "type": kind,
            "param": fault.field,
            "code": str(fault.code),
            "retryable": fault.retryable,
        }
    }


def error_headers(fault: Fault) -> dict[str, str]:
    """Headers that go with a fault."""
    if fault.retry_after_s is None:
        return {}
    return {"retry-after": str(max(1, round(fault.retry_after_s)))}


class SpeechResponse(Response):
    """Speaks ``job`` as an ASGI response and stops when the client leaves.

    It is a live session of the hub: counted, limited, and waited for when the server drains.
    """

    def __init__(self, job: SpeechJob, hub: SessionHub, *, events: bool = False) -> None:
        super().__init__()
        self.id = hub.new_id()
        self._hub = hub
        self._speech = OneShot(self.id, job, hub)
        self._events = events
        self._speaking: asyncio.Task[None] | None = None
        self._stopped = False

    def drain(self) -> None:
        """What is being spoken is finished; nothing else can begin here."""

    def stop(self) -> None:
        """End now; the client is told `draining` if it can still be told."""
        self._stopped = True
        if self._speaking is not None:
            self._speaking.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it: an ASGI application."""
        reply = _Reply(scope, send, self, self._hub.limits.send_timeout_s)
        began = self._hub.clock.now()
        try:
            self._hub.enter(self.id, self)
        except RealtimeError as error:
            await reply.fail(fault_of(error))
            return
        try:
            async with asyncio.TaskGroup() as group:
                self._speaking = group.create_task(self._speak(reply))
                leaving = group.create_task(self._cancel_when_left(receive))
                self._speaking.add_done_callback(lambda _: leaving.cancel())
            if self._stopped:
                await reply.fail(fault_of(Draining()))
        finally:
            self._hub.leave(self.id)
            self._hub.observer.session_closed(self.id, reply.fault, self._hub.clock.now() - began)

    def render_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers of a successful response."""
        kind = "text/event-stream" if self._events else self._speech.content_type
        return [
            (b"content-type", kind.encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            (b"x-request-id", self.id.encode()),
        ]

    def render_audio(self, body: bytes) -> bytes:
        """A piece of the container as it goes on the wire."""
        if not self._events:
            return body
        return _event({"type": "speech.audio.delta", "audio": base64.b64encode(body).decode()})

    def render_end(self) -> bytes:
        """What follows the last audio."""
        if not self._events:
            return b""
        usage = self._speech.usage
        counts = {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.codec_tokens,
            "total_tokens": usage.prompt_tokens + usage.codec_tokens,
        }
        return _event({"type": "speech.audio.done", "usage": counts})

    def render_fault(self, fault: Fault) -> bytes:
        """What can still be said of a failure in the middle of the body."""
        return _event({"type": "error", **error_body(fault)}) if self._events else b""

    async def _speak(self, reply: "_Reply") -> None:
        outcome: Outcome = "lost"
        try:
            async with reply, aclosing(self._speech.bodies()) as bodies:
                async for body in bodies:
                    await reply.audio(body)
            outcome = "complete"
        finally:
            code = reply.fault.code if reply.fault else None
            if self._stopped:
                code = ErrorCode.DRAINING
            if code is not None:
                outcome = "failed"
            report = self._speech.report(outcome, code)
            logger.info("utterance over", extra={"session": self.id, "report": asdict(report)})
            self._hub.observer.utterance_over(self.id, report)

    async def _cancel_when_left(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        assert self._speaking is not None
        self._speaking.cancel()


class _Reply:
    """The sending side of one response. As a context it ends the body, or tells what went wrong."""

    def __init__(self, scope: Scope, send: Send, response: SpeechResponse, timeout_s: float) -> None:
        self.fault: Fault | None = None
        self._send = send
        self._abort: Callable[[], None] | None = scope.get("state", {}).get(ABORT_STATE)
        self._response = response
        self._timeout_s = timeout_s
        self._started = False
        # Without chunks the end of the connection is the end of the body, and a cut would look complete.
        self._spool: bytearray | None = bytearray() if scope.get("http_version") == "1.0" else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        """Known errors end here; any other goes on to whoever logs the faults of the program."""
        if error is None:
            await self._complete()
        elif isinstance(error, Exception):
            await self.fail(fault_of(error))
        return isinstance(error, EngineError | RealtimeError)

    async def audio(self, body: bytes) -> None:
        """Send a piece of the container. Raises `SlowConsumer`."""
        body = self._response.render_audio(body)
        if self._spool is not None:
            self._spool += body
            return
        if not self._started:
            await self._start(200, self._response.render_headers())
        await self._put({"type": "http.response.body", "body": body, "more_body": True})

    async def fail(self, fault: Fault) -> None:
        """Answer with an error, or cut the body that has begun: it is left without its last chunk."""
        self.fault = fault
        logger.warning("speech failed", extra={"session": self._response.id, "code": fault.code.value})
        if fault.code is ErrorCode.SLOW_CONSUMER:
            if self._abort is not None:
                self._abort()  # to close in order, the server would wait for the client to read
            return
        if self._started:
            if body := self._response.render_fault(fault):
                await self._put({"type": "http.response.body", "body": body, "more_body": True})
            return
        body = json.dumps(error_body(fault)).encode()
        headers = [(name.encode(), value.encode()) for name, value in error_headers(fault).items()]
        await self._whole(fault.http, [(b"content-type", b"application/json"), *headers], body)

    async def _complete(self) -> None:
        end = self._response.render_end()
        if self._spool is not None:
            await self._whole(200, self._response.render_headers(), bytes(self._spool) + end)
        else:
            await self._put({"type": "http.response.body", "body": end, "more_body": False})

    async def _whole(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        await self._start(status, [*headers, (b"content-length", str(len(body)).encode())])
        await self._put({"type": "http.response.body", "body": body, "more_body": False})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._started = True
        await self._put({"type": "http.response.start", "status": status, "headers": headers})

    async def _put(self, message: Message) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._send(message)
        except TimeoutError:
            raise SlowConsumer(f"the client took nothing for {self._timeout_s:g} s") from None


def _event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
