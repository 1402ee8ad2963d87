"""Pulumi programs in TypeScript and JavaScript: run with node, against our end of the monitor.

Node keeps the program in itself: its permission model lets it read its project and its packages, write nothing, and
start nothing. So a node that has none is not used.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.sources.files import shown
from seatrial.sources.pulumi import compiling, process
from seatrial.sources.pulumi.complaints import complain
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.packages import described, home_of, looked_through, packages_in
from seatrial.sources.pulumi.project import Project

RECORDER = Path(__file__).with_name("recorder.cjs")
GUARD = Path(__file__).with_name("guard.cjs")
SECONDS_MAX = 120.0
"""Types are checked as the program is loaded, and those of the Kubernetes SDK are many."""
OLDEST = (20, 0)
PERMISSION = {(20, 0): "--experimental-permission", (22, 13): "--permission"}
"""What the flag is called, by the version of node from which on it is."""
MEGABYTES_MAX = 4096
UPWARDS = ("node_modules*", "package.json", "package.yaml", "tsconfig.json")
SDK = "node_modules/@pulumi/pulumi/package.json"


def run(project: Project, monitor: Monitor, seconds: float = SECONDS_MAX) -> None:
    """Have a program register all that it wants; what it throws is told with its own lines."""
    node, version = _node(project)
    folders = list(looked_through(project.working_folder))
    if not any((folder.parent / SDK).is_file() for folder in folders):
        raise CannotContinue(_lacking(project, "there is no node_modules/@pulumi/pulumi beside it or above"))
    if project.runtime_options.get("nodeargs"):
        monitor.warnings.append(f"{project.file}: nodeargs are left out: {project.runtime_options['nodeargs']}")

    def command(reads: int, writes: int, home: str) -> list[str]:
        flag = max(known for known in PERMISSION.items() if known[0] <= version)[1]
        allowed = [f"--allow-fs-read={path}" for path in _readable(project, folders, Path(home))]
        thread = ["--allow-worker", "--enable-source-maps"] if _is_compiled_in_a_thread(project) else []
        limits = [f"--max-old-space-size={MEGABYTES_MAX}", "--no-warnings", f"--allow-fs-write={home}", *thread]
        return [node, flag, *allowed, *limits, str(RECORDER), str(reads), str(writes)]

    farewell = process.run(
        command,
        _setting(project),
        monitor.answer,
        folder=project.working_folder,
        seconds=seconds,
        seen=_seen(project, folders),
    )
    if farewell.message["do"] == "lacking":
        raise CannotContinue(_lacking(project, str(farewell.message["message"])))
    if complaint := compiling.refused(farewell, project, monitor):
        raise CannotContinue(complaint)
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


def _seen(project: Project, folders: list[Path]) -> set[Path]:
    """The project and its packages."""
    packages = (home_of(package) for folder in folders for package in packages_in(folder))
    return {project.root, *project.packages, *packages, *(one.resolve() for one in folders)}


def _readable(project: Project, folders: list[Path], home: Path) -> list[Path]:
    """The project, its packages, what runs it, and what node and the SDK ask for on the way up, be it there or not.

    Node 20 refuses a folder whose name is the beginning of another that it is to allow: of `ts` and `tsconfig.json`
    beside it, the folder is what counts. So does what is allowed already with a folder that holds it.
    """
    wanted = {RECORDER, GUARD, home, *_seen(project, folders)}
    allowed = [path for path in sorted(wanted) if not wanted & set(path.parents)]
    upwards = (folder / name for folder in project.working_folder.parents for name in UPWARDS)
    return [*allowed, *(path for path in upwards if not any(str(path).startswith(str(one)) for one in allowed))]


def _setting(project: Project) -> Body:
    options = project.runtime_options
    environment = {**compiling.ENVIRONMENT, "PULUMI_NODEJS_TYPESCRIPT": "true" if _is_compiled(project) else "false"}
    if options.get("tsconfig"):
        environment["PULUMI_NODEJS_TSCONFIG_PATH"] = str(options["tsconfig"])
    return {
        "project": project.name,
        "stack": project.stack,
        "config": project.config,
        "secrets": list(project.secrets),
        "program": "." if project.program == project.working_folder else project.program.name,
        "within": str(project.working_folder / "index.js"),
        "environment": environment,
    }


def _is_compiled(project: Project) -> bool:
    """Whether the SDK compiles what it loads: unless it is told not to."""
    return project.runtime_options.get("typescript") is not False


def _is_compiled_in_a_thread(project: Project) -> bool:
    """As ES modules are: those of a package that says so (`cmd/run/run.ts`)."""
    folder = project.working_folder
    package = next((one for one in (folder, *folder.parents) if (one / "package.json").is_file()), folder)
    return _is_compiled(project) and described(package).get("type") == "module"


def _lacking(project: Project, why: str) -> str:
    where = f" in {shown(os.path.relpath(project.today))}" if project.today else ""
    return f"{project.path}: run the program: {why}; install its packages{where}: npm install --ignore-scripts"
