"""Processes that check charts side by side, and end when the parent does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from types import FrameType

from seatrial.model.garbage import collect_rarely

INTERRUPTED = 130
SECONDS_TO_END = 5
"""For an interrupted worker to remove its temporary files."""


@contextmanager
def workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose processes end at once if this one is interrupted."""
    # The Go runtime of Helm does not survive a fork.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    done = False
    try:
        yield pool
        done = True
    finally:
        running = list(pool._processes.values())  # There is no public way before Python 3.14.
        pool.shutdown(wait=done, cancel_futures=True)
        if not done:
            _end(running)


def _end(workers: Sequence[BaseProcess]) -> None:
    """End workers that may be in the middle of a check; each removes its temporary files first."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # A second Ctrl-C must not leave files behind.
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(SECONDS_TO_END)
        if worker.is_alive():
            worker.kill()
    signal.signal(signal.SIGINT, before)


def _begin() -> None:
    """In a worker: Ctrl-C reaches the parent, which ends its workers with SIGTERM; their check is interrupted then."""
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """In a worker: a parent that is killed ends nobody, and the pool would wait for its next task forever."""
    parent = parent_process()
    if parent is None:
        return
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(SECONDS_TO_END)  # Helm does not return to Python at once.
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """As Ctrl-C. Whatever the worker does then, it ends: it may wait for a parent that reads no results any more."""
    last = threading.Timer(SECONDS_TO_END, os._exit, [INTERRUPTED])
    last.daemon = True
    last.start()
    signal.default_int_handler(number, frame)
