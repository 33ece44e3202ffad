"""Bytes on a plain socket: clients that no library would be."""

import asyncio
import base64
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n{more}\r\n"
)
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class Raw:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def rest(self, within_s: float = 10.0) -> bytes:
        """Everything until the server closes."""
        async with asyncio.timeout(within_s):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def head(self, within_s: float = 10.0) -> bytes:
        async with asyncio.timeout(within_s):
            return await self.reader.readuntil(b"\r\n\r\n")

    async def upgrade(self, path: str = "/v1/stream", more: str = "") -> bytes:
        key = base64.b64encode(os.urandom(16)).decode()
        self.write(HANDSHAKE.format(path=path, key=key, more=more).encode())
        return await self.head()

    async def frame(self, within_s: float = 10.0) -> tuple[int, bytes]:
        """The server's next frame: opcode and payload."""
        async with asyncio.timeout(within_s):
            first, length = await self.reader.readexactly(2)
            if length == 126:
                (length,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif length == 127:
                (length,) = struct.unpack("!Q", await self.reader.readexactly(8))
            return first & 0x0F, await self.reader.readexactly(length)

    async def close_code(self, within_s: float = 10.0) -> int | None:
        """Skip to the server's close frame; None when the connection is over without one."""
        try:
            while True:
                opcode, payload = await self.frame(within_s)
                if opcode == CLOSE:
                    return int.from_bytes(payload[:2], "big")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True) -> bytes:
    """A client's frame, masked with zeros."""
    head = bytes([opcode | (0x80 if fin else 0)])
    if len(payload) < 126:
        head += bytes([0x80 | len(payload)])
    elif len(payload) < 1 << 16:
        head += bytes([0x80 | 126]) + struct.pack("!H", len(payload))
    else:
        head += bytes([0x80 | 127]) + struct.pack("!Q", len(payload))
    return head + bytes(4) + payload


@asynccontextmanager
async def raw(port: int) -> AsyncIterator[Raw]:
    """Connect to ``port`` of this machine; dropped at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Raw(reader, writer)
    finally:
        writer.transport.abort()
