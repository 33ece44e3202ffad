"""How speech sounds: DNSMOS and speaker similarity. No transcript is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import speechmos
from numpy.typing import NDArray
from resemblyzer import VoiceEncoder

from scripts.eval.audio import SAMPLE_RATE_HZ, Wave, to_16k
from scripts.eval.progress import track

_SHORTEST_S = 0.5
"""Quality models say nothing useful about less audio than this."""


def long_enough(wave: Wave) -> bool:
    """Whether the quality models can judge this wave."""
    return len(wave) >= _SHORTEST_S * SAMPLE_RATE_HZ


class Dnsmos:
    """The non-intrusive quality score of the DNS challenge, "overall", 1 to 5.

    It runs the model of the `speechmos` package on windows of 9 s, shorter speech repeated to fill one, as
    the package does. The package also averages over windows a second apart, most of which hold the same
    repeated speech; leaving them out changes a score by 0.03 at most and takes a seventh of the time.
    """

    _SAMPLES = 144_160
    _CURVE = np.poly1d([-0.06766283, 1.11546468, 0.04602535])
    _OVERALL = 2

    def __init__(self, threads: int = 1) -> None:
        """Loads the model."""
        folder = Path(speechmos.__path__[0])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        path = folder / "dnsmos_models" / "sig_bak_ovr.onnx"
        self._session = onnxruntime.InferenceSession(str(path), options)

    def __call__(self, wave: Wave) -> float:
        """Scores one 24 kHz wave."""
        audio = np.clip(to_16k(wave), -1, 1)
        size = self._SAMPLES
        short = len(audio) < size
        audio = np.tile(audio, -(-size // len(audio)))[:size] if short else audio
        windows = [audio[:size]] if len(audio) < 1.1 * size else [audio[:size], audio[-size:]]
        raw = self._session.run(None, {"input_1": np.stack(windows)})[0][:, self._OVERALL]
        return float(self._CURVE(raw).mean())

    def all(self, waves: Sequence[Wave], label: str = "DNSMOS") -> list[float]:
        """Scores every wave that is long enough."""
        return [self(wave) for wave in track([w for w in waves if long_enough(w)], label)]


class SpeakerSimilarity:
    """Cosine of speaker embeddings between speech and the voices' reference audio."""

    def __init__(self, references: Mapping[str, Wave]) -> None:
        """Embeds the reference audio of every voice."""
        self._encoder = VoiceEncoder("cpu", verbose=False)
        self._names = list(references)
        self._references = np.stack([self._embed(wave) for wave in references.values()])

    def _embed(self, wave: Wave) -> NDArray[np.float32]:
        embedding: NDArray[np.float32] = self._encoder.embed_utterance(to_16k(wave))
        return embedding

    def compare(self, wave: Wave, name: str) -> tuple[float, float]:
        """Similarity to the own reference, and the mean of those to the others."""
        scores = self._references @ self._embed(wave)
        own = self._names.index(name)
        others = np.delete(scores, own)
        return float(scores[own]), float(others.mean()) if len(others) else float("nan")
