"""Edits as unified diffs that `git apply` and `patch -p1` accept. Reads and writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import unified_diff
from pathlib import Path

from seatrial.model.result import Patch

NOTHING = "/dev/null"
"""The other side of a file that is added or removed."""
CONTEXT_LINES = 3
"""Fewer where a line has the value of a Secret. Without any, `git apply` needs --unidiff-zero."""
_NO_NEWLINE = "\n\\ No newline at end of file\n"


def diff_of(patches: Iterable[Patch]) -> str:
    """All patches as one diff, with paths relative to the working directory where that is possible."""
    return "".join(_diff(patch) for patch in patches)


def _diff(patch: Patch) -> str:
    named = _relative(patch.file)
    after = patch.after if patch.after.strip() else ""
    old, new = f"a/{named}" if patch.before else NOTHING, f"b/{named}" if after else NOTHING
    files = _lines(patch.before), _lines(after)
    for context in range(CONTEXT_LINES, -1, -1):
        lines = list(unified_diff(*files, old, new, n=context))
        if not any(line[0] == " " and line[1:].rstrip("\n") in patch.secret for line in lines):
            break
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)


def _lines(text: str) -> list[str]:
    """Only a newline ends a line for git, unlike `str.splitlines`."""
    parts = text.split("\n")
    return [*(f"{part}\n" for part in parts[:-1]), *parts[-1:]] if parts[-1] else [f"{part}\n" for part in parts[:-1]]


def _relative(file: str) -> str:
    if not Path(file).is_absolute():
        return os.path.normpath(file)
    inside = os.path.relpath(file)
    return inside if not inside.startswith("..") else file.lstrip("/")
