"""How a program is told of that did not end well: in its own words, and of all that led there only its own lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seatrial.errors import CannotContinue
from seatrial.resource import Body
from seatrial.sources.pulumi.process import Farewell
from seatrial.sources.pulumi.project import Project

FRAMES_MAX = 6
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
    raise CannotContinue("\n".join(_raised(project, last)))


def _raised(project: Project, last: Body) -> Iterator[str]:
    """The program's own error: its type and words, and of the traceback only its own lines."""
    words = f"{last['type']}: {last['message']}" if last["type"] else str(last["message"])
    if last["type"] == "SystemExit":
        words = f"it called sys.exit({last['message']})"
    frames = [frame for frame in last.get("frames") or () if _is_own(project, str(frame[0]))]
    place = project.path
    if frames:
        file, line, *_ = frames[-1]
        place = f"{project.typed(Path(file).resolve())}:{line}"
    yield f"{place}: run the program: {words}"
    for file, line, name, text in frames[-FRAMES_MAX:]:
        yield f"  {project.typed(Path(file).resolve())}:{line} in {name}: {text}"


def _is_own(project: Project, file: str) -> bool:
    path = Path(file).resolve()
    return path.is_relative_to(project.root) and not OTHERS & set(path.parts)
