"""The server with the scripted engine, in a process that a test can kill.

``python -m tests.support.fake_server PORT [SETTING=VALUE ...]``
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from engine.fake import FakeEngine, FakeSpeech, FakeTiming
from web.app import create_app
from web.server import serve
from web.settings import load

START_S = 60.0


@contextmanager
def fake_server(port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run it at ``port``; killed at the end. It can speak when the block begins."""
    command = [sys.executable, "-m", "tests.support.fake_server", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + START_S
        while not _is_ready(port):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the server did not start")
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def main() -> int:
    """Serve until told to stop. It speaks four times as fast as it is heard, 300 ms a word."""
    engine = FakeEngine(
        timing=FakeTiming(first_frame_s=0.02, frame_s=0.005), speech=FakeSpeech(frames_per_word=15)
    )
    given = dict(argument.split("=", 1) for argument in sys.argv[2:])
    settings = load({"port": int(sys.argv[1]), "drain_s": 1, "log_level": "error", **given})
    return serve(create_app(settings, engine), print)


if __name__ == "__main__":
    sys.exit(main())
