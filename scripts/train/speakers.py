"""Teacher speakers: a mixture of the teacher's style vectors and a playback factor (pitch and formants).

Ids 0..11 are the fixed voices that the product ships; ids from 100 on are random points of the same space.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

STYLES = ("jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")
FIRST_RANDOM = 100
MOST_ALPHA = 0.35  # the style jf_alpha alone is the least intelligible one


@dataclass(frozen=True)
class Speaker:
    """`weights` over `STYLES` sum to one; the audio is played `factor` times as fast, the tempo is kept."""

    id: int
    weights: tuple[float, ...]
    factor: float = 1.0
    name: str = ""
    description: str = field(default="", compare=False)

    def style(self, styles: np.ndarray, tokens: int) -> np.ndarray:
        """The style vector for an input of `tokens` phonemes; `styles` is [5, rows, 256]."""
        row = min(tokens, styles.shape[1] - 1)
        mixed: np.ndarray = np.tensordot(
            np.asarray(self.weights, np.float32), styles[:, row].astype(np.float32), 1
        )
        return mixed


def _fixed(number: int, name: str, description: str, factor: float, **parts: float) -> Speaker:
    short = {"alpha": 0, "gon": 1, "nez": 2, "teb": 3, "kum": 4}
    weights = [0.0] * len(STYLES)
    for part, weight in parts.items():
        weights[short[part]] = weight
    return Speaker(number, tuple(weights), factor, name, description)


FIXED = (
    _fixed(0, "grace", "warm female", 1.0, gon=1),
    _fixed(1, "kai", "deep male", 0.97, kum=1),
    _fixed(2, "mika", "bright female", 1.06, nez=1),
    _fixed(3, "owen", "tenor male", 1.14, kum=1),
    _fixed(4, "nora", "clear female", 1.0, teb=0.5, gon=0.5),
    _fixed(5, "marcus", "low male", 0.88, kum=0.8, nez=0.2),
    _fixed(6, "tess", "calm female", 0.93, teb=1),
    _fixed(7, "robin", "light, between male and female", 1.02, kum=0.5, teb=0.5),
    _fixed(8, "iris", "young female", 1.17, nez=0.5, teb=0.5),
    _fixed(9, "hugo", "very deep male", 0.83, kum=1),
    _fixed(10, "vera", "low female", 0.86, gon=0.8, nez=0.2),
    _fixed(11, "felix", "bright male", 1.22, kum=0.8, gon=0.2),
)


def random_speaker(number: int, rng: random.Random) -> Speaker:
    """A random mixture of styles and a factor in 0.8..1.25, log-uniform."""
    while True:
        raw = [rng.gammavariate(0.5, 1.0) for _ in STYLES]
        total = sum(raw)
        if total > 0 and raw[0] / total <= MOST_ALPHA:
            break
    weights = tuple(round(w / total, 3) for w in raw)
    return Speaker(number, weights, round(0.8 * (1.25 / 0.8) ** rng.random(), 4))
