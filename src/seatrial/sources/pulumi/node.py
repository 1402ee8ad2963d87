"""Pulumi programs in TypeScript and JavaScript: run with node, against our resource monitor.

Node's permission model lets the program read its project and its packages, write no files and start no processes. A
node without a permission model is not used.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.sandbox.client import on_path
from seatrial.sources.files import shown
from seatrial.sources.pulumi import compiling, process
from seatrial.sources.pulumi.failures import raise_failure
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.packages import described, home_of, looked_through, packages_in
from seatrial.sources.pulumi.project import PulumiProject, owned_by_the_user

RECORDER = Path(__file__).with_name("recorder.cjs")
GUARD = Path(__file__).with_name("guard.cjs")
SECONDS_MAX = 120.0
"""Loading includes type checking, and the Kubernetes SDK has many types."""
OLDEST = (20, 0)
PERMISSION = {(20, 0): "--experimental-permission", (22, 13): "--permission"}
"""The name of the flag, by the first version of node that has it."""
MEGABYTES_MAX = 4096
UPWARDS = ("node_modules*", "package.json", "package.yaml", "tsconfig.json")
SDK = "node_modules/@pulumi/pulumi/package.json"


def run(project: PulumiProject, monitor: Monitor, seconds: float = SECONDS_MAX) -> None:
    """Run a program until all its resources are registered; its exceptions are reported with its own frames."""
    node, version = _node(project)
    folders = list(looked_through(project.working_folder))
    if not any((folder.parent / SDK).is_file() for folder in folders):
        raise CannotContinue(_lacking(project, "node_modules/@pulumi/pulumi was not found in its folder or above"))
    if project.runtime_options.get("nodeargs"):
        monitor.warnings.append(f"{project.file}: nodeargs are ignored: {project.runtime_options['nodeargs']}")

    def command(reads: int, writes: int, home: str) -> list[str]:
        flag = max(known for known in PERMISSION.items() if known[0] <= version)[1]
        allowed = [f"--allow-fs-read={path}" for path in _readable(project, folders, Path(home))]
        thread = ["--allow-worker", "--enable-source-maps"] if _is_compiled_in_a_thread(project) else []
        limits = [f"--max-old-space-size={MEGABYTES_MAX}", "--no-warnings", f"--allow-fs-write={home}", *thread]
        return [node, flag, *allowed, *limits, str(RECORDER), str(reads), str(writes)]

    ended = process.run(
        command,
        _setting(project),
        monitor.answer,
        folder=project.working_folder,
        seconds=seconds,
        seen=_seen(project, folders),
        trusted=project.trusted,
    )
    if ended.message["do"] == "lacking":
        raise CannotContinue(_lacking(project, str(ended.message["message"])))
    if complaint := compiling.refused(ended, project, monitor):
        raise CannotContinue(complaint)
    raise_failure(ended, project, seconds)


def _node(project: PulumiProject) -> tuple[str, tuple[int, int]]:
    """The node on the PATH, and its version."""
    node = on_path("node")
    if not node:
        raise CannotContinue(f"{project.path}: run the program: {project.file} needs node, which is not on the PATH")
    owned_by_the_user(Path(node), project)
    said = process.version_of(node)
    found = re.match(r"v(\d+)\.(\d+)", said)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < OLDEST:
        words = f"{node} is {said.strip() or 'of unknown version'}; node 20 or later is needed to run it in a sandbox"
        raise CannotContinue(f"{project.path}: run the program: {words}")
    return node, version


def _seen(project: PulumiProject, folders: list[Path]) -> set[Path]:
    """The project and its packages."""
    packages = (home_of(package) for folder in folders for package in packages_in(folder))
    return {project.root, *project.packages, *packages, *(one.resolve() for one in folders)}


def _readable(project: PulumiProject, folders: list[Path], home: Path) -> list[Path]:
    """The paths to allow: project, packages, recorder, and files that node and the SDK look for in parent folders.

    Node 20 refuses a folder whose name is a prefix of another allowed path, such as `ts` and `tsconfig.json`: then
    only the folder is allowed. Paths inside of an allowed folder are dropped.
    """
    wanted = {RECORDER, GUARD, home, *_seen(project, folders)}
    allowed = [path for path in sorted(wanted) if not wanted & set(path.parents)]
    upwards = (folder / name for folder in project.working_folder.parents for name in UPWARDS)
    return [*allowed, *(path for path in upwards if not any(str(path).startswith(str(one)) for one in allowed))]


def _setting(project: PulumiProject) -> Body:
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


def _is_compiled(project: PulumiProject) -> bool:
    """Whether the SDK compiles TypeScript, which is the default."""
    return project.runtime_options.get("typescript") is not False


def _is_compiled_in_a_thread(project: PulumiProject) -> bool:
    """Whether it is an ES module, by the `type` in its package.json (`cmd/run/run.ts`)."""
    folder = project.working_folder
    package = next((one for one in (folder, *folder.parents) if (one / "package.json").is_file()), folder)
    return _is_compiled(project) and described(package).get("type") == "module"


def _lacking(project: PulumiProject, why: str) -> str:
    where = f" in {shown(os.path.relpath(project.today))}" if project.today else ""
    return f"{project.path}: run the program: {why}; install its packages{where}: npm install --ignore-scripts"
