import multiprocessing
import os
import signal
import threading
from multiprocessing.synchronize import Event

import pytest

from engine.interrupts import children_uninterrupted


def interrupt_and_end(alive: Event) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
    os.kill(os.getpid(), signal.SIGINT)
    alive.set()


@pytest.mark.parametrize("blocked", [True, False])
def test_a_child_does_not_see_an_interrupt(blocked: bool) -> None:
    context = multiprocessing.get_context("spawn")
    alive = context.Event()
    child = context.Process(target=interrupt_and_end, args=(alive,))

    def start() -> None:
        if blocked:
            with children_uninterrupted():
                child.start()
        else:
            child.start()

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    child.join()
    assert alive.is_set() is blocked
    assert (child.exitcode == 0) is blocked


def test_the_thread_is_as_it_was() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    with children_uninterrupted():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before
