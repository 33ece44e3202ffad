"""The recogniser's model is put together once from its two packages."""

import hashlib
from pathlib import Path

import pytest

pytest.importorskip("faster_whisper")

from scripts.eval import asr


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, package in enumerate(asr._PACKAGES):
        data = tmp_path / package / "data"
        data.mkdir(parents=True)
        (data / f"model.bin.part{i + 1}").write_bytes(b"AB"[i : i + 1])
        (data / "config.json").write_text("{}")
    monkeypatch.setattr(asr, "_package_data", lambda package: tmp_path / package / "data")


@pytest.mark.usefixtures("packages")
def test_the_halves_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asr, "_SHA256", hashlib.sha256(b"AB").hexdigest())
    folder = asr.whisper_folder(tmp_path / "cache" / "whisper")
    assert (folder / "model.bin").read_bytes() == b"AB"
    assert {path.name for path in folder.iterdir()} == {"model.bin", "config.json"}


@pytest.mark.usefixtures("packages")
def test_a_wrong_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not the expected"):
        asr.whisper_folder(tmp_path / "whisper")
    assert not (tmp_path / "whisper").exists()


def test_the_environment_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.bin").touch()
    monkeypatch.setenv("VOXWIRE_WHISPER", str(tmp_path))
    assert asr.whisper_folder() == tmp_path


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asr, "_PACKAGES", ("no_such_package_a", "no_such_package_b"))
    with pytest.raises(FileNotFoundError, match="no-such-package-a"):
        asr.whisper_folder(tmp_path / "whisper")


def test_compression_tells_loops_from_speech() -> None:
    assert asr.compression("where are you " * 12) > 2.4
    assert asr.compression("your table for four is booked for friday at seven thirty") < 2.4
    assert asr.compression("") < 2.4
