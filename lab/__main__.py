"""`make lab`: play the Helm trials of the scenarios on both clusters, and write what differs to docs/fidelity.md.

make lab ARGS="-k hook --helm-binary /opt/helm-3.19/helm"
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lab import ROOT
from lab.build import build, cache

PRIVATE = "SEATRIAL_LAB_PRIVATE"
"""Set in the process that has a network of its own."""
POD_NETWORK = "10.244.0.0/16"
HELM_ENVIRONMENT = {"HELM_QPS": "1000000", "HELM_BURST_LIMIT": "1000000"}


def main() -> int:
    options = _parser().parse_args()
    if PRIVATE not in os.environ:
        folder = build()
        if folder is None:
            _say("lab: skipped: it needs Go to build the control plane, and there is none on the PATH")
            return 0
        return _restart(folder)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(1))  # Everything that was started is stopped on the way out.
    for command in ("link set lo up", f"route add local {POD_NETWORK} dev lo"):
        subprocess.run(["ip", *command.split()], check=False, stderr=subprocess.DEVNULL)
    from lab.running import run_all
    from lab.writing import write

    started = time.monotonic()
    found = [run_all(binary, options) for binary in ("", *options.helm_binary)]
    text = write(found)
    _say(text)
    _say(f"{time.monotonic() - started:.0f} seconds")
    if not options.only:
        (ROOT / "docs" / "fidelity.md").write_text(text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make lab", description=__doc__)
    parser.add_argument("-k", dest="only", default="", help="only stories whose name contains this")
    parser.add_argument("--helm-binary", action="append", default=[], metavar="PATH", help="also play with this helm")
    parser.add_argument("--first", action="store_true", help="only the first trial of each story, without --wait")
    parser.add_argument("--seconds", type=float, default=0, help="begin no story after so many seconds")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="every Nth story from the Kth on")
    parser.add_argument("--resume", action="store_true", help="keep what earlier runs of this tree have found")
    return parser


def _restart(assets: Path) -> int:
    """Run again with a network of its own, and with the environment that Go programs read at their start only."""
    folder = tempfile.mkdtemp(prefix="seatrial-lab-")
    environment = {
        **os.environ,
        **HELM_ENVIRONMENT,
        PRIVATE: "1",
        "SEATRIAL_LAB_ASSETS": str(assets),
        "SEATRIAL_LAB_CACHE": str(cache()),
        "KUBECACHEDIR": f"{folder}/kube",
        "TMPDIR": folder,
    }
    alone = [shutil.which("unshare") or "unshare", *(["-n"] if os.geteuid() == 0 else ["-rn"])]
    try:
        with subprocess.Popen([*alone, sys.executable, "-m", "lab", *sys.argv[1:]], env=environment) as process:
            signal.signal(signal.SIGTERM, lambda *_: process.terminate())
            return process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
