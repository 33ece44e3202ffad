"""Child processes that a Ctrl-C in the terminal does not reach: their parent decides when they end."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def children_uninterrupted() -> Iterator[None]:
    """Processes that this thread starts inside never see SIGINT; SIGTERM ends them as ever.

    A terminal sends Ctrl-C to the whole foreground group. A child that takes it as its own end takes away
    what its parent needs to finish in good order. The blocked signal is inherited, also through ``exec``.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # its start, which a first child causes, would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
