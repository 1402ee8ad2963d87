"""Runs jq programs for the process that started it: one JSON request per line in, one JSON answer per line out.

libjq cannot be interrupted from Python, so a program that runs away ends this process and not its parent. Imports
nothing but the standard library and libjq; `jq/__init__.py` is the other end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

OUTPUTS_MAX = 2
"""Further ones are not computed."""


@lru_cache(maxsize=256)
def compiled(program: str) -> Any:
    import jq

    return jq.compile(program)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        program = compiled(request["program"])
    except ValueError as error:
        return {"illegal": str(error)}
    if "input" not in request:
        return {"outputs": []}
    try:
        return {"outputs": list(islice(iter(program.input_value(request["input"])), OUTPUTS_MAX))}
    except ValueError as error:
        return {"error": str(error)}


def limit_memory(memory_max: int) -> None:
    """macOS knows the limit and does not enforce it; Windows has none."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_max, memory_max))


def main(folder: str, seconds: float, memory_max: int, output_max: int) -> None:
    sys.path.insert(0, folder)
    compiled(".")
    limit_memory(memory_max)
    os.environ.clear()  # Python itself sets LC_CTYPE; to Argo CD's programs `env` is empty.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    print("ready", flush=True)  # noqa: T201
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # SIGPROF ends the process.
        text = json.dumps(answer(json.loads(line)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(text if len(text) <= output_max else '{"error": "the result is too large"}', flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
