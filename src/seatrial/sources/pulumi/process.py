"""A Pulumi program as a process of its own: with pipes to us, a time limit, and nothing of the user's around it.

No credentials in its environment, an empty home, no network where the kernel lets us take it away. Decides nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from seatrial.model.resource import Body
from seatrial.sources.pulumi.messages import LAST_WORDS, understood

CONFINED = Path(__file__).with_name("confined.py")
MESSAGES_MAX = 50_000
MESSAGE_CHARS_MAX = 20_000_000
SAID_CHARS_MAX = 200_000_000
SAID_BYTES_MAX = 20_000
SECRETIVE = (
    *("/run/secrets", "/var/run/secrets", "/run/user", "/run/credentials"),
    *("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock"),
)
"""Beside the home of the user: tokens of whatever runs us, and sockets of those who would run anything."""


class Farewell(Struct, frozen=True):
    """How a program ended: the last thing it told us, and what it wrote."""

    message: Body
    """`ended`, `raised`, `lacking`, or `gone` where it ended without a word."""
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
) -> Farewell:
    """Run a program to its end, and answer what it asks meanwhile.

    `command` gets the descriptors that it is to speak by, and its home. Of what is hidden, it sees its own folder and
    those in `seen`.
    """
    with _home() as home, _pipes() as (theirs, ours), Path(home, "said").open("w+b") as said:
        process = subprocess.Popen(
            [sys.executable, "-I", str(CONFINED), home, *_view((folder, *seen)), *command(*theirs, home)],
            cwd=folder,
            env=_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            pass_fds=theirs,
            start_new_session=True,  # a group of its own, so that whatever it starts ends with it
        )
        for descriptor in theirs:
            os.close(descriptor)
        late = threading.Timer(seconds, _end, [process])
        late.start()
        try:
            last = _converse(*ours, {**setting, "home": home}, answer)
        finally:
            in_time = late.is_alive()
            late.cancel()
            _end(process)
            process.wait()
        said.seek(0)
        return Farewell(last, said.read(SAID_BYTES_MAX).decode(errors="replace").strip(), late=not in_time)


def version_of(interpreter: str) -> str:
    """What an interpreter says when it is asked for its version."""
    asked = [interpreter, "--version"]
    return subprocess.run(asked, capture_output=True, text=True, check=False, env={}, timeout=10).stdout


def _view(seen: Iterable[Path]) -> Iterator[str]:
    """What is hidden from a program, and what of it is to be seen: two lists, each joined as a PATH is."""
    hidden = dict.fromkeys(os.path.realpath(path) for path in (Path.home(), *SECRETIVE))
    yield os.pathsep.join(hidden)
    yield os.pathsep.join(dict.fromkeys(os.path.realpath(path) for path in (CONFINED.parent, *seen)))


def _converse(reads: IO[str], writes: IO[str], setting: Body, answer: Callable[[Body], Body]) -> Body:
    with suppress(BrokenPipeError):
        _say(writes, setting)
        said = 0
        for count, line in enumerate(iter(lambda: reads.readline(MESSAGE_CHARS_MAX), "")):
            said += len(line)
            if count == MESSAGES_MAX or said > SAID_CHARS_MAX:
                return _complaint(f"registers more than {MESSAGES_MAX} resources, or {SAID_CHARS_MAX} characters")
            message = understood(line)
            if message is None:
                return _complaint("it writes into a pipe that is not its own, or more than can be taken at once")
            if message["do"] in LAST_WORDS:
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
    folder = os.path.realpath(tempfile.mkdtemp(prefix="seatrial-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _pipes() -> Iterator[tuple[tuple[int, int], tuple[IO[str], IO[str]]]]:
    """The ends that the program reads from and writes to, and ours."""
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
    """Nothing of the user's: no credentials, no cluster, no proxies."""
    usual = {"HOME": home, "TMPDIR": home, "PATH": os.defpath, "LANG": "C.UTF-8"}
    return {**usual, "PYTHONHASHSEED": "0", "PYTHONSAFEPATH": "1"}  # Sets have the same order each time.


def _end(process: subprocess.Popen[Any]) -> None:
    """End it with all that it has started."""
    with suppress(ProcessLookupError):  # It may just have ended by itself.
        os.killpg(process.pid, signal.SIGKILL)
