"""Processes that check charts side by side, and end when the parent does."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from types import FrameType

from seatrial.fleet.checked import CheckedChart
from seatrial.model.garbage import collect_rarely
from seatrial.model.options import CheckOptions

Work = Callable[[CheckOptions], CheckedChart]

INTERRUPTED = 130
SECONDS_TO_END = 5
"""For an interrupted worker to remove its temporary files."""
STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Workers:
    """Processes, and the queue of what they finish."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._finished: SimpleQueue[Future[CheckedChart] | None] = SimpleQueue()
        """None: interrupted."""

    def submit(self, work: Work, trial: CheckOptions) -> Future[CheckedChart]:
        future = self._pool.submit(work, trial)
        future.add_done_callback(self._finished.put)
        return future

    def next_finished(self) -> Future[CheckedChart]:
        """Wait for one of the submitted trials."""
        finished = self._finished.get()
        if finished is None:
            raise KeyboardInterrupt
        return finished

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        self._finished.put(None)


@contextmanager
def workers(count: int) -> Iterator[Workers]:
    """Processes that end at once if this one is interrupted."""
    # The Go runtime of Helm does not survive a fork.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin)
    crew = Workers(pool)
    done = False
    with _stops_handled_by(crew.interrupt):
        try:
            yield crew
            done = True
        finally:
            running = list(pool._processes.values())  # There is no public way before Python 3.14.
            pool.shutdown(wait=done, cancel_futures=True)
            if not done:
                _end(running)


@contextmanager
def _stops_handled_by(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Ctrl-C must not raise inside the pool: a lock of a future would stay held, and the pool's thread would wait for
    it forever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    raising = [number for number in STOPS if signal.getsignal(number) is signal.default_int_handler]
    for number in raising:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number in raising:
            signal.signal(number, signal.default_int_handler)


def _end(workers: Sequence[BaseProcess]) -> None:
    """End workers that may be in the middle of a check; each removes its temporary files first."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(SECONDS_TO_END)
        if worker.is_alive():
            worker.kill()


def _begin() -> None:
    """In a worker: Ctrl-C reaches the parent, which ends its workers with SIGTERM; their check is interrupted then."""
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_end_with_the_parent, daemon=True).start()


def _end_with_the_parent() -> None:
    """In a worker: a parent that is killed ends no worker, and the pool would wait for its next task forever."""
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
