"""Errors of a program that failed: its own message, and the frames of its own files only."""

from __future__ import annotations

from pathlib import Path

from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body
from seatrial.sources.pulumi.process import ProgramExit
from seatrial.sources.pulumi.project import PulumiProject

FRAMES_MAX = 6
NOT_CONFIGURED = lazy_re.compile(r"^Missing required configuration variable '([^']+)'")
OTHERS = {"site-packages", "node_modules"}
"""Folders inside of a project that contain third-party code."""


def raise_failure(ended: ProgramExit, project: PulumiProject, seconds: float) -> None:
    """Raise the error of a program that failed; do nothing if it ended normally."""
    last = ended.message
    if last["do"] == "ended":
        return
    if ended.late:
        raise CannotContinue(f"{project.path}: run the program: it did not end within {seconds:g} seconds")
    if last["do"] == "gone":
        said = f": {ended.said.splitlines()[-1]}" if ended.said else ""
        raise CannotContinue(f"{project.path}: run the program: it exited before it was done{said}")
    frames = _own_frames(project, last)
    place = frames[-1].partition(" in ")[0] if frames else project.path
    lines = (f"  {frame}" for frame in frames[-FRAMES_MAX:])
    raise CannotContinue("\n".join((f"{place}: run the program: {words_of(last, project)}", *lines)))


def words_of(last: Body, project: PulumiProject) -> str:
    """The error of the program: its type and message; for missing configuration, how to set it."""
    message = str(last["message"])
    if last["type"] == "SystemExit":
        return f"it called sys.exit({message})"
    if lacking := NOT_CONFIGURED.search(message):
        key, file = lacking[1], project.typed(project.folder / f"Pulumi.{project.stack}.yaml")
        return f"it needs the configuration value {key}, which is not set; pass --set {key}=VALUE, or set it in {file}"
    return f"{last['type']}: {message}" if last["type"] else message


def _own_frames(project: PulumiProject, last: Body) -> list[str]:
    """The frames of the traceback that are in the program's own files."""
    frames = [frame for frame in last.get("frames") or () if _is_own(project, str(frame[0]))]
    return [f"{project.typed(Path(file).resolve())}:{line} in {name}: {text}" for file, line, name, text in frames]


def _is_own(project: PulumiProject, file: str) -> bool:
    """Python's own frames have names such as `<frozen runpy>`, which would resolve to the current folder."""
    if file.startswith("<"):
        return False
    path = Path(file).resolve()
    return path.is_relative_to(project.root) and not OTHERS & set(path.parts)
