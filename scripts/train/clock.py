"""The run's wall clock: when stages end, kept in a small file that may be edited while they run.

The file holds lines `name seconds`, counted from the start of the whole run:

    freeze 900
    codec_end 1500
    lm_end 1480
"""

from __future__ import annotations

import time
from pathlib import Path

_REREAD_S = 5.0


class Clock:
    """Seconds since the run began, and the ends of its stages."""

    def __init__(self, t0: float, path: Path | None = None, **ends: float) -> None:
        self._t0, self._path, self._ends = t0, path, ends
        self._read_at = float("-inf")

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.time() - self._t0

    def end(self, name: str) -> float:
        """End of stage `name`; the file, where there is one, wins over the value given in code."""
        now = self.elapsed()
        if self._path and now - self._read_at > _REREAD_S and self._path.exists():
            self._read_at = now
            for line in self._path.read_text().splitlines():
                fields = line.split()
                if len(fields) == 2:
                    self._ends[fields[0]] = float(fields[1])
        return self._ends[name]

    def log(self, text: str) -> None:
        """Prints a line with the time."""
        print(f"[{self.elapsed():6.1f}s] {text}", flush=True)
