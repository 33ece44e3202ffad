"""Does the time to the first packet grow with the voice prompt's length? The prefix cache says no.

    python -m scripts.bench.prompt_length [--utterances 40]

Starts a server with two voices made from one shipped voice, with prompts of about 2 s and 10 s (its speech,
cut or repeated: what they sound like does not matter here), and speaks with them in turn.
"""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from statistics import median

import numpy as np

from engine.models.ember import layout
from realtime.client import connect
from scripts.bench.served import served

EMBER = Path(__file__).parents[2] / "engine" / "models" / "ember"
SECONDS = {"short": 2.0, "long": 10.0}
TEXT = "Your table for four is booked, see you at half past seven."


def voice(source: Path, target: Path, seconds: float) -> None:
    """A voice whose prompt is ``source``'s, repeated and cut at a word to about ``seconds``."""
    target.mkdir(parents=True)
    words = (source / "transcript.txt").read_text().split()
    tokens = np.load(source / "tokens.npy")
    starts = [*np.flatnonzero(tokens == layout.WORD), len(tokens)]
    spoken: list[str] = []
    ids: list[int] = []
    while len(ids) < seconds * layout.TOKEN_RATE_HZ:
        at = len(spoken) % len(words)
        spoken.append(words[at])
        ids += tokens[starts[at] : starts[at + 1]].tolist()
    np.save(target / "tokens.npy", np.array(ids, np.int32))
    (target / "spk.npy").symlink_to(source / "spk.npy")
    (target / "transcript.txt").write_text(" ".join(spoken))
    (target / "voice.json").write_text(json.dumps({"description": f"{seconds:.0f} s of prompt"}))


async def speak(url: str, utterances: int) -> dict[str, list[float]]:
    """TTFP in ms of each voice, spoken with in turn; the first utterance of each is left out."""
    times: dict[str, list[float]] = {name: [] for name in SECONDS}
    for _ in range(utterances + 1):
        for name in SECONDS:
            async with connect(url, voice=name) as session:
                utterance = session.utterance()
                await utterance.send(TEXT)
                await utterance.end()
                async for _packet in utterance.packets():
                    pass
                assert utterance.done is not None
                times[name].append(utterance.done.ttfp_ms or 0.0)
    return {name: values[1:] for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--utterances", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "model.json").write_text('{"family": "ember"}')
        for name in ("lm", "codec"):
            (folder / name).symlink_to(EMBER / name)
        for name, seconds in SECONDS.items():
            voice(EMBER / "voices" / "grace", folder / "voices" / name, seconds)
        with served(["--model", str(folder)]) as server:
            times = asyncio.run(speak(server.ws, args.utterances))
    for name, values in times.items():
        print(f"{SECONDS[name]:.0f} s prompt: TTFP p50 {median(values):.1f} ms of {len(values)} utterances")
    print(f"ratio {median(times['long']) / median(times['short']):.2f} (must be at most 1.15)")


if __name__ == "__main__":
    main()
