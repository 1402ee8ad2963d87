"""A Pulumi program as a sandboxed process: pipes to us, a time limit, and nothing of the user's environment.

No credentials, an empty home, and no network if the kernel allows that. Decides nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from seatrial.model.resource import Body
from seatrial.sandbox import REFUSED, confined, folders
from seatrial.sources.files import all_instead
from seatrial.sources.pulumi.messages import FINAL_MESSAGES, understood

RECORDERS = Path(__file__).parent
"""What runs in the interpreter of a program."""
MESSAGES_MAX = 50_000
MESSAGE_CHARS_MAX = 20_000_000
SAID_CHARS_MAX = 200_000_000
SAID_BYTES_MAX = 20_000
GONE_SECONDS = 1.0


class NoSandbox(Exception):
    """The system has no sandbox for a program that is not trusted. It was not run."""


class ProgramExit(Struct, frozen=True):
    """How a program ended: its last message, and its output."""

    message: Body
    """`ended`, `raised`, `lacking`, or `gone` if it ended without a message."""
    said: str = ""
    late: bool = False


def run(
    command: Callable[[int, int, str], list[str]],
    setting: Body,
    answer: Callable[[Body], Body],
    *,
    folder: Path,
    seconds: float,
    seen: Iterable[Path] = (),
    trusted: bool = False,
) -> ProgramExit:
    """Run a program to its end, and answer its messages. Only a trusted one runs where there is no sandbox.

    `command` gets the file descriptors for the messages, and the home. Of the hidden paths, the program sees its own
    folder and those in `seen`.
    """
    with _home() as home, _pipes() as (theirs, ours), Path(home, "said").open("w+b") as said:
        process = subprocess.Popen(
            confined(command(*theirs, home), home=home, seen=(RECORDERS, folder, *seen), required=not trusted),
            cwd=folder,
            env=_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=theirs,
            start_new_session=True,  # a process group, so that its children end with it
        )
        for descriptor in theirs:
            os.close(descriptor)
        late = threading.Timer(seconds, _end, [process])
        late.start()
        last: Body = {"do": ""}
        try:
            last = _converse(*ours, {**setting, "home": home, "instead": all_instead()}, answer)
        finally:
            in_time = late.is_alive()
            late.cancel()
            code = _ended(process, waits=last["do"] == "gone")
        if code == REFUSED and last["do"] == "gone":
            raise NoSandbox
        said.seek(0)
        return ProgramExit(last, said.read(SAID_BYTES_MAX).decode(errors="replace").strip(), late=not in_time)


def version_of(interpreter: str) -> str:
    """The output of `--version` of an interpreter."""
    asked = [interpreter, "--version"]
    return subprocess.run(asked, capture_output=True, text=True, check=False, env={}, timeout=10).stdout


def _converse(reads: IO[str], writes: IO[str], setting: Body, answer: Callable[[Body], Body]) -> Body:
    with suppress(BrokenPipeError):
        _say(writes, setting)
        said = 0
        for count, line in enumerate(iter(lambda: reads.readline(MESSAGE_CHARS_MAX), "")):
            said += len(line)
            if count == MESSAGES_MAX or said > SAID_CHARS_MAX:
                return _complaint(f"it registers more than {MESSAGES_MAX} resources or {SAID_CHARS_MAX} characters")
            message = understood(line)
            if message is None:
                return _complaint(f"it sent an invalid message, or one longer than {MESSAGE_CHARS_MAX} characters")
            if message["do"] in FINAL_MESSAGES:
                return message
            _say(writes, answer(message))
    return {"do": "gone"}


def _complaint(words: str) -> Body:
    return {"do": "raised", "type": "", "message": words}


def _say(writes: IO[str], message: Body) -> None:
    writes.write(json.dumps(message) + "\n")
    writes.flush()


@contextmanager
def _home() -> Iterator[str]:
    with folders.temporary() as folder:
        yield os.path.realpath(folder)


@contextmanager
def _pipes() -> Iterator[tuple[tuple[int, int], tuple[IO[str], IO[str]]]]:
    """The pipe ends of the program, and ours."""
    their_reads, our_writes = os.pipe()
    our_reads, their_writes = os.pipe()
    writes = os.fdopen(our_writes, "w", encoding="utf-8")
    reads = os.fdopen(our_reads, encoding="utf-8")
    try:
        yield (their_reads, their_writes), (reads, writes)
    finally:
        reads.close()
        with suppress(BrokenPipeError):
            writes.close()


def _environment(home: str) -> dict[str, str]:
    """An environment without credentials, clusters or proxies of the user."""
    usual = {"HOME": home, "TMPDIR": home, "PATH": os.defpath, "LANG": "C.UTF-8"}
    return {**usual, "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"}  # Makes the order of sets deterministic.


def _ended(process: subprocess.Popen[Any], *, waits: bool) -> int:
    """The exit code. A program that closed its pipes is given a moment to end by itself."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(GONE_SECONDS if waits else 0)
    _end(process)
    return process.wait()


def _end(process: subprocess.Popen[Any]) -> None:
    """Kill the process and its children."""
    with suppress(ProcessLookupError):  # It may already have ended.
        os.killpg(process.pid, signal.SIGKILL)
