"""A client of `POST /v1/audio/speech` that does not take a cut body for a whole one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from realtime.client_errors import ClientError, ConnectFailed, ServerError, StreamTruncated

HTTP_FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
PCM_RATE = 24_000
"""Sample rate of the headerless format, 16-bit little endian mono."""


@asynccontextmanager
async def speak_http(
    url: str,
    text: str,
    *,
    voice: str | None = None,
    format: str = "mp3",
    speed: float | None = None,
    seed: int | None = None,
    timeout_s: float = 30.0,
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Ask the server at ``url`` (``http://host:port``) for ``text``; the body's pieces can be iterated.

    Raises `ConnectFailed` and `ServerError` on entering, `StreamTruncated` while iterating.
    """
    fields = {"input": text, "voice": voice, "response_format": format, "speed": speed, "seed": seed}
    body = {name: value for name, value in fields.items() if value is not None}
    async with httpx.AsyncClient(timeout=timeout_s) as client:
        request = client.build_request("POST", url.rstrip("/") + "/v1/audio/speech", json=body)
        try:
            response = await client.send(request, stream=True)
            if response.is_error:
                await response.aread()
        except httpx.TransportError as error:
            raise ConnectFailed(f"cannot reach {url}: {error or type(error).__name__}") from error
        try:
            if response.is_error:
                raise refusal(response.status_code, response.content)
            yield _pieces(response)
        finally:
            await response.aclose()


def refusal(status: int, body: bytes) -> ClientError:
    """What an HTTP error means: the error in its body, where there is one."""
    try:
        detail: dict[str, Any] = httpx.Response(status, content=body).json()["error"]
        return ServerError(
            str(detail["code"]), str(detail["message"]), retryable=bool(detail.get("retryable"))
        )
    except (ValueError, KeyError, TypeError):
        return ConnectFailed(f"the server answered {status}")


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_raw():
            yield piece
    except httpx.TransportError as error:
        raise StreamTruncated(f"the body ended before its last chunk: {error}") from error
