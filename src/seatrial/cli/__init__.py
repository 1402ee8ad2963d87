"""The entry point. Imports next to nothing: a command may restart its process before it does anything else."""

import os
import sys

from seatrial import __version__
from seatrial.helm.environment import HELM_ENVIRONMENT

FAILED = 2
NOTHING = 3
INTERRUPTED = 130
SMALL_ENTRIES_MAX = 200
SMALL_BYTES_MAX = 100_000


def main(arguments: list[str] | tuple[str, ...] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None or sys.stderr is None:  # Closed. What is opened next would take its place.
        return _without_streams()
    if given == ["--version"]:  # Saves a quarter of a second of imports.
        sys.stdout.write(f"seatrial {__version__}\n")
        return 0
    if arguments is None:
        _set(HELM_ENVIRONMENT, restarts=not _is_small(given))
    from seatrial.cli.front_door import run

    return run(given, ends=arguments is None)


def _without_streams() -> int:
    if sys.stderr is not None:
        sys.stderr.write("seatrial: write the report: standard output is closed\n")
    return FAILED


def _set(environment: dict[str, str], *, restarts: bool) -> None:
    """Set `environment` for other processes and, if this one restarts, for it: Go reads it only at process start."""
    missing = any(os.environ.get(name) != value for name, value in environment.items())
    os.environ.update(environment)
    if missing and restarts and os.name == "posix" and sys.executable:
        os.execv(sys.executable, sys.orig_argv)


def _is_small(given: list[str]) -> bool:
    """Whether Go's settings make no difference: a check of small charts, and what calls no Helm.

    To restart takes longer than they save. The rate limit of Helm is an option of its library as well.
    """
    if given[:1] == ["explain"]:
        return True
    if given[:1] != ["check"] or any(word.startswith("--from") for word in given):  # Then Helm runs often.
        return False
    paths = [word for word in given[1:] if os.path.lexists(word)]
    return bool(paths) and all(map(_is_small_folder, paths))


def _is_small_folder(path: str) -> bool:
    folders, seen, size = [path], 0, 0
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir():
                        folders.append(entry.path)
                    else:
                        size += entry.stat().st_size
                    if seen > SMALL_ENTRIES_MAX or size > SMALL_BYTES_MAX:
                        return False
        except OSError:  # A file, which may name other folders, or one that cannot be read.
            return False
    return True
