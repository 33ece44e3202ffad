"""What the command line answers without a server."""

import subprocess
import sys

import pytest

from web import say
from web.cli import main


@pytest.mark.parametrize("how", [[], ["--http"]])
def test_no_server(how: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["say", "Hello.", "--url", "http://127.0.0.1:9", "--out", "absent.wav", *how]
    assert main(arguments) == say.UNREACHABLE
    assert "./scripts/serve" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "mp3"], "opus, pcm_s16le"),
        (["--http", "--format", "mulaw"], "mp3, opus"),
        (["--http", "--format", "mp3"], "--out"),
        (["--http", "--words"], "no word times"),
    ],
)
def test_wrong_arguments(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["say", "Hello.", *arguments]) == say.USAGE
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:1", "ws://h:1/v1/stream"),
        ("https://h/base/", "wss://h/base/v1/stream"),
        ("ws://h/x", "ws://h/x"),
    ],
)
def test_the_endpoint_follows_from_the_url(url: str, expected: str) -> None:
    assert say.websocket_url(url) == expected


@pytest.mark.parametrize("arguments", [["--port", "x"], ["--host", "0.0.0.0"], ["--config", "/absent.toml"]])
def test_serve_refuses_wrong_settings(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *arguments]) == say.USAGE
    assert capsys.readouterr().err.startswith("voxwire serve: ")


def test_help_lists_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["serve", "--help"])
    told = capsys.readouterr().out
    assert "--limits.sessions" in told
    assert "--insecure" in told


def test_serve_names_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--model", "/absent"]) == say.USAGE
    assert "no model '/absent'" in capsys.readouterr().err


_SAY = """
import sys
from web.cli import main
try:
    main(["say", "--help"])
except SystemExit:
    slow = {"aiortc", "fastapi", "pydantic", "torch", "uvicorn", "vllm", "web.settings"}
    print("slow:", slow & set(sys.modules))
"""


def test_say_does_not_wait_for_what_the_server_needs() -> None:
    child = subprocess.run([sys.executable, "-c", _SAY], capture_output=True, text=True, check=True)
    assert "--words" in child.stdout
    assert "slow: set()" in child.stdout


_FAILING = """
import sys
from engine.errors import EngineDead
from engine.fake import FakeEngine
from web import cli, engines

class Broken(FakeEngine):
    async def start(self):
        raise EngineDead("vLLM did not start: RuntimeError: no\\n  memory")

if __name__ == "__main__":
    engines.make_engine = lambda settings: Broken()
    sys.exit(cli.main(["serve", "--port", "0"]))
"""


def test_the_last_line_says_why_the_engine_cannot_start() -> None:
    child = subprocess.run([sys.executable, "-c", _FAILING], capture_output=True, text=True)
    assert child.returncode == 1
    assert child.stderr.splitlines()[-1] == "voxwire serve: vLLM did not start: RuntimeError: no memory"
