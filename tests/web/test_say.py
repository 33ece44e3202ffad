"""`voxwire say` against a real server, in a thread of its own as it has its own event loop."""

import asyncio
import os
import sys
import wave
from collections.abc import AsyncIterator
from pathlib import Path

import av
import pytest
import pytest_asyncio

from engine.errors import EngineError, GenerationFailed, Overloaded
from engine.fake import FakeEngine, Fault
from tests.support.running import Running, running, until
from web import say
from web.cli import main

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT = "Your table for four is booked."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[Running]:
    async with running(FakeEngine()) as server:
        yield server


@pytest.fixture(autouse=True)
def no_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(say, "sound_module", lambda: None)


async def voxwire(server: Running, *arguments: str) -> int:
    return await asyncio.to_thread(main, ["say", "--url", server.url, *arguments])


def length(path: Path) -> tuple[int, int]:
    with wave.open(str(path), "rb") as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return file.getnframes(), file.getframerate()


async def test_a_file_is_exact(server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lengths = {}
    for form in ("opus", "pcm_s16le", "pcm_f32le", "mulaw", "alaw"):
        out = tmp_path / f"{form}.wav"
        assert await voxwire(server, TEXT, "--out", str(out), "--format", form) == say.DONE
        lengths[form] = length(out)
    out = tmp_path / "http.wav"
    assert await voxwire(server, TEXT, "--out", str(out), "--http") == say.DONE
    samples, rate = lengths["pcm_s16le"]
    assert rate == 24_000
    assert length(out) == lengths["pcm_f32le"] == (samples, rate)
    assert lengths["opus"] == (2 * samples, 48_000)
    assert lengths["mulaw"] == lengths["alaw"] == (samples // 3, 8_000)
    told = capsys.readouterr().err
    assert "first packet after" in told
    assert "prefill" in told
    assert not any(name.endswith(".part") for name in os.listdir(tmp_path))


async def test_without_a_device_a_file_is_written(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await voxwire(server, "Hello", "there.") == say.DONE
    assert length(tmp_path / "say.wav")[0] > 0
    assert "no sound device here, writing say.wav" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["mp3", "opus", "flac", "aac"])
async def test_http_writes_the_format_of_the_suffix(server: Running, tmp_path: Path, name: str) -> None:
    out = tmp_path / f"hello.{name}"
    assert await voxwire(server, TEXT, "--http", "--out", str(out)) == say.DONE
    with av.open(str(out)) as file:
        assert sum(frame.samples for frame in file.decode(audio=0)) > 24_000


async def test_standard_input_is_spoken_while_it_comes(
    server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, sink = os.pipe()
    with os.fdopen(source) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        out = tmp_path / "out.wav"
        saying = asyncio.create_task(voxwire(server, "-", "--words", "--out", str(out)))
        os.write(sink, b"Your table for four is caf" + "é".encode()[:1])
        await until(lambda: server.engine.live)
        os.write(sink, "é".encode()[1:] + b" booked.")
        os.close(sink)
        assert await saying == say.DONE
    words = [line.split()[-1] for line in capsys.readouterr().out.splitlines()]
    assert words == ["Your", "table", "for", "four", "is", "café", "booked"]


@pytest.mark.parametrize("how", [["--http"], []])
@pytest.mark.parametrize(
    ("prepare", "arguments", "code", "says"),
    [
        (None, ["--voice", "eve"], say.REFUSED, "ada, bob"),
        (None, ["--speed", "9"], say.REFUSED, "speed"),
        (Overloaded("full", 1.0), [], say.TRY_LATER, "full"),
        (Fault(after_frames=20, error=GenerationFailed("it broke")), [], None, ""),
    ],
)
async def test_failures_have_their_own_exit_codes(
    server: Running,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    how: list[str],
    prepare: EngineError | Fault | None,
    arguments: list[str],
    code: int | None,
    says: str,
) -> None:
    if isinstance(prepare, Fault):
        server.engine.next_faults.append(prepare)
    elif prepare is not None:
        server.engine.open_errors.append(prepare)
    out = tmp_path / "out.wav"
    got = await voxwire(server, TEXT, "--out", str(out), *how, *arguments)
    # HTTP can only cut a body that has begun; the WebSocket says that the engine failed, and to try again.
    assert got == (code if code is not None else say.BROKEN if how else say.TRY_LATER)
    assert says in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("text", ["", "  ", "\U0001f389\U0001f389"])
@pytest.mark.parametrize("how", [[], ["--http"], ["--http", "--format", "mp3"]])
async def test_where_there_is_nothing_to_speak_a_file_stays_as_it_is(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, how: list[str]
) -> None:
    out = tmp_path / "good.wav"
    out.write_bytes(b"what was there")
    assert await voxwire(server, text, "--out", str(out), *how) == say.DONE
    assert out.read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == ["good.wav"]
    told = capsys.readouterr().err
    assert "nothing in the text can be spoken" in told
    assert "wrote" not in told


@pytest.mark.parametrize("how", [[], ["--http"], ["--http", "--format", "mp3"]])
async def test_no_place_to_write(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: list[str]
) -> None:
    out = tmp_path / "absent" / "x.wav"
    assert await voxwire(server, "Hello.", "--out", str(out), *how) == say.USAGE
    assert capsys.readouterr().err == f"voxwire say: --out {out}: there is no folder {out.parent}\n"
    assert await voxwire(server, "Hello.", "--out", str(tmp_path), *how) == say.USAGE
    assert "that is a folder" in capsys.readouterr().err


async def test_what_cannot_be_written_is_told_by_its_name(
    server: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.wav"
    (tmp_path / "x.wav.part").mkdir()
    assert await voxwire(server, "Hello.", "--out", str(out)) == say.USAGE
    assert capsys.readouterr().err == f"voxwire say: cannot write {out}: Is a directory\n"
