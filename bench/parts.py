"""Where the CPU time of one check goes, by part of the program: `python -m bench.parts CHART`.

Samples every few milliseconds what each thread is doing, and how much CPU it used since the last sample. Threads that
Python does not know are Helm's.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import FrameType

import msgspec

from bench import Figure
from bench.charts import write_chart, write_umbrella
from seatrial.helm.environment import HELM_ENVIRONMENT

SECONDS_BETWEEN = 0.004
PACKAGE = "/seatrial/"
HELM = "Helm's own code"
IMPORTS = "start-up: imports"
PARTS = {
    "cluster/server": "HTTP and JSON",
    "cluster/discovery": "discovery and OpenAPI",
    "cluster/controllers": "controllers",
    "cluster": "API server",
    "kinds": "controllers",
    "graph": "rules",
    "readiness": "engines",
    "engines": "engines",
    "play": "engines",
    "sources": "rendering and planning",
    "text": "rendering and planning",
    "plan": "rendering and planning",
    "helm": "rendering and planning",
    "evidence": "rules",
    "phrases": "rules",
    "rules": "rules",
    "model": "rules",
    "fix": "fixes",
    "report": "report",
}
"""By the innermost frame of seatrial; the first that fits."""


class Sampler:
    """Samples all threads of this process until it is stopped."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        before = _cpu()
        own = threading.get_native_id()
        while not self._ended.wait(SECONDS_BETWEEN):
            frames = sys._current_frames()
            python = {one.native_id: frames.get(one.ident or 0) for one in threading.enumerate()}
            now = _cpu()
            for thread, used in now.items():
                if thread != own and (spent := used - before.get(thread, 0.0)) > 0:
                    self.seconds[part_of(python[thread]) if thread in python else HELM] += spent
            before = now


def part_of(frame: FrameType | None) -> str:
    """The part that a thread is in, by the innermost frame of seatrial."""
    while frame is not None:
        file = frame.f_code.co_filename
        if "importlib" in file:
            return IMPORTS
        if "helm_python" in file:
            return HELM
        if PACKAGE in file:
            inside = file.rpartition(PACKAGE)[2]
            return next((part for folder, part in PARTS.items() if inside.startswith(folder)), "the rest")
        frame = frame.f_back
    return "the rest"


def _cpu() -> dict[int, float]:
    """The CPU seconds of each thread so far. Linux only."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # It has ended.
    return found


def figures() -> Iterator[Figure]:
    """Three charts, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        charts = {"5 objects": Path(folder, "small"), "50 objects": Path(folder, "usual")}
        write_chart(charts["5 objects"], 1)
        write_chart(charts["50 objects"], 10)
        charts["1,000 objects"] = Path(folder, "umbrella")
        write_umbrella(charts["1,000 objects"], 20, 10)
        for what, chart in charts.items():
            spent = _measured(chart)
            yield Figure(what, f"{sum(spent.values()):.2f} s", "of a processor")
            for part, seconds in spent.items():
                yield Figure(f"  {part}", f"{seconds:.2f} s", f"{seconds / sum(spent.values()):.0%}")


def _measured(chart: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.parts", str(chart)]
    environment = {**os.environ, **HELM_ENVIRONMENT}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float] = msgspec.json.decode(done.stdout)
    return found


def main() -> None:
    """The seconds of each part of one check, most first, as JSON."""
    with Sampler() as sampler, redirect_stdout(io.StringIO()):
        from seatrial.cli import main as command

        command(["check", sys.argv[1], "--no-cache", "--quiet", *sys.argv[2:]])
    parts = sorted(sampler.seconds.items(), key=lambda one: -one[1])
    sys.stdout.write(json.dumps({part: round(seconds, 3) for part, seconds in parts}, indent=2) + "\n")


if __name__ == "__main__":
    main()
