"""The server in a process of its own, for benches and end-to-end tests."""

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

START_S = 180.0
STOP_S = 30.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server that can speak."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def http(self) -> str:
        """Base address for HTTP."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws(self) -> str:
        """Address of the native protocol."""
        return f"ws://127.0.0.1:{self.port}/v1/stream"

    def voices(self) -> list[str]:
        """Names of the voices it has."""
        listed = httpx.get(f"{self.http}/v1/voices", trust_env=False).json()["voices"]
        return [voice["name"] for voice in listed]


def free_port() -> int:
    """A port nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(arguments: Sequence[str] = (), port: int | None = None) -> Iterator[Served]:
    """Start ``voxwire serve`` with ``arguments``, wait until it can speak, and stop it at the end.

    Raises `RuntimeError` with the end of its log when it does not start within `START_S`.
    """
    port = port or free_port()
    with tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", "web.cli", "serve", "--port", str(port), *arguments]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            if not _ready(port, process):
                log.seek(0)
                raise RuntimeError(
                    f"the server did not start:\n{log.read().decode(errors='replace')[-4000:]}"
                )
            yield Served(port, process)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _ready(port: int, process: subprocess.Popen[bytes]) -> bool:
    until = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200:
                return True
        time.sleep(0.25)
    return False
