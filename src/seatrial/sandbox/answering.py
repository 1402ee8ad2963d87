"""Answers requests for the process that started it: one JSON request per line in, one JSON answer per line out.

Run by path, with the folders to import from (joined like PATH), the module and the function that answers, and the
limits. A request that runs away ends this process and not its parent: CPU time and memory are limited here, and what
it runs is a C library that cannot be interrupted. Imports nothing but the standard library; `service` is the other end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module


def main(folders: str, module: str, function: str, seconds: float, memory_max: int, output_max: int) -> None:
    sys.path[:0] = folders.split(os.pathsep)
    answer = getattr(import_module(module), function)
    answer(None)  # Loads its library, which may need more memory than its work.
    _limit_memory(memory_max)
    os.environ.clear()
    timed = hasattr(signal, "setitimer")  # Not on Windows, where the parent's limit of time holds.
    if timed:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin.buffer:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends the process.
        text = json.dumps(answer(json.loads(line)))
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)
        print(text if len(text) <= output_max else '{"error": "the result is too large"}', flush=True)  # noqa: T201


def _limit_memory(memory_max: int) -> None:
    """macOS knows the limit and does not enforce it; Windows has none."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_max, memory_max))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
