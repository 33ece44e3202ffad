import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from web import keys
from web.cli import main

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SECRET = "vw_secret"
LINE = f'sha256 = "{hashlib.sha256(SECRET.encode()).hexdigest()}"\n'


def ring(tmp_path: Path, text: str) -> keys.KeyRing:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    return keys.read(file)


def test_a_key_is_found_by_its_secret_only(tmp_path: Path) -> None:
    found = ring(tmp_path, f"[alice]\n{LINE}sessions = 3\nchars_per_minute = 100\n").find(SECRET, NOW)
    assert found is not None
    assert (found.name, found.sessions, found.chars_per_minute) == ("alice", 3, 100)
    for wrong in ("", "vw_secreT", SECRET + "x", found.digest.hex(), "ÿ", "\udcff"):
        assert ring(tmp_path, f"[alice]\n{LINE}").find(wrong, NOW) is None


@pytest.mark.parametrize(
    ("expires", "valid"),
    [("2026-06-01T00:00:01Z", True), ("2026-06-01T00:00:00Z", False), ("2026-05-01T00:00:00", False)],
)
def test_a_key_expires(tmp_path: Path, expires: str, valid: bool) -> None:
    made = ring(tmp_path, f"[alice]\n{LINE}expires = {expires}\n")
    assert (made.find(SECRET, NOW) is not None) is valid
    (key,) = made
    assert made.holds(key, NOW) is valid


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no key"),
        ("[alice]\n", "sha256"),
        ('[alice]\nsha256 = "vw_secret"\n', "sha256"),
        (f"[alice]\n{LINE}sesions = 3\n", "sesions"),
        (f"[alice]\n{LINE}sessions = 0\n", "sessions"),
        (f'["a b"]\n{LINE}', "matching regex"),
        ("[alice", "end of document"),
    ],
)
def test_a_wrong_file_is_told_without_its_values(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(keys.KeysUnusable, match=says) as told:
        ring(tmp_path, text)
    assert "vw_secret" not in str(told.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(keys.KeysUnusable, match="No such file"):
        keys.read(tmp_path / "none.toml")


def test_the_command_makes_a_key_that_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["key", "bob.2"]) == 0
    shown = capsys.readouterr()
    secret = shown.err.split()[-1]
    found = ring(tmp_path, shown.out).find(secret, NOW)
    assert found is not None
    assert found.name == "bob.2"
    assert secret not in shown.out
    assert main(["key", "no good"]) == 2
