"""Keys for a server under test."""

from pathlib import Path

from web import keys

GOOD = "vw_good-key_0123456789"
BAD = "vw_bad-key_0123456789"


def keys_file(folder: Path, *lines: str, name: str = "alice", secret: str = GOOD) -> Path:
    """A file with one key and ``lines`` in its table."""
    file = folder / "keys.toml"
    file.write_text(keys.table_of(name, secret) + "\n".join(lines) + "\n")
    return file
