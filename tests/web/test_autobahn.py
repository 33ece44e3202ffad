"""RFC 6455 by Autobahn's fuzzing client, against an echo behind all that stands before a route.

It needs Python 2.7 with ``autobahntestsuite``: `scripts/conformance` gets it and runs this.
"""

import asyncio
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.websockets import WebSocket, WebSocketDisconnect

from engine.fake import FakeEngine
from tests.support.running import running

FOLDER = Path(os.environ.get("AUTOBAHN", "/nonexistent"))
EXCLUDED = ["9.*", "12.*", "13.*"]
"""Throughput, and compression, which is off."""
KNOWN = {"7.1.5"}
"""A text sent together with a close: websockets reads no further, and says so in its documentation."""

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="AUTOBAHN names no folder: scripts/conformance")


async def echo(websocket: WebSocket) -> None:
    """Send back what comes."""
    await websocket.accept()
    try:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                return
            await websocket.send({**message, "type": "websocket.send"})
    except WebSocketDisconnect:
        return


def add_echo(app: FastAPI) -> None:
    """Have it at ``/echo``."""
    app.add_api_websocket_route("/echo", echo)


@pytest.mark.timeout(300)
async def test_no_case_fails(tmp_path: Path) -> None:
    async with running(FakeEngine(), prepare=add_echo) as server:
        report = tmp_path / "report"
        spec = tmp_path / "spec.json"
        target = {"agent": "voxwire", "url": f"ws://127.0.0.1:{server.server.port}/echo"}
        spec.write_text(
            json.dumps(
                {
                    "outdir": str(report),
                    "servers": [target],
                    "cases": ["*"],
                    "exclude-cases": EXCLUDED,
                    "exclude-agent-cases": {},
                }
            )
        )
        process = await asyncio.create_subprocess_exec(
            *("python2.7", "-m", "autobahntestsuite.wstest", "-m", "fuzzingclient", "-s", str(spec)),
            env={**os.environ, "PYTHONPATH": str(FOLDER)},
            cwd=tmp_path,
            stdout=asyncio.subprocess.DEVNULL,
        )
        assert await process.wait() == 0
    cases = json.loads((report / "index.json").read_text())["voxwire"]
    assert len(cases) > 200
    failed = {case for case, result in cases.items() if result["behavior"] == "FAILED"}
    unclean = {case for case, result in cases.items() if result["behaviorClose"] == "FAILED"}
    assert failed <= KNOWN
    assert not unclean
    assert Counter(result["behavior"] for result in cases.values())["OK"] > 200
