"""What the TypeScript compiler has against a program, told shortly: Pulumi does not begin to run such a one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.sources.pulumi.complaints import words_of
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.process import Farewell
from seatrial.sources.pulumi.project import Project

ENVIRONMENT = {"TS_NODE_LOG_ERROR": "true"}
"""Has ts-node go on with what does not compile, so that all of it is heard of, and what would come of it."""
ERRORS_MAX = 6
ERROR = re.compile(r"^(?P<file>\S.*?)\((?P<line>\d+),\d+\): error (?P<words>TS\d+: .*)$(?P<more>(?:\n +.*)*)", re.M)
COLOURS = re.compile(r"\x1b\[\d*m")


def refused(farewell: Farewell, project: Project, monitor: Monitor) -> str:
    """The complaint about a program that does not compile; empty where it does."""
    thrown = farewell.message if farewell.message.get("type") == "TSError" else {}
    text = COLOURS.sub("", f"{farewell.said}\n{thrown.get('message', '')}")
    errors = list(dict.fromkeys(_told(found, project) for found in ERROR.finditer(text)))
    if not errors:
        return ""
    place, words = errors[0]
    more = [f"{len(errors) - ERRORS_MAX} more errors"] if len(errors) > ERRORS_MAX else []
    lines = [f"{place}: compile the program: {words}"]
    lines += [f"  {place}: {words}" for place, words in errors[1:ERRORS_MAX]]
    lines += [f"  {words}" for words in (*more, *([] if thrown else _otherwise(farewell, project, monitor)))]
    return "\n".join(lines)


def _told(found: re.Match[str], project: Project) -> tuple[str, str]:
    """A place and its error; of all that the compiler explains, the last is what is wrong."""
    place = f"{project.typed(project.working_folder / found['file'])}:{found['line']}"
    explained = found["more"].strip().splitlines()
    return place, " ".join((found["words"], *(line.strip() for line in explained[-1:])))


def _otherwise(farewell: Farewell, project: Project, monitor: Monitor) -> Iterator[str]:
    """What becomes of the program where its types are not checked."""
    if farewell.message["do"] == "ended":
        yield f"with its types left unchecked it registers {len(monitor.program().registrations)} resources"
    elif farewell.message["do"] == "raised" and not farewell.late:
        yield f"with its types left unchecked it fails as well: {words_of(farewell.message, project)}"
