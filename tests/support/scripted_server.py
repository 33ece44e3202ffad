"""A WebSocket server that says exactly what a test tells it to, right or wrong."""

import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from realtime.client_stream import EOS, FIRST, HEADER

Handler = Callable[["Script"], Awaitable[None]]

PCM = {"encoding": "pcm_s16le", "sample_rate": 24000, "frame_ms": 20, "pre_skip": 0}


@dataclass
class Script:
    """The server's side of one connection, with what a correct server would keep count of."""

    socket: ServerConnection
    sequence: int = 0
    pts: int = 0
    crc32: int = 0
    heard: list[dict[str, Any]] = field(default_factory=list)

    async def hear(self, *kinds: str) -> dict[str, Any]:
        """The next message of one of these kinds."""
        async for message in self.socket:
            body = json.loads(message)
            self.heard.append(body)
            if not kinds or body["type"] in kinds:
                return dict(body)
        raise AssertionError(f"the client left before {kinds}")

    async def say(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def ready(self, format: dict[str, Any] = PCM) -> None:
        await self.hear("session.start")
        await self.say(
            "session.ready", session="s1", protocol="voxwire.v1", model="fake", voice="ada", format=format
        )

    async def begin(self, index: int = 0) -> str:
        """Wait for text, start its utterance."""
        name = (await self.hear("text"))["utterance"]
        await self.say("utterance.start", utterance=name, index=index)
        return str(name)

    async def packet(
        self,
        payload: bytes,
        samples: int,
        *,
        sequence: int | None = None,
        pts: int | None = None,
        index: int = 0,
    ) -> None:
        sequence = self.sequence if sequence is None else sequence
        header = HEADER.pack(1, 0 if sequence else FIRST, index, sequence, self.pts if pts is None else pts)
        await self.socket.send(header + payload)
        self.crc32 = zlib.crc32(payload, self.crc32)
        self.sequence += 1
        self.pts += samples

    async def sentinel(self, length: int | None = None, index: int = 0) -> None:
        await self.socket.send(
            HEADER.pack(1, EOS, index, self.sequence, self.pts if length is None else length)
        )

    async def done(self, name: str, **changes: Any) -> None:
        said = {"samples": self.pts, "frames": self.sequence, "crc32": self.crc32, "reason": "complete"}
        await self.say("utterance.done", utterance=name, **{**said, **changes})


@asynccontextmanager
async def scripted_server(handler: Handler) -> AsyncIterator[str]:
    """Run ``handler`` for each connection; yields the URL."""

    async def handle(socket: ServerConnection) -> None:
        await handler(Script(socket))

    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}/v1/stream"
