"""API keys: a TOML file with a table for each, holding the key's hash and never the key.

    [alice]
    sha256 = "9f86d0..."                # of the key; `voxwire key alice` makes both
    expires = 2027-01-01T00:00:00Z      # optional
    sessions = 8                        # optional: at once, WebSockets and requests together
    chars_per_minute = 60000            # optional: text to be spoken

Keys have 256 random bits, so that a fast hash is as good as a slow one.
"""

import hashlib
import hmac
import secrets
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec

PREFIX = "vw_"
_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}\Z")]
_Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Positive = Annotated[int, msgspec.Meta(gt=0)]


class KeysUnusable(Exception):
    """The file cannot be read or is wrong; the message says where. It never quotes a value."""


class _Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    sha256: _Sha256
    expires: datetime | None = None
    sessions: _Positive | None = None
    chars_per_minute: _Positive | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """One key. ``sessions`` and ``chars_per_minute`` are its quotas, None without bound."""

    name: str
    digest: bytes
    expires: datetime | None = None
    sessions: int | None = None
    chars_per_minute: int | None = None

    def valid(self, now: datetime) -> bool:
        """Whether it has not expired; ``now`` has a time zone."""
        return self.expires is None or now < self.expires


class KeyRing:
    """All keys of a server."""

    def __init__(self, keys: Mapping[str, ApiKey]) -> None:
        self._keys = dict(keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(self._keys.values())

    def find(self, secret: str, now: datetime) -> ApiKey | None:
        """The valid key that ``secret`` is. Takes as long whichever it is, or none."""
        digest = digest_of(secret)
        found = None
        for key in self._keys.values():
            if hmac.compare_digest(digest, key.digest):
                found = key
        return found if found is not None and found.valid(now) else None

    def holds(self, key: ApiKey, now: datetime) -> bool:
        """Whether ``key`` is still here, the same, and valid."""
        mine = self._keys.get(key.name)
        return mine is not None and mine.digest == key.digest and mine.valid(now)

    def current(self, key: ApiKey) -> ApiKey:
        """``key`` with the quotas it has now."""
        return self._keys.get(key.name, key)


def digest_of(secret: str) -> bytes:
    """What is kept of a key."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_key() -> str:
    """A new secret. Its characters may stand in a URL and in the name of a WebSocket subprotocol."""
    return PREFIX + secrets.token_urlsafe(32)


def table_of(name: str, secret: str) -> str:
    """The lines of the file for a new key. Raises `KeysUnusable` for a name that no table can have."""
    try:
        msgspec.convert(name, _Name)
    except msgspec.ValidationError:
        raise KeysUnusable("a key's name has 1 to 64 letters, digits, '_', '-' or '.'") from None
    return f'["{name}"]\nsha256 = "{digest_of(secret).hex()}"\n'


def read(path: Path) -> KeyRing:
    """The keys in the file at ``path``. Raises `KeysUnusable`."""
    try:
        with path.open("rb") as file:
            raw = tomllib.load(file)
    except OSError as error:
        raise KeysUnusable(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KeysUnusable(f"{path}: {error}") from error
    try:
        tables = msgspec.convert(raw, dict[_Name, _Table])
    except msgspec.ValidationError as error:
        raise KeysUnusable(f"{path}: {error}") from error
    if not tables:
        raise KeysUnusable(f"{path}: there is no key in it")
    return KeyRing({name: _key(name, table) for name, table in tables.items()})


def _key(name: str, table: _Table) -> ApiKey:
    expires = table.expires
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    return ApiKey(name, bytes.fromhex(table.sha256), expires, table.sessions, table.chars_per_minute)
