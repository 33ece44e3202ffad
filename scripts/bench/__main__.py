"""Bench the speaking server on this machine.

    python -m scripts.bench [--sessions 1 2 4 8 16 24 32] [--utterances 4] [--out FOLDER]

Starts the server, offers each concurrency in turn with text arriving at 30 tokens a second, then measures
in the same run what vLLM and the vocoder do alone. Client and server share the machine's cores. Prints a
table; writes `bench.json` and `bench.png` to ``--out``.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from scripts.bench import report
from scripts.bench.load import Load, offer
from scripts.bench.served import served

TOKENS_PER_AUDIO_S = 53.0
"""50 codes and about 3 word boundaries."""
TEXTS = Path(__file__).parent.parent / "eval" / "everyday.txt"


def texts() -> list[str]:
    """Utterances of two everyday sentences, five to ten seconds of speech."""
    lines = [line.strip() for line in TEXTS.read_text().splitlines() if line.strip()]
    return [f"{a} {b}" for a, b in zip(lines[::2], lines[1::2], strict=False)]


def run(args: argparse.Namespace, console: Console) -> dict[str, Any]:
    runs = []
    with served(args.server, args.port) as server:
        voices, url = server.voices(), server.ws
        asyncio.run(offer(url, Load(1, 2, encoding=args.encoding), texts(), voices, lambda: None))
        for count in args.sessions:
            load = Load(count, args.utterances, encoding=args.encoding)
            with Progress(console=console, transient=True) as progress:
                task = progress.add_task(f"{count} sessions", total=count * args.utterances)
                outcome = asyncio.run(offer(url, load, texts(), voices, partial(progress.advance, task)))
            runs.append(report.figures(outcome, TOKENS_PER_AUDIO_S))
            console.print(report.row(runs[-1]), f"[dim]{report.parts_row(runs[-1])}[/dim]", soft_wrap=True)
    return {"runs": runs}


def references(sessions: list[int]) -> dict[str, Any]:
    """`scripts.bench.references` in its own process."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, "-m", "scripts.bench.references", "--out", out.name]
        subprocess.run([*command, "--sessions", *map(str, sessions)], check=True, stdout=subprocess.DEVNULL)
        result: dict[str, Any] = json.loads(Path(out.name).read_text())
        return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 2, 4, 8, 16, 24, 32])
    parser.add_argument("--utterances", type=int, default=4, help="per session")
    parser.add_argument("--encoding", default="opus")
    parser.add_argument("--port", type=int, help="default: a free one")
    parser.add_argument("--out", type=Path, default=Path("build/bench"))
    parser.add_argument("--no-references", action="store_true")
    parser.add_argument("--server", nargs=argparse.REMAINDER, default=[], help="flags for the server, last")
    args = parser.parse_args()
    console = Console(width=160)
    console.print(report.HEAD)
    result = run(args, console)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "bench.json").write_text(json.dumps(result, indent=1))
    report.plot(result["runs"], args.out / "bench.png")
    if not args.no_references:
        result["references"] = references(args.sessions)
        raw = result["references"]["raw_tokens_per_s"]
        for figures in result["runs"]:
            alone = raw[str(figures["sessions"])]
            console.print(
                f"{figures['sessions']} sessions: vLLM alone {alone:.0f} tokens/s, "
                f"through the server {figures['tokens_per_s']:.0f} (bound by the pace of the offered load)"
            )
        speed = result["references"]["offline_vocoding_x_real_time"]
        console.print(f"offline vocoding, one thread: {speed:.0f} x real time")
        (args.out / "bench.json").write_text(json.dumps(result, indent=1))
    console.print(f"written: {args.out / 'bench.json'}, {args.out / 'bench.png'}")


if __name__ == "__main__":
    main()
