"""Runs one command: every exit is one exit code and, on an error, one sentence on standard error."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.cli import FAILED, INTERRUPTED, NOTHING
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.garbage import collect_rarely

if TYPE_CHECKING:
    from cyclopts import CycloptsError


DESCRIPTORS_MIN = 64
SYSTEM_ERRORS = (
    *(errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.ENOMEM, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EAGAIN),
)
"""What a system lacks; not a bug, and nothing that the input can do about it."""

SOURCES = str(Path(__file__).parents[1])


def run(given: list[str], *, ends: bool) -> int:
    """Run a command line and return the exit code. `ends`: this process does nothing else."""
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal's encoding does not have are escaped instead of raising.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    if ends:
        collect_rarely()
        atexit.register(gc.freeze)  # The process ends: to look for garbage once more takes up to half a second.
    try:
        _refuse_few_descriptors()
        _refuse_missing_folder()
        with _ended_as_interrupted():
            return _run(given)
    except CannotContinue as why:
        return _ended(str(why), FAILED)
    except NothingToCheck as why:
        return _ended(str(why), NOTHING)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _close_stdout()
        return 0
    except (OSError, MemoryError) as why:
        return _ended(_lacking(why), FAILED) if _is_of_the_system(why) else _bug(why, given)
    except Exception as bug:  # noqa: BLE001 - the one place that turns a bug into a sentence
        return _bug(bug, given)


def _refuse_few_descriptors() -> None:
    """With fewer, anything may fail anywhere, and a library would report that with a traceback."""
    try:
        import resource
    except ImportError:  # Windows
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= allowed < DESCRIPTORS_MIN:
        raise CannotContinue(
            f"this system allows {allowed} open files; at least {DESCRIPTORS_MIN} are needed (ulimit -n)"
        )


def _refuse_missing_folder() -> None:
    try:
        Path.cwd()
    except OSError as why:
        raise CannotContinue(f"the current folder cannot be read: {why.strerror}; change to another one") from None


@contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Handle SIGTERM and a closed terminal like Ctrl-C, so that temporary files and child processes are cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]  # nohup
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _run(arguments: list[str]) -> int:
    from seatrial.cli import quick

    if plain := quick.command(arguments):
        return plain()
    from cyclopts import CycloptsError

    from seatrial.cli.app import APP, COMMANDS, all_loaded

    if not arguments or arguments[0] not in COMMANDS:
        all_loaded()
    try:
        verdict = APP(arguments, exit_on_error=False, print_error=False, verbose=False, result_action="return_value")
    except CycloptsError as wrong:
        raise CannotContinue(_sentence(wrong)) from None
    return verdict if isinstance(verdict, int) else 0


def _sentence(wrong: CycloptsError) -> str:
    """The error of cyclopts as one sentence; reworded where its own text is about Python parameters."""
    from cyclopts import MissingArgumentError, UnknownCommandError, UnusedCliTokensError

    match wrong:
        case MissingArgumentError(argument=argument, keyword=keyword) if argument is not None:
            return f"{keyword or argument.name} needs a value"
        case UnusedCliTokensError(unused_tokens=[first, *_]):
            return f"unexpected argument: {first}"
        case UnknownCommandError(unused_tokens=[first, *_]) if first.startswith("-"):
            return f"unknown flag {first}; put flags after the command, as in: seatrial check {first}"
    # The list of commands is cut off: there are too many.
    words = " ".join(str(wrong).partition("Available commands")[0].split()).removesuffix(".")
    if isinstance(wrong, UnknownCommandError):
        words += " seatrial --help lists the commands"
    return words[:1].lower() + words[1:]


def _ended(sentence: str, code: int) -> int:
    from seatrial.report.page import harmless

    sys.stdout.flush()
    text = "\n".join(harmless(words) for words in sentence.splitlines())
    sys.stderr.write(f"seatrial: {text}\n")
    return code


def _is_of_the_system(why: OSError | MemoryError) -> bool:
    return isinstance(why, MemoryError) or why.errno in SYSTEM_ERRORS


def _lacking(why: OSError | MemoryError) -> str:
    if isinstance(why, MemoryError):
        return "this system gives no more memory"
    hint = {errno.EMFILE: "; raise the limit (ulimit -n)", errno.ENOSPC: "; free some space or set TMPDIR"}
    where = f": {why.filename}" if why.filename else ""
    return f"{(why.strerror or str(why)).lower()}{where}{hint.get(why.errno or 0, '')}"


def _bug(bug: Exception, arguments: list[str]) -> int:
    traced = bool(os.environ.get("SEATRIAL_DEBUG") or {"-v", "--verbose"} & set(arguments))
    if traced:
        traceback.print_exception(bug)
    ours = [frame for frame in traceback.extract_tb(bug.__traceback__) if frame.filename.startswith(SOURCES)]
    where = f" ({Path(ours[-1].filename).relative_to(SOURCES)}:{ours[-1].lineno})" if ours else ""
    what = f"{type(bug).__name__}: {bug}".strip().removesuffix(":")
    more = "" if traced else "; -v shows the traceback"
    return _ended(f"internal error (a bug in seatrial, not in your files): {what}{where}{more}", FAILED)


def _close_stdout() -> None:
    """Redirect standard output to /dev/null after a broken pipe, so that Python does not report it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
