"""A progress bar that stays quiet where nobody looks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")


def track(items: Sequence[Item], label: str) -> Iterable[Item]:
    """Iterates with a bar on a terminal, without one elsewhere."""
    bar: Iterable[Item] = tqdm(items, desc=label, leave=False, disable=not sys.stderr.isatty())
    return bar
