"""Pulumi programs in TypeScript and JavaScript: run with node, against our end of the monitor.

Node keeps the program in itself: its permission model lets it read its project and its packages, write nothing, and
start nothing. So a node that has none is not used.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from seatrial.errors import CannotContinue
from seatrial.resource import Body
from seatrial.sources.files import project_of, shown
from seatrial.sources.pulumi import process
from seatrial.sources.pulumi.complaints import complain
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import Project

RECORDER = Path(__file__).with_name("recorder.cjs")
SECONDS_MAX = 120.0
"""Types are checked as the program is loaded, and those of the Kubernetes SDK are many."""
OLDEST = (20, 0)
PERMISSION = {(20, 0): "--experimental-permission", (22, 13): "--permission"}
"""What the flag is called, by the version of node from which on it is."""
MEGABYTES_MAX = 4096
UPWARDS = ("node_modules", "package.json", "package.yaml", "tsconfig.json")
SDK = "node_modules/@pulumi/pulumi/package.json"


def run(project: Project, monitor: Monitor, seconds: float = SECONDS_MAX) -> None:
    """Have a program register all that it wants; what it throws is told with its own lines."""
    node, version = _node(project)
    program = project.folder / project.main if project.main else project.folder
    if not program.exists():
        raise CannotContinue(f"{project.file}: main: there is no {project.main} in {project.path}")
    folders = list(_packages(program))
    if not any((folder.parent / SDK).is_file() for folder in folders):
        raise CannotContinue(_lacking(project, "there is no node_modules/@pulumi/pulumi beside it or above"))

    def command(reads: int, writes: int, home: str) -> list[str]:
        flag = max(known for known in PERMISSION.items() if known[0] <= version)[1]
        readable = {
            project_of(project.folder),
            RECORDER,
            Path(home),
            *_looked_at(program),
            *project.packages,
            *(f.resolve() for f in folders),
        }
        allowed = [f"--allow-fs-read={path}" for path in sorted(readable)]
        limits = [f"--max-old-space-size={MEGABYTES_MAX}", "--no-warnings", f"--allow-fs-write={home}"]
        return [node, flag, *allowed, *limits, str(RECORDER), str(reads), str(writes)]

    farewell = process.run(command, _setting(project, program), monitor.answer, folder=project.folder, seconds=seconds)
    if farewell.message["do"] == "lacking":
        raise CannotContinue(_lacking(project, str(farewell.message["message"])))
    complain(farewell, project, seconds)


def _node(project: Project) -> tuple[str, tuple[int, int]]:
    """The node on the PATH, and its version."""
    node = shutil.which("node")
    if node is None:
        raise CannotContinue(
            f"{project.path}: run the program: there is no node on the PATH, which {project.file} wants"
        )
    said = process.version_of(node)
    found = re.match(r"v(\d+)\.(\d+)", said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < OLDEST:
        words = f"{node} is {said.strip() or 'of no known version'}; node 20 or later can be kept from doing harm"
        raise CannotContinue(f"{project.path}: run the program: {words}")
    return node, version


def _packages(program: Path) -> Iterator[Path]:
    """Where node looks for packages, from the program upwards."""
    folder = program if program.is_dir() else program.parent
    return (path for one in (folder, *folder.parents) if (path := one / "node_modules").is_dir())


def _looked_at(program: Path) -> Iterator[Path]:
    """What node and the SDK ask for on the way up, whether it is there or not."""
    return (folder / name for folder in program.parents for name in UPWARDS)


def _setting(project: Project, program: Path) -> Body:
    folder = program if program.is_dir() else program.parent
    return {
        "project": project.name,
        "stack": project.stack,
        "config": project.config,
        "secrets": list(project.secrets),
        "program": str(program) if project.main else ".",
        "within": str(folder / "index.js"),
        "typescript": _is_compiled(project, folder),
    }


def _is_compiled(project: Project, folder: Path) -> bool:
    """Whether the SDK compiles what it loads: unless it is told not to, or it is an ES module that is compiled."""
    package = folder / "package.json"
    about = json.loads(package.read_text()) if package.is_file() else {}
    compiled = about.get("type") == "module" and str(about.get("main") or project.main).endswith((".js", ".mjs"))
    return project.runtime_options.get("typescript") is not False and not compiled


def _lacking(project: Project, why: str) -> str:
    where = f" in {shown(os.path.relpath(project.today))}" if project.today else ""
    return f"{project.path}: run the program: {why}; install its packages{where}: npm install --ignore-scripts"
