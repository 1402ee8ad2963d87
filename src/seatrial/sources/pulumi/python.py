"""Pulumi programs in Python: run with the interpreter of the project, against our resource monitor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.sources.files import project_of
from seatrial.sources.pulumi import process
from seatrial.sources.pulumi.failures import raise_failure
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import PulumiProject, owned_by_the_user

RECORDER = Path(__file__).with_name("recorder.py")
USUAL_VENVS = (".venv", "venv")
SDK = "lib/python*/site-packages/pulumi"
SECONDS_MAX = 60.0


def run(project: PulumiProject, monitor: Monitor, seconds: float = SECONDS_MAX) -> None:
    """Run a program until all its resources are registered; its exceptions are reported with its own frames."""
    interpreter = interpreter_of(project)

    def command(reads: int, writes: int, home: str) -> list[str]:
        return [str(interpreter), "-s", "-B", str(RECORDER), str(reads), str(writes)]

    opened = _opened(project, interpreter)
    ended = process.run(
        command,
        _setting(project, opened),
        monitor.answer,
        folder=project.working_folder,
        seconds=seconds,
        seen=opened,
        trusted=project.trusted,
    )
    if ended.message["do"] == "lacking":
        raise CannotContinue(_lacking(project, interpreter, str(ended.message["message"])))
    if ended.message.get("type") == "ModuleNotFoundError":
        where = f"it ran with {interpreter}; set virtualenv in {project.file} to use another"
        ended = replace(ended, message={**ended.message, "message": f"{ended.message['message']}; {where}"})
    raise_failure(ended, project, seconds)


def interpreter_of(project: PulumiProject) -> Path:
    """The Python of the project's virtualenv, or of one in its folder or above; else our own.

    uv and Poetry put the virtualenv of a workspace in a parent folder; one without Pulumi belongs to something else.
    """
    named = project.runtime_options.get("virtualenv")
    for folder in (str(named),) if named else USUAL_VENVS:
        for beside in _around(project):
            found = beside / folder / "bin" / "python"
            own = beside in (project.folder, project.today) or any((beside / folder).glob(SDK))
            if found.exists() and own:
                return owned_by_the_user(found, project)
    return Path(sys.executable)


def _around(project: PulumiProject) -> Iterator[Path]:
    """The folder of the project and its parents up to the root; for a commit also those of the working tree."""
    for here, root in ((project.folder, project.root), (project.today, project_of(project.today or project.folder))):
        if here is not None:
            yield from (one for one in (here, *here.parents) if one.is_relative_to(root))


def _opened(project: PulumiProject, interpreter: Path) -> list[Path]:
    """The project, and the installation of Python."""
    pythons = (interpreter.parent.parent, interpreter.resolve().parent.parent, Path(sys.prefix), Path(sys.base_prefix))
    return sorted({project.root, *pythons})


def _setting(project: PulumiProject, opened: list[Path]) -> Body:
    """Closed are the user's home, except for the opened paths, and /proc."""
    return {
        "project": project.name,
        "stack": project.stack,
        "config": project.config,
        "secrets": list(project.secrets),
        "program": str(project.program),
        "closed": [str(Path.home().resolve()), "/proc"],
        "open": [str(path) for path in opened],
    }


def _lacking(project: PulumiProject, interpreter: Path, message: str) -> str:
    wanted = "pip install pulumi pulumi-kubernetes"
    return (
        f"{project.path}: run the program: {interpreter} has no Pulumi ({message}); create the virtualenv that "
        f"{project.file} names, or install Pulumi there: {wanted}"
    )
