"""Who may come in and how much they may have: keys, their quotas, and the connections they opened.

For the process edge: `Access.enter` for each caller; `Access.watch` runs beside the server.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from realtime.clock import Clock, MonotonicClock
from realtime.errors import Draining, ErrorCode, RateLimited, RealtimeError, Unauthorized
from realtime.metering import TokenBucket
from web import keys
from web.edge import EdgeLimits
from web.keys import ApiKey, KeyRing, KeysUnusable

logger = logging.getLogger(__name__)

_MINUTE_S = 60.0
_SESSION_RETRY_S = 5.0
"""Nobody knows when one of the caller's own sessions ends."""


class Ending(Protocol):
    """A connection that can be ended from outside."""

    def end(self, error: RealtimeError) -> None:
        """Tell the client and close."""


class Account:
    """A `Caller`: what one key has in use now. Without a key nothing is counted."""

    def __init__(self, key: ApiKey | None, clock: Clock, *, log_text: bool = False) -> None:
        self.key = key
        self.live = 0
        self._clock = clock
        self._log_text = log_text
        self._chars: TokenBucket | None = None
        if key is not None:
            self.update(key)

    @property
    def name(self) -> str | None:
        """See `Caller`."""
        return self.key.name if self.key is not None else None

    def update(self, key: ApiKey) -> None:
        """The key as it stands in the file now."""
        self.key = key
        allowed = key.chars_per_minute
        if allowed is None:
            self._chars = None
        elif self._chars is None or self._chars.capacity != allowed:
            self._chars = TokenBucket(allowed, _MINUTE_S, self._clock.now())

    def take_text(self, session: str, utterance: str | None, text: str) -> None:
        """See `Caller`."""
        if self._chars is not None:
            wait_s = self._chars.take(len(text), self._clock.now())
            if wait_s > 0:
                allowed = int(self._chars.capacity)
                raise RateLimited(f"this key may have {allowed} characters a minute spoken", wait_s)
        if self._log_text:
            logger.info("text", extra={"session": session, "utterance": utterance, "text": text})

    def check_sessions(self) -> None:
        """Raise `RateLimited` unless one more session may begin."""
        allowed = self.key.sessions if self.key is not None else None
        if allowed is not None and self.live >= allowed:
            raise RateLimited(f"this key may have {allowed} sessions at once", _SESSION_RETRY_S)


class Access:
    """See the module's docstring. Lives on the event loop.

    Attributes:
        refused: callers turned away, by code.
    """

    def __init__(
        self,
        keys_file: Path | None,
        limits: EdgeLimits,
        *,
        log_text: bool = False,
        clock: Clock | None = None,
    ) -> None:
        """Raises `KeysUnusable`."""
        self.refused: Counter[ErrorCode] = Counter()
        self._file = keys_file
        self._ring: KeyRing | None = keys.read(keys_file) if keys_file is not None else None
        self._stamp = _stamp(keys_file)
        self._limits = limits
        self._clock = clock or MonotonicClock()
        self._log_text = log_text
        self._accounts: dict[str, Account] = {}
        self._sockets: dict[Ending, tuple[ApiKey | None, float]] = {}

    def identify(self, secret: str | None) -> Account:
        """Whose key that is. Raises `Unauthorized`."""
        if self._ring is None:
            return Account(None, self._clock, log_text=self._log_text)
        key = self._ring.find(secret, datetime.now(UTC)) if secret else None
        if key is None:
            raise Unauthorized("a valid API key is needed" if secret else "an API key is needed")
        account = self._accounts.get(key.name)
        if account is None:
            account = self._accounts[key.name] = Account(key, self._clock, log_text=self._log_text)
        return account

    @contextmanager
    def session(self, account: Account, socket: Ending | None = None) -> Iterator[None]:
        """Count a session of ``account``, and have ``socket`` ended when its time is over or its key is.

        Raises `RateLimited`.
        """
        account.check_sessions()
        account.live += 1
        if socket is not None:
            self._sockets[socket] = (account.key, self._clock.now())
        try:
            yield
        finally:
            account.live -= 1
            if socket is not None:
                del self._sockets[socket]

    async def watch(self) -> None:
        """Until cancelled: read the file again when it has changed, end what may not go on."""
        while True:
            await asyncio.sleep(self._limits.recheck_s)
            self.recheck(datetime.now(UTC))

    def recheck(self, now: datetime) -> None:
        """See `watch`. A file that has become unusable changes nothing; it is logged."""
        self._read_again()
        oldest = self._clock.now() - self._limits.session_s
        for socket, (key, began) in list(self._sockets.items()):
            if key is not None and self._ring is not None and not self._ring.holds(key, now):
                socket.end(Unauthorized("the API key has expired or was withdrawn"))
            elif began < oldest:
                socket.end(Draining(f"a connection lasts {self._limits.session_s:g} s; open another"))

    def _read_again(self) -> None:
        stamp = _stamp(self._file)
        if self._file is None or stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._ring = keys.read(self._file)
        except KeysUnusable as error:
            logger.error("keys not read again", extra={"reason": str(error)})
            return
        for account in self._accounts.values():
            if account.key is not None:
                account.update(self._ring.current(account.key))
        logger.info("keys read again", extra={"keys": len(self._ring)})


def _stamp(file: Path | None) -> tuple[int, int, int] | None:
    """Changes when the file does; None while there is none."""
    try:
        stat = file.stat() if file is not None else None
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino) if stat is not None else None
