"""Run in a container of the lab in place of `nc`, `curl`, `pg_isready` and the like: asks whether a Service answers."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from seatrial.kinds.scripts.probes import PROBES

FASTER = 20


def main() -> int:
    called = PROBES[sys.argv[1]](tuple(sys.argv[2:]))
    if called is None:
        return 0
    until = time.monotonic() + called.patience_seconds / FASTER
    while not _answers(called.host, called.port, by_name=called.by_name):
        if time.monotonic() >= until:
            sys.stderr.write(f"{called.says}\n")
            return called.code
        time.sleep(0.2)
    return 0


def _answers(host: str, port: int, *, by_name: bool) -> bool:
    labels, own = host.rstrip(".").split("."), os.environ["LAB_NAMESPACE"]
    name = f"{labels[1] if len(labels) > 1 else own}/{labels[0]}"
    services = json.loads(Path(os.environ["LAB_SERVICES"]).read_text())
    if name not in services:
        is_service = len(labels) == 1 or labels[1:] == [own] or labels[2:3] == ["svc"]
        return not is_service  # A host outside of the cluster is assumed to answer.
    numbers = [number for _, number in services[name]]
    return by_name or (bool(numbers) and port in (0, *numbers)) or 0 in numbers


if __name__ == "__main__":
    sys.exit(main())
