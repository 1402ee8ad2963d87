"""jq programs, run by libjq in a process of its own with limits on time, memory and output.

The process is started with the first program, serves all threads, and is replaced when a program ends it. Knows
nothing of Argo CD.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Timer
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.model.errors import CannotContinue

SECONDS = 1.0
"""Of CPU time, so that results do not depend on the load."""
STUCK_SECONDS = 60.0
"""Of wall time, for a process that uses no CPU time."""
MEMORY_MAX = 512 * 2**20
OUTPUT_MAX = 8 * 2**20
PROGRAM_MAX = 64 * 2**10
WORKER = Path(__file__).with_name("worker.py")


class Fault(Struct, frozen=True):
    """Why a program has no result."""

    words: str
    is_illegal: bool = False
    """Whether it does not compile."""
    ran_away: bool = False
    """Whether it was stopped at a limit."""


class _Answer(Struct, frozen=True):
    outputs: list[Any] = []
    error: str = ""
    illegal: str = ""


def run(program: str, body: Any) -> list[Any] | Fault:
    """The first two outputs of a program for an input."""
    return _run(program, msgspec.json.encode(body))


@lru_cache(maxsize=512)
def fault_of(program: str) -> Fault | None:
    """Why a program does not compile, if it does not."""
    found = _ask(program, msgspec.json.encode({"program": program}))
    return found if isinstance(found, Fault) else None


@lru_cache(maxsize=1024)
def _run(program: str, body: bytes) -> list[Any] | Fault:
    return _ask(program, b'{"program":%b,"input":%b}' % (msgspec.json.encode(program), body))


def _ask(program: str, request: bytes) -> list[Any] | Fault:
    if len(program) > PROGRAM_MAX:
        return Fault(f"longer than {PROGRAM_MAX} characters", ran_away=True)
    answer = _PROCESS.ask(request)
    if answer is None:
        return Fault("stopped", ran_away=True)
    if answer.illegal:
        return Fault(answer.illegal, is_illegal=True)
    return Fault(answer.error) if answer.error else answer.outputs


class _Process:
    """The process that runs programs, while there is one."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: subprocess.Popen[bytes] | None = None

    def ask(self, request: bytes) -> _Answer | None:
        """The answer to one request; None if it ended the process."""
        with self._lock:
            running = self._running = self._running or _started()
            line = _exchange(running, request + b"\n")
            if not line.endswith(b"\n"):
                self._stop()
                return None
            return msgspec.json.decode(line, type=_Answer)

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


def _started() -> subprocess.Popen[bytes]:
    found = find_spec("jq")
    if found is None or found.origin is None:
        raise CannotContinue("run a jq expression: the Python package jq is not installed")
    limits = (str(SECONDS), str(MEMORY_MAX), str(OUTPUT_MAX))
    command = [sys.executable, "-I", str(WORKER), str(Path(found.origin).parent), *limits]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, env={})
    if _exchange(process, b"") != b"ready\n":
        process.kill()
        process.communicate()
        raise CannotContinue(f"run a jq expression: {sys.executable} cannot load the Python package jq")
    return process


_PROCESS = _Process()
atexit.register(_PROCESS.close)
