"""Pulumi programs in Python: run with the interpreter that their folder names, against our end of the monitor."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import CannotContinue
from seatrial.resource import Body
from seatrial.sources.pulumi import process
from seatrial.sources.pulumi.complaints import complain
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.project import Project

RECORDER = Path(__file__).with_name("recorder.py")
USUAL_VENVS = (".venv", "venv")
SECONDS_MAX = 60.0


def run(project: Project, monitor: Monitor, seconds: float = SECONDS_MAX) -> None:
    """Have a program register all that it wants; what it raises is told with its own lines."""
    interpreter = _interpreter(project)

    def command(reads: int, writes: int, home: str) -> list[str]:
        return [str(interpreter), "-s", "-B", str(RECORDER), str(reads), str(writes)]

    setting, folder = _setting(project, interpreter), project.working_folder
    farewell = process.run(command, setting, monitor.answer, folder=folder, seconds=seconds)
    if farewell.message["do"] == "lacking":
        raise CannotContinue(_lacking(project, interpreter, str(farewell.message["message"])))
    if farewell.message.get("type") == "ModuleNotFoundError":
        where = f"it was run with {interpreter}, unless virtualenv in {project.file} names another"
        farewell = replace(farewell, message={**farewell.message, "message": f"{farewell.message['message']}; {where}"})
    complain(farewell, project, seconds)


def _interpreter(project: Project) -> Path:
    """That of the virtualenv which the project names, or which lies beside it; else our own."""
    named = project.runtime_options.get("virtualenv")
    for beside in filter(None, (project.folder, project.today)):
        for folder in (str(named),) if named else USUAL_VENVS:
            found = beside / folder / "bin" / "python"
            if found.exists():
                return found
    return Path(sys.executable)


def _setting(project: Project, interpreter: Path) -> Body:
    """Closed are the user's home, but for the project and for what Python itself is made of, and other processes."""
    opened = {project.root, interpreter.parent.parent, interpreter.resolve().parent.parent}
    return {
        "project": project.name,
        "stack": project.stack,
        "config": project.config,
        "secrets": list(project.secrets),
        "program": str(project.program),
        "closed": [str(Path.home().resolve()), "/proc"],
        "open": sorted({str(path) for path in opened} | {sys.prefix, sys.base_prefix}),
    }


def _lacking(project: Project, interpreter: Path, message: str) -> str:
    wanted = "pip install pulumi pulumi-kubernetes"
    return (
        f"{project.path}: run the program: {interpreter} has no Pulumi ({message}); make the virtualenv that "
        f"{project.file} names, or install it there: {wanted}"
    )
