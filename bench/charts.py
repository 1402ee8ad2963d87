"""How long `seatrial check` takes on charts of the size that people have, and how much memory it needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import Figure, seconds

OF_ONE_APP = """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: "{{ $app }}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ $app }}"}
data: {colour: blue}
---
apiVersion: v1
kind: Secret
metadata: {name: "{{ $app }}"}
stringData: {password: "{{ $.Values.password }}"}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ $app }}"}
spec:
  selector: {app: "{{ $app }}"}
  ports: [{name: http, port: 80, targetPort: http}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ $app }}"}
spec:
  replicas: 2
  selector: {matchLabels: {app: "{{ $app }}"}}
  template:
    metadata: {labels: {app: "{{ $app }}"}}
    spec:
      serviceAccountName: "{{ $app }}"
      containers:
        - name: app
          image: registry.example/app:1
          ports: [{name: http, containerPort: 8080}]
          envFrom: [{configMapRef: {name: "{{ $app }}"}}, {secretRef: {name: "{{ $app }}"}}]
"""
OBJECTS_OF_ONE_APP = 5


TIMES = 3


def figures() -> Iterator[Figure]:
    """Each in a process of its own, as people run it: the quickest of several runs."""
    with tempfile.TemporaryDirectory() as folder:
        five, fifty, thousand = (Path(folder, name) for name in ("five", "fifty", "thousand"))
        write_chart(five, apps=1)
        write_chart(fifty, apps=10)
        write_umbrella(thousand, children=20, apps=10)
        yield _figure("check of a chart of 5 objects, with start-up", five, "0.4 s")
        yield _figure("check of a chart of 50 objects", fifty, "1.2 s")
        yield _figure("check of an umbrella of 1,000 objects", thousand, "12 s", times=1)


def _figure(what: str, chart: Path, goal: str, times: int = TIMES) -> Figure:
    took, used, megabytes = (min(column) for column in zip(*(_checked(chart) for _ in range(times)), strict=True))
    return Figure(what, f"{took:.2f} s", f"goal: {goal}; {used:.2f} s of a processor, {megabytes:.0f} MB")


def write_chart(folder: Path, apps: int) -> None:
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(f"apiVersion: v2\nname: {folder.name}\nversion: 1.0.0\n")
    (folder / "values.yaml").write_text("password: open sesame\n")
    for number in range(apps):
        name = f'{{{{- $app := printf "%s-{number}" .Chart.Name }}}}\n'
        (folder / "templates" / f"app-{number}.yaml").write_text(name + OF_ONE_APP)


def write_umbrella(folder: Path, children: int, apps: int) -> None:
    folder.mkdir()
    (folder / "Chart.yaml").write_text(f"apiVersion: v2\nname: {folder.name}\nversion: 1.0.0\n")
    for number in range(children):
        write_chart(folder / "charts" / f"part-{number}", apps)


def _checked(chart: Path) -> tuple[float, float, float]:
    """Seconds, seconds of a processor and megabytes of one check."""
    command = [str(Path(sys.executable).with_name("seatrial")), "check", str(chart), "--quiet", "--no-cache"]
    used = megabytes = 0.0

    def run() -> None:
        nonlocal used, megabytes
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        used = usage.ru_utime + usage.ru_stime
        megabytes = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)

    return seconds(run), used, megabytes
