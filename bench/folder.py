"""A folder of 100 small charts: the first check, and the same again, when all results are known."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import Figure, seconds
from bench.charts import write_chart

CHARTS = 100


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        for number in range(CHARTS):
            write_chart(Path(folder, "charts", f"small-{number}"), 1)
        first = seconds(lambda: _check(Path(folder)))
        again = seconds(lambda: _check(Path(folder)))
    yield Figure(f"{CHARTS} charts of 5 objects", f"{first:.1f} s", f"goal: 20 s; {os.cpu_count()} processors")
    yield Figure("the same again, from the cache", f"{again:.2f} s", f"goal: 2 s; {first / again:.0f} x as fast")


def _check(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("seatrial")), "check", "charts", "--quiet"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run(command, check=False, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
