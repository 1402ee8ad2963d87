"""Expressions and scripts of users, evaluated by C libraries in a process with limits on time, memory and output.

Such a process is started with the first request, serves all threads, and is replaced when a request ends it.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock, Timer

from msgspec import Struct

from seatrial.model.errors import CannotContinue

STUCK_SECONDS = 60.0
"""Of wall time, for a process that uses no CPU time."""
ANSWERING = Path(__file__).with_name("answering.py")


class Offer(Struct, frozen=True):
    """What a process does, and how much it may take for one request."""

    doing: str
    module: str
    function: str
    seconds: float = 1.0
    """Of CPU time, so that results do not depend on the load."""
    memory_bytes_max: int = 512 * 2**20
    output_bytes_max: int = 8 * 2**20


class Service:
    """The process that answers, while there is one."""

    def __init__(self, offer: Callable[[], Offer]) -> None:
        self._offer = offer
        self._lock = Lock()
        self._running: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    def ask(self, request: bytes) -> bytes | None:
        """The answer to one request; None if the request ended the process."""
        with self._lock:
            running = self._running = self._running or _started(self._offer())
            line = _exchange(running, request + b"\n")
            if line.endswith(b"\n"):
                return line
            self._stop()
            return None

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None


def _exchange(process: subprocess.Popen[bytes], request: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    timer = Timer(STUCK_SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    try:
        process.stdin.write(request)
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return b""
    finally:
        timer.cancel()


def _started(offer: Offer) -> subprocess.Popen[bytes]:
    folders = os.pathsep.join(str(Path(folder).absolute()) for folder in sys.path if folder)
    limits = (str(offer.seconds), str(offer.memory_bytes_max), str(offer.output_bytes_max))
    command = [sys.executable, "-I", str(ANSWERING), folders, offer.module, offer.function, *limits]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, env={}, cwd=ANSWERING.parent)
    if _exchange(process, b"") != b"ready\n":
        process.kill()
        process.communicate()
        raise CannotContinue(f"{offer.doing}: {sys.executable} cannot load {offer.module} in a process of its own")
    return process
