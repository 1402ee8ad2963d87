"""How a program is told of that did not end well: in its own words, and of all that led there only its own lines."""

from __future__ import annotations

import re
from pathlib import Path

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.sources.pulumi.process import Farewell
from seatrial.sources.pulumi.project import Project

FRAMES_MAX = 6
NOT_CONFIGURED = re.compile(r"^Missing required configuration variable '([^']+)'")
OTHERS = {"site-packages", "node_modules"}
"""Folders inside of a project that hold what others wrote."""


def complain(farewell: Farewell, project: Project, seconds: float) -> None:
    """Raise what a program has to be told of; nothing where it ended as it should."""
    last = farewell.message
    if last["do"] == "ended":
        return
    if farewell.late:
        raise CannotContinue(f"{project.path}: run the program: it did not end within {seconds:g} seconds")
    if last["do"] == "gone":
        said = f": {farewell.said.splitlines()[-1]}" if farewell.said else ""
        raise CannotContinue(f"{project.path}: run the program: it ended on its own before it was done{said}")
    frames = _own_frames(project, last)
    place = frames[-1].partition(" in ")[0] if frames else project.path
    lines = (f"  {frame}" for frame in frames[-FRAMES_MAX:])
    raise CannotContinue("\n".join((f"{place}: run the program: {words_of(last, project)}", *lines)))


def words_of(last: Body, project: Project) -> str:
    """The program's own error: its type and words; in ours where it lacks what can be given to it."""
    message = str(last["message"])
    if last["type"] == "SystemExit":
        return f"it called sys.exit({message})"
    if lacking := NOT_CONFIGURED.search(message):
        key, file = lacking[1], project.typed(project.folder / f"Pulumi.{project.stack}.yaml")
        return f"it asks for {key}, which is not configured; give it with --set {key}=VALUE, or in {file}"
    return f"{last['type']}: {message}" if last["type"] else message


def _own_frames(project: Project, last: Body) -> list[str]:
    """Of the traceback, the lines that are the program's own."""
    frames = [frame for frame in last.get("frames") or () if _is_own(project, str(frame[0]))]
    return [f"{project.typed(Path(file).resolve())}:{line} in {name}: {text}" for file, line, name, text in frames]


def _is_own(project: Project, file: str) -> bool:
    """Python's own frames have names such as `<frozen runpy>`, which would be files of the folder that we are in."""
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    return path.is_relative_to(project.root) and not OTHERS & set(path.parts)
