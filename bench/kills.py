"""Checks that are ended at a random moment: python -m bench.kills COUNT SEED [SECONDS]. Counts what is left behind.

The moment is within SECONDS: what a check takes. SIGTERM, SIGINT and SIGHUP must leave no process and no
file; after SIGKILL only a temporary folder may be left.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)
PROGRAM = "import pulumi_kubernetes as k\nk.core.v1.ConfigMap('a', data={'b': 'c'})\n"
SECONDS_TO_END = 20.0


def main(count: int, seed: int, seconds: float = 4.0) -> None:
    dice = random.Random(seed)
    left: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program")
        program.mkdir()
        (program / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (program / "__main__.py").write_text(PROGRAM)
        inputs = [str(ROOT / "examples/basic-app/v2"), str(program)]
        for number in range(1, count + 1):
            left += _killed(dice, dice.choice(inputs), Path(folder, f"tmp{number}"), seconds)
            if number % 20 == 0:
                sys.stdout.write(f"{number} kills: {len(left)} left behind {left[:5]}\n")
                sys.stdout.flush()


def _killed(dice: random.Random, given: str, temporary: Path, seconds: float) -> list[str]:
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "seatrial", "check", given, "--no-cache"]
    number = dice.choice(SIGNALS)
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(dice.uniform(0.05, seconds))
        process.send_signal(number)
        process.wait(SECONDS_TO_END)
    files = [] if number == signal.SIGKILL else [path.name for path in temporary.iterdir()]
    return [
        *(f"{number.name} file {name}" for name in files),
        *(f"{number.name} {name}" for name in _processes(f"{temporary}")),
    ]


def _processes(mark: str) -> list[str]:
    """Those that were started by the check, a moment later."""
    end = time.monotonic() + 5
    while (found := _marked(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _marked(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line = (path / "cmdline").read_bytes()
            if mark.encode() in (path / "environ").read_bytes() + line:  # As TMPDIR, or as the home in the sandbox.
                found.append(line.replace(b"\0", b" ").decode(errors="replace")[:80])
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *map(float, sys.argv[3:]))
