"""The entry point. Imports next to nothing: a command restarts its process before it does anything else."""

import os
import sys

from seatrial import __version__
from seatrial.helm.environment import HELM_ENVIRONMENT

FAILED = 2
NOTHING = 3
INTERRUPTED = 130


def main(arguments: list[str] | tuple[str, ...] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if sys.stdout is None or sys.stderr is None:  # Closed. What is opened next would take its place.
        return _without_streams()
    if given == ["--version"]:  # Saves a quarter of a second of imports.
        sys.stdout.write(f"seatrial {__version__}\n")
        return 0
    if arguments is None:
        _restart_with(HELM_ENVIRONMENT)
    from seatrial.cli.front_door import run

    return run(given, ends=arguments is None)


def _without_streams() -> int:
    if sys.stderr is not None:
        sys.stderr.write("seatrial: write the report: standard output is closed\n")
    return FAILED


def _restart_with(environment: dict[str, str]) -> None:
    """Restart this process with `environment`: the Go runtime reads the environment only at process start."""
    missing = any(os.environ.get(name) != value for name, value in environment.items())
    if missing and os.name == "posix" and sys.executable:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **environment})
