"""Limits on memory and time for work in this process that cannot be interrupted, such as rendering a template.

A template may be a bomb: `until` of ten billion, `repeat` to 28 GB, a `tpl` that calls itself. Helm renders in this
process, without a way to stop it, and a process of its own would make every check slower (docs/adr/0019). So a thread
looks at the clock and at the memory, and ends the whole process with a sentence. One allocation that the system refuses
makes Go's runtime abort at once; the handler of that signal writes the sentence instead.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from seatrial.model.options import Limits
from seatrial.sandbox import folders

POLL_SECONDS = 0.05
FAILED = 2
_stderr = [2]
"""Where the sentence is written; the command line moves standard error while Helm works."""
_MEMORY = Path("/proc/self/statm")


MEMORY_MB_MAX = 1024
SECONDS_MAX = 60.0


class _Work(Struct, eq=False):
    """What is being done, and when it must end."""

    doing: str
    before_bytes: int
    memory_mb: int
    seconds: float
    end: float


_limits = [Limits()]
_running: list[_Work] = []
_wake = threading.Event()
_started = threading.Lock()
_threads: list[threading.Thread] = []


def limit_to(limits: Limits) -> None:
    """The limits of this process from now on."""
    _limits[0] = limits


def limits() -> Limits:
    """The limits of one rendering, for one that runs in a process of its own."""
    given = _limits[0]
    return Limits(given.memory_mb or MEMORY_MB_MAX, given.seconds or SECONDS_MAX)


@contextmanager
def limited(doing: str, times: int = 1) -> Iterator[None]:
    """Ends this process with exit code 2 if the work takes `times` the limit, or more memory. Memory needs Linux."""
    _watch()
    seconds = limits().seconds * times
    work = _Work(doing, _resident_bytes(), limits().memory_mb, seconds, time.monotonic() + seconds)
    _running.append(work)
    _wake.set()
    try:
        yield
    finally:
        _running.remove(work)


def complain_to(descriptor: int) -> None:
    _stderr[0] = descriptor


def _watch() -> None:
    """Start the thread and handle the signal, once."""
    with _started:
        if _threads:
            return
        _threads.append(threading.Thread(target=_look, name="seatrial-watchdog", daemon=True))
        _threads[0].start()
        if sys.platform == "linux":
            ctypes.CDLL(None).signal(signal.SIGABRT, _ON_ABORT)


def _look() -> None:
    while _wake.wait():
        if not _running:
            _wake.clear()
        resident, now = _resident_bytes(), time.monotonic()
        for work in tuple(_running):
            if resident - work.before_bytes > work.memory_mb << 20:
                _end(f"{work.doing}: needs more than {work.memory_mb} MB of memory (--memory-limit)")
            if now > work.end:
                _end(f"{work.doing}: did not end within {work.seconds:g} s (--time-limit)")
        time.sleep(POLL_SECONDS)


def _on_abort(number: int) -> None:
    """The runtime of a library gives up. Runs in the thread that called it, which never returns to Python."""
    if not _running:
        signal.signal(signal.SIGABRT, signal.SIG_DFL)
        os.abort()
    _end(f"{_running[-1].doing}: needs more memory than this system gives")


_ON_ABORT = ctypes.CFUNCTYPE(None, ctypes.c_int)(_on_abort)


def _resident_bytes() -> int:
    try:
        return int(_MEMORY.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _end(sentence: str) -> None:
    """Nothing else can be done: the thread that works does not come back."""
    folders.remove_all()
    with suppress(OSError):
        os.write(_stderr[0], f"seatrial: {sentence}\n".encode(errors="replace"))
    os._exit(FAILED)
