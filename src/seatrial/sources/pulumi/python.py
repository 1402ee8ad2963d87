"""Pulumi programs in Python: run with the interpreter that their folder names, against our end of the monitor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.sources.files import project_of
from seatrial.sources.pulumi import process
from seatrial.sources.pulumi.complaints import complain
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import Project

RECORDER = Path(__file__).with_name("recorder.py")
USUAL_VENVS = (".venv", "venv")
SDK = "lib/python*/site-packages/pulumi"
SECONDS_MAX = 60.0


def run(project: Project, monitor: Monitor, seconds: float = SECONDS_MAX) -> None:
    """Have a program register all that it wants; what it raises is told with its own lines."""
    interpreter = _interpreter(project)

    def command(reads: int, writes: int, home: str) -> list[str]:
        return [str(interpreter), "-s", "-B", str(RECORDER), str(reads), str(writes)]

    opened = _opened(project, interpreter)
    farewell = process.run(
        command,
        _setting(project, opened),
        monitor.answer,
        folder=project.working_folder,
        seconds=seconds,
        seen=opened,
    )
    if farewell.message["do"] == "lacking":
        raise CannotContinue(_lacking(project, interpreter, str(farewell.message["message"])))
    if farewell.message.get("type") == "ModuleNotFoundError":
        where = f"it was run with {interpreter}, unless virtualenv in {project.file} names another"
        farewell = replace(farewell, message={**farewell.message, "message": f"{farewell.message['message']}; {where}"})
    complain(farewell, project, seconds)


def _interpreter(project: Project) -> Path:
    """That of the virtualenv which the project names, or which lies beside it or above in its repository; else our own.

    Above is where uv and Poetry have the one of a workspace; without Pulumi it is that of something else.
    """
    named = project.runtime_options.get("virtualenv")
    for folder in (str(named),) if named else USUAL_VENVS:
        for beside in _around(project):
            found = beside / folder / "bin" / "python"
            own = beside in (project.folder, project.today) or any((beside / folder).glob(SDK))
            if found.exists() and own:
                return found
    return Path(sys.executable)


def _around(project: Project) -> Iterator[Path]:
    """The folder of the project and those above that belong to it; of a commit also where people work today."""
    for here, root in ((project.folder, project.root), (project.today, project_of(project.today or project.folder))):
        if here is not None:
            yield from (one for one in (here, *here.parents) if one.is_relative_to(root))


def _opened(project: Project, interpreter: Path) -> list[Path]:
    """The project, and what Python itself is made of."""
    pythons = (interpreter.parent.parent, interpreter.resolve().parent.parent, Path(sys.prefix), Path(sys.base_prefix))
    return sorted({project.root, *pythons})


def _setting(project: Project, opened: list[Path]) -> Body:
    """Closed are the user's home, but for what is opened, and other processes."""
    return {
        "project": project.name,
        "stack": project.stack,
        "config": project.config,
        "secrets": list(project.secrets),
        "program": str(project.program),
        "closed": [str(Path.home().resolve()), "/proc"],
        "open": [str(path) for path in opened],
    }


def _lacking(project: Project, interpreter: Path, message: str) -> str:
    wanted = "pip install pulumi pulumi-kubernetes"
    return (
        f"{project.path}: run the program: {interpreter} has no Pulumi ({message}); make the virtualenv that "
        f"{project.file} names, or install it there: {wanted}"
    )
