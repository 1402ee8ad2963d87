"""A limit on memory and time for work in this process that cannot be interrupted, such as rendering a template.

A template may be a bomb: `until` of ten billion, a `tpl` that calls itself. Helm renders in this process, without a way
to stop it, and a process of its own would make every check slower. So a thread looks at the clock and at the memory,
and ends the whole process with a sentence.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MEMORY_BYTES_MAX = 1 << 30
"""How much this process may grow."""
SECONDS_MAX = 60.0
POLL_SECONDS = 0.05
FAILED = 2
_stderr = [2]
"""Where the sentence is written; the command line moves standard error while Helm works."""
_MEMORY = Path("/proc/self/statm")


@contextmanager
def limited(doing: str, memory_bytes: int = MEMORY_BYTES_MAX, seconds: float = SECONDS_MAX) -> Iterator[None]:
    """Ends this process with exit code 2 if the work takes longer or needs more memory. Needs Linux for the memory."""
    done = threading.Event()
    before = _resident_bytes()

    def watch() -> None:
        for _ in range(int(seconds / POLL_SECONDS)):
            if done.wait(POLL_SECONDS):
                return
            if _resident_bytes() - before > memory_bytes:
                _end(f"{doing}: needs more than {memory_bytes >> 20} MB of memory")
        _end(f"{doing}: did not end within {seconds:g} s")

    threading.Thread(target=watch, name="seatrial-watchdog", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def complain_to(descriptor: int) -> None:
    _stderr[0] = descriptor


def _resident_bytes() -> int:
    try:
        return int(_MEMORY.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _end(sentence: str) -> None:
    """Nothing else can be done: the thread that works does not come back."""
    with suppress(OSError):
        os.write(_stderr[0], f"seatrial: {sentence}\n".encode(errors="replace"))
    os._exit(FAILED)
