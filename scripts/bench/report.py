"""Tables, JSON and a plot of a bench's outcomes."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import quantiles
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from scripts.bench.load import Outcome


def percentile(values: Sequence[float], p: int) -> float:
    """The ``p``-th percentile (1 to 99), inclusive method; the one value where there is only one."""
    if len(values) < 2:
        return values[0] if values else float("nan")
    return quantiles(values, n=100, method="inclusive")[p - 1]


def figures(outcome: Outcome, tokens_per_audio_s: float) -> dict[str, Any]:
    """What one run comes to. ``tokens_per_audio_s`` turns audio into LM tokens."""
    spoken = outcome.spoken
    server = [u.server_ttfp_ms for u in spoken]
    client = [u.ttfp_ms for u in spoken]
    stalls = [s for u in spoken for s in u.stalls_s]
    names = sorted({name for u in spoken for name in u.parts})
    return {
        "sessions": outcome.load.sessions,
        "utterances": len(spoken),
        "ttfp_ms": {p: round(percentile(server, p), 1) for p in (50, 95, 99)},
        "first_text_to_packet_ms": {p: round(percentile(client, p), 1) for p in (50, 95, 99)},
        "parts_p50_ms": {n: round(percentile([u.parts.get(n) or 0.0 for u in spoken], 50), 2) for n in names},
        "underruns": len(stalls),
        "audible_underruns": sum(u.audible for u in spoken),
        "utterances_with_audible_underrun": sum(u.audible > 0 for u in spoken),
        "longest_stall_ms": round(max(stalls, default=0.0) * 1000, 1),
        "audio_s_per_s": round(outcome.audio_per_s, 2),
        "tokens_per_s": round(outcome.audio_per_s * tokens_per_audio_s, 1),
        "cached_share_p50": round(percentile([u.cached / max(1, u.prompt) for u in spoken], 50), 3),
        "load": asdict(outcome.load),
    }


HEAD = (
    "| sessions | utterances | TTFP p50 / p95 / p99 ms | underruns > 100 ms (utterances) | longest stall ms "
    "| audio s per s |\n|---|---|---|---|---|---|"
)


def row(f: dict[str, Any]) -> str:
    """One line of the table that `HEAD` opens."""
    ttfp = " / ".join(f"{f['ttfp_ms'][p]:.0f}" for p in (50, 95, 99))
    return (
        f"| {f['sessions']} | {f['utterances']} | {ttfp} | {f['audible_underruns']} "
        f"({f['utterances_with_audible_underrun']}) | {f['longest_stall_ms']:.0f} "
        f"| {f['audio_s_per_s']:.1f} |"
    )


def parts_row(f: dict[str, Any]) -> str:
    """The medians of the parts of TTFP."""
    return ", ".join(f"{name} {value:.1f}" for name, value in f["parts_p50_ms"].items())


def plot(runs: Sequence[dict[str, Any]], path: Path) -> None:
    """TTFP and underruns over concurrency."""
    count = [f["sessions"] for f in runs]
    figure, (top, lower) = pyplot.subplots(2, 1, figsize=(7, 6), sharex=True)
    for p, style in ((50, "o-"), (95, "s--"), (99, "^:")):
        top.plot(count, [f["ttfp_ms"][p] for f in runs], style, label=f"p{p}")
    top.set_ylabel("TTFP, ms")
    top.set_yscale("log")
    top.legend()
    share = [100 * f["utterances_with_audible_underrun"] / max(1, f["utterances"]) for f in runs]
    lower.plot(count, share, "o-", color="#c8553d")
    lower.set_ylabel("utterances with an\nunderrun > 100 ms, %")
    lower.set_xlabel("concurrent sessions")
    lower.set_xscale("log", base=2)
    lower.set_xticks(count, [str(c) for c in count])
    for axes in (top, lower):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
