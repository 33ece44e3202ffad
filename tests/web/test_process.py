"""The server as a process of its own: signals, exit code, and what it leaves on stderr."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed

from realtime.protocols.frames import AudioFrame, Flags
from tests.support.keyed import GOOD, keys_file

ROOT = Path(__file__).parents[2]
TEXT = "Xylophones are played by quokkas in the morning, and marimbas by wombats at night."
START = '{"type":"session.start","format":{"encoding":"pcm_s16le","sample_rate":24000}}'


class Process:
    """A running server."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port
        self.log: list[dict[str, Any]] = []

    async def end(self, within_s: float = 30) -> int:
        """Its exit code; afterwards ``log`` has its lines, each of which must be JSON."""
        async with asyncio.timeout(within_s):
            _, errors = await self.process.communicate()
        self.log = [json.loads(line) for line in errors.splitlines()]
        assert self.process.returncode is not None
        return self.process.returncode


@asynccontextmanager
async def started(**settings: object) -> AsyncIterator[Process]:
    """The fake server in a process, ready to speak."""
    given = {"log_format": "json", "log_level": "debug", **settings}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "tests.support.fake_server", "0"),
        *(f"{name}={value}" for name, value in given.items()),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(40):
            announced = (await process.stdout.readline()).decode()
        yield Process(process, int(announced.split("http://127.0.0.1:")[1].split()[0]))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def speak_and_signal(server: Process, sig: int | None) -> tuple[list[Any], list[AudioFrame], int]:
    """Begin an utterance, signal in the middle of it, and take all there is until the close."""
    told: list[Any] = []
    audio: list[AudioFrame] = []
    headers = {"authorization": f"Bearer {GOOD}"}
    url = f"ws://127.0.0.1:{server.port}/v1/stream"
    async with open_socket(url, additional_headers=headers, proxy=None) as client:
        await client.send(START)
        await client.send(json.dumps({"type": "text", "text": TEXT}))
        await client.send('{"type":"end"}')
        try:
            while True:
                frame = await asyncio.wait_for(client.recv(), 20)
                if isinstance(frame, str):
                    told.append(json.loads(frame))
                    if sig is None and told[-1]["type"] == "utterance.done":
                        await client.send('{"type":"close"}')
                    continue
                audio.append(AudioFrame.parse(frame))
                if len(audio) == 3 and sig is not None:
                    os.killpg(server.process.pid, sig)
        except ConnectionClosed as closed:
            return told, audio, closed.rcvd.code if closed.rcvd else 1006


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_running_utterance_finish(sig: int) -> None:
    async with started(drain_s=20) as server:
        told, audio, code = await speak_and_signal(server, sig)
        *_, done, farewell = told
        assert (done["type"], done["reason"]) == ("utterance.done", "complete")
        assert (farewell["code"], farewell["retryable"]) == ("draining", True)
        assert audio[-1].flags & Flags.EOS
        assert audio[-1].pts == done["samples"] > 24_000
        assert code == 1012
        assert await server.end() == 0
    assert [line["event"] for line in server.log][-1] == "session over"


async def test_what_does_not_finish_in_time_is_failed() -> None:
    async with started(drain_s=0.1) as server:
        told, audio, code = await speak_and_signal(server, signal.SIGTERM)
        assert told[-1]["code"] == "draining"
        assert not any(frame.flags & Flags.EOS for frame in audio)
        assert code == 1012
        assert await server.end() == 0


async def test_logs_of_a_whole_session_hold_its_ids_and_none_of_its_text(tmp_path: Path) -> None:
    async with started(keys_file=keys_file(tmp_path)) as server:
        told, _, code = await speak_and_signal(server, None)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
            headers = {"x-api-key": GOOD}
            body = {"input": TEXT, "voice": "bob"}
            assert (await client.post("/v1/audio/speech", json=body, headers=headers)).status_code == 200
            await client.post("/v1/audio/speech", content=TEXT, headers=headers)
            await client.post("/v1/audio/speech", json={"input": [TEXT]}, headers=headers)
            await client.get("/v1/models/quokkas", headers=headers)
        os.killpg(server.process.pid, signal.SIGTERM)
        assert await server.end() == 0
    assert code == 1000
    session = told[0]["session"]
    mine = [line for line in server.log if line.get("session") == session]
    assert [line["event"] for line in mine if line["level"] == "info"] == [
        "session opened",
        "utterance over",
        "session over",
    ]
    assert mine[0]["key"] == "alice"
    over = next(line for line in mine if line["event"] == "utterance over")
    assert over["report"]["utterance"] == "u1"
    assert over["report"]["ttfp_parts"]["send"] >= 0
    shown = json.dumps(server.log).lower()
    for word in ("xylophone", "quokka", "marimba", "wombat", GOOD):
        assert word.lower() not in shown


async def test_text_is_logged_when_it_is_asked_for() -> None:
    async with started(log_text="true") as server:
        told, _, _ = await speak_and_signal(server, None)
        os.killpg(server.process.pid, signal.SIGTERM)
        assert await server.end() == 0
    (line,) = [line for line in server.log if line["event"] == "text"]
    assert line["text"] == TEXT
    assert line["session"] == told[0]["session"]
