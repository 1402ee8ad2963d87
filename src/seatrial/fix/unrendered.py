"""Templates of a chart that its values leave out: what a fix does not see when it is rehearsed."""

from __future__ import annotations

import re
from pathlib import Path

from seatrial.fix.proposal import Problem
from seatrial.helm import hooks
from seatrial.model import lazy_re
from seatrial.model.release import Resource
from seatrial.sources import disk, text_of

TEMPLATES = "/templates/"
_RUNS = lazy_re.compile(r"^kind:\s*(Job|Pod)\b", re.MULTILINE)
_BEFORE = lazy_re.compile(r"""helm\.sh/hook["']?\s*:\s*["']?[^\n]*\bpre-(install|upgrade)\b""")


def hook_left_out(problem: Problem, resource: Resource) -> str:
    """A template with a Job or Pod that runs before the release, and that no case renders; empty if there is none.

    It may need a hook that the rendered objects do not.
    """
    chart, inside, _ = resource.file.rpartition(TEMPLATES)
    folder = Path(chart) / TEMPLATES.strip("/")
    early = any(event.startswith("pre-") for event in hooks.events_of(resource.body))
    if not inside or not early or not disk.is_dir(folder):
        return ""
    rendered = {one.file for case in problem.cases for one in case.all_resources()}
    others = (str(path) for path in sorted(disk.below(folder)) if str(path) not in rendered)
    return next((name for name in others if _runs_before(name)), "")


def _runs_before(file: str) -> bool:
    text = text_of(file)
    return text is not None and bool(_RUNS.search(text.content) and _BEFORE.search(text.content))
