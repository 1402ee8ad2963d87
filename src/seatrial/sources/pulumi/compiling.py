"""Errors of the TypeScript compiler, shortened. Pulumi does not run a program that does not compile."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.model import lazy_re
from seatrial.sources.pulumi.failures import words_of
from seatrial.sources.pulumi.monitor import Monitor
from seatrial.sources.pulumi.process import ProgramExit
from seatrial.sources.pulumi.project import PulumiProject

ENVIRONMENT = {"TS_NODE_LOG_ERROR": "true"}
"""Lets ts-node continue after an error, so that all errors are reported, and what the program would do."""
ERRORS_MAX = 6
ERROR = lazy_re.compile(
    r"^(?P<file>\S.*?)\((?P<line>\d+),\d+\): error (?P<words>TS\d+: .*)$(?P<more>(?:\n +.*)*)", re.M
)
COLOURS = lazy_re.compile(r"\x1b\[\d*m")


def refused(ended: ProgramExit, project: PulumiProject, monitor: Monitor) -> str:
    """The errors of a program that does not compile, as one message; empty if it compiles."""
    thrown = ended.message if ended.message.get("type") == "TSError" else {}
    text = COLOURS.sub("", f"{ended.said}\n{thrown.get('message', '')}")
    errors = list(dict.fromkeys(_error(found, project) for found in ERROR.finditer(text)))
    if not errors:
        return ""
    place, words = errors[0]
    more = [f"{len(errors) - ERRORS_MAX} more errors"] if len(errors) > ERRORS_MAX else []
    lines = [f"{place}: compile the program: {words}"]
    lines += [f"  {place}: {words}" for place, words in errors[1:ERRORS_MAX]]
    lines += [f"  {words}" for words in (*more, *([] if thrown else _otherwise(ended, project, monitor)))]
    return "\n".join(lines)


def _error(found: re.Match[str], project: PulumiProject) -> tuple[str, str]:
    """A place and its error; the last line of the compiler's explanation is the actual cause."""
    place = f"{project.typed(project.working_folder / found['file'])}:{found['line']}"
    explained = found["more"].strip().splitlines()
    return place, " ".join((found["words"], *(line.strip() for line in explained[-1:])))


def _otherwise(ended: ProgramExit, project: PulumiProject, monitor: Monitor) -> Iterator[str]:
    """What the program does without type checking."""
    if ended.message["do"] == "ended":
        yield f"without type checking it registers {len(monitor.program().registrations)} resources"
    elif ended.message["do"] == "raised" and not ended.late:
        yield f"without type checking it fails too: {words_of(ended.message, project)}"
