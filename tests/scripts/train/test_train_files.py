"""Token files and result parts read back as written."""

import random
from pathlib import Path

import numpy as np
import pytest

from scripts.train import deliver, tokens
from scripts.train.clock import Clock
from scripts.train.tokens import Tokens


def test_packing_round_trip() -> None:
    codes = np.random.default_rng(0).integers(0, 8000, 1001).astype(np.uint16)
    assert np.array_equal(tokens.unpack(tokens.pack(codes), len(codes)), codes)


def test_token_files_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_CODES_PER_FILE", 200)
    rng = np.random.default_rng(1)
    lengths, words = rng.integers(20, 90, 30), rng.integers(0, 9, 30)
    made = Tokens(
        rng.integers(0, 8000, lengths.sum()).astype(np.uint16),
        lengths,
        np.arange(30),
        rng.integers(0, 200, 30),
        words,
        rng.integers(0, 20, words.sum()),
        rng.integers(0, 60, lengths.sum()).astype(np.uint8),
    )
    assert len(made.save(tmp_path)) > 3
    found = tokens.load(tmp_path)
    for name in Tokens.__dataclass_fields__:
        assert np.array_equal(getattr(found, name), getattr(made, name)), name


def test_each_word_keeps_a_code() -> None:
    at = tokens.word_codes(np.array([0, 100, 230, 5000, 9590]), 480, 20)
    assert at.tolist() == [0, 1, 2, 10, 19]
    assert tokens.word_codes(np.array([9000, 9400, 9590]), 480, 20).tolist() == [17, 18, 19]
    assert tokens.word_codes(np.array([], np.int32), 480, 20).tolist() == []


@pytest.mark.parametrize("size", [0, 1, 2, 1001])
def test_planes_round_trip(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert deliver.unpack(deliver.pack(data)) == data


def test_parts_are_taken_once_and_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliver, "_PART_BYTES", 300)
    source, store, home = tmp_path / "weights", tmp_path / "store", tmp_path / "home"
    source.write_bytes(random.Random(0).randbytes(2500))
    home.mkdir()
    deliver.publish(store, "weights", source)
    first = deliver.take(store, home, 0)
    assert len(first) == 8
    assert deliver.join(home, tmp_path / "out") == []
    deliver.take(store, home, 0)
    assert deliver.take(store, home, 0) == []
    (made,) = deliver.join(home, tmp_path / "out")
    assert made.read_bytes() == source.read_bytes()


def test_the_clock_file_wins(tmp_path: Path) -> None:
    path = tmp_path / "clock"
    path.write_text("freeze 12\n\nother 1\n")
    clock = Clock(0.0, path, freeze=5.0, until=7.0)
    assert (clock.end("freeze"), clock.end("until")) == (12.0, 7.0)
