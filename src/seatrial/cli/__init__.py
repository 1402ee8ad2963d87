"""The front door: every way out of the program is one exit code and, where something went wrong, one sentence."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial import __version__
from seatrial.model.errors import CannotContinue, NothingToCheck

if TYPE_CHECKING:
    from cyclopts import CycloptsError

FAILED = 2
NOTHING = 3
INTERRUPTED = 130
HASTE = {"HELM_QPS": "1000000", "HELM_BURST_LIMIT": "1000000", "GOGC": "300"}
"""Else Helm asks five times a second while it waits, twice for every Deployment, as it would to spare a real server.

And it reads what the API serves anew for every object: with more room, a fifth less time is spent on clearing that up.
"""

SOURCES = str(Path(__file__).parents[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding has no letters for is escaped, not a reason to stop.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    if given == ["--version"]:  # Not worth a quarter of a second of imports.
        sys.stdout.write(f"seatrial {__version__}\n")
        return 0
    if arguments is None:
        _start_again_with(HASTE)
    try:
        with _told_to_end_as_if_interrupted():
            return _played(given)
    except CannotContinue as why:
        return _ended(str(why), FAILED)
    except NothingToCheck as why:
        return _ended(str(why), NOTHING)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _close_stdout()
        return 0
    except Exception as bug:  # noqa: BLE001 - the one place where a bug becomes a sentence
        return _bug(bug, given)


def _start_again_with(environment: dict[str, str]) -> None:
    """Give Helm its environment. The Go runtime knows only the one that the process was started with."""
    missing = any(os.environ.get(name) != value for name, value in environment.items())
    if missing and os.name == "posix" and sys.executable:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **environment})


@contextmanager
def _told_to_end_as_if_interrupted() -> Iterator[None]:
    """Let SIGTERM end us as Ctrl-C does: what was begun is put away first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _played(arguments: list[str]) -> int:
    from cyclopts import CycloptsError

    from seatrial.cli.app import APP

    try:
        verdict = APP(arguments, exit_on_error=False, print_error=False, verbose=False, result_action="return_value")
    except CycloptsError as wrong:
        raise CannotContinue(_sentence(wrong)) from None
    return verdict if isinstance(verdict, int) else 0


def _sentence(wrong: CycloptsError) -> str:
    """What cyclopts found wrong with the arguments, in our words where its own are about programs."""
    from cyclopts import MissingArgumentError, UnknownCommandError, UnusedCliTokensError

    match wrong:
        case MissingArgumentError(argument=argument, keyword=keyword) if argument is not None:
            return f"{keyword or argument.name} needs a value"
        case UnusedCliTokensError(unused_tokens=[first, *_]):
            return f"one argument too many: {first}"
        case UnknownCommandError(unused_tokens=[first, *_]) if first.startswith("-"):
            return f"unknown flag {first}; flags stand behind the verb, as in: seatrial check {first}"
    words = " ".join(str(wrong).split()).removesuffix(".")
    return words[:1].lower() + words[1:]


def _ended(sentence: str, code: int) -> int:
    from seatrial.report.page import harmless

    sys.stdout.flush()
    text = "\n".join(harmless(words) for words in sentence.splitlines())
    sys.stderr.write(f"seatrial: {text}\n")
    return code


def _bug(bug: Exception, arguments: list[str]) -> int:
    told = bool(os.environ.get("SEATRIAL_DEBUG") or {"-v", "--verbose"} & set(arguments))
    if told:
        traceback.print_exception(bug)
    ours = [frame for frame in traceback.extract_tb(bug.__traceback__) if frame.filename.startswith(SOURCES)]
    where = f" ({Path(ours[-1].filename).relative_to(SOURCES)}:{ours[-1].lineno})" if ours else ""
    what = f"{type(bug).__name__}: {bug}".strip().removesuffix(":")
    more = "" if told else "; -v shows the traceback"
    return _ended(f"a bug in seatrial, not in your files: {what}{where}{more}", FAILED)


def _close_stdout() -> None:
    """The reader has left: what is still to be written goes nowhere, and Python does not complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
