"""Errors on HTTP: one shape for all of them, OpenAI's."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.errors import EngineError
from realtime.errors import ErrorCode, Fault, InvalidRequest, RealtimeError, TooLarge, fault_of
from realtime.transports.http_stream import error_body, error_headers
from web.schemas import ErrorBody

_CODES = {
    401: ErrorCode.UNAUTHORIZED,
    404: ErrorCode.NOT_FOUND,
    408: ErrorCode.IDLE_TIMEOUT,
    413: ErrorCode.TOO_LARGE,
}

Responses = dict[int | str, dict[str, Any]]


def documented(*statuses: int) -> Responses:
    """The ``responses`` of a route that can answer with these errors."""
    return {status: {"model": ErrorBody} for status in statuses}


def answer(fault: Fault, status: int | None = None) -> JSONResponse:
    """The response that tells ``fault``, with another status than its own if given."""
    return JSONResponse(error_body(fault), status or fault.http, error_headers(fault))


def install(app: FastAPI) -> None:
    """Have every error of ``app`` answered in this shape."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RealtimeError, _known)
    app.add_exception_handler(EngineError, _known)
    # A bug: starlette answers with this and raises it again for the log.
    app.add_exception_handler(Exception, _known)


async def _known(_request: Request, error: Exception) -> Response:
    return answer(fault_of(error))


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(fault_of(_invalid_request(error.errors()[0])))


async def _http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, ErrorCode.INVALID_REQUEST)
    fault = replace(fault_of(InvalidRequest(str(error.detail))), code=code, http=error.status_code)
    response = answer(fault)
    response.headers.update(error.headers or {})
    return response


def _invalid_request(item: dict[str, Any]) -> InvalidRequest:
    where: Sequence[Any] = item["loc"][1:]
    if item["type"] == "json_invalid":
        return InvalidRequest(f"the body is not JSON: {item['ctx']['error']}")
    if not where:
        return InvalidRequest("the body must be a JSON object, sent as application/json")
    if item["type"] == "extra_forbidden":
        return InvalidRequest("no such field", str(where[0]))
    # A union (voice) has the names of its branches behind the field's.
    return InvalidRequest(str(item["msg"]), str(where[0]))


class BodyLimit:
    """Refuses request bodies over ``limit`` bytes, announced or not, with 413; slow ones with 408.

    A body has ``within_s`` seconds from the end of the request's head.
    """

    def __init__(self, app: ASGIApp, limit: int, within_s: float) -> None:
        self._app = app
        self._limit = limit
        self._within_s = within_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it: an ASGI application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if announced.isdigit() and int(announced) > self._limit:
            await answer(fault_of(self._too_large(int(announced))))(scope, receive, send)
            return
        taken = 0
        until: float | None = asyncio.get_running_loop().time() + self._within_s

        async def counted() -> Message:
            nonlocal taken, until
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"the body took over {self._within_s:g} s") from None
            if not message.get("more_body", False):
                until = None  # what follows is waiting for the client to leave
            taken += len(message.get("body", b""))
            if taken > self._limit:
                raise HTTPException(413, str(self._too_large(taken)))
            return message

        await self._app(scope, counted, send)

    def _too_large(self, size: int) -> TooLarge:
        return TooLarge("body", size, self._limit)
