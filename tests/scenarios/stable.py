"""Output as stories show it: without the event numbers, generated names and uids that change with unrelated changes."""

from __future__ import annotations

import re

LETTERS = "[bcdfghjklmnpqrstvwxz2456789]"
"""The alphabet of generated names in Kubernetes."""
UID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
GENERATED = re.compile(
    rf"(?<![\w.-])(?P<name>[a-z0-9.-]*?-)(?P<first>{UID}|{LETTERS}{{5,10}})(?:-(?P<second>{LETTERS}{{5}}))?(?!-?\w)"
)
NUMBERED = re.compile(r"^(?P<indent> {7}| {3})(?P<number> *\d+  )(?=[ a-z])")
"""A row of events: in a finding it is indented by seven spaces, in a timeline by three."""
HIDDEN = re.compile(r"^   \d+ (?=(?:reads, updates and no-ops|read, update or no-op) not shown)", re.M)
REAL = re.compile(r"(?<=@)[\w.+-]+(?= \(real\))")
"""The version of a binary of the user."""
IN_JSON = re.compile(r'^(?P<before> +(?:"index": )?)\d+(?=,?$)', re.M)
"""The number of an event in the JSON report: in `events`, or alone in its line in `evidence`."""
COUNTED = re.compile(r"(?<=\bsteps| step) · \d+ events?$", re.M)


class Stable:
    """The output of one command. A generated part becomes `aaaaa`, the next one of the same name `bbbbb`."""

    def __init__(self) -> None:
        self._seen: dict[str, list[str]] = {}

    def shown(self, text: str) -> str:
        text = COUNTED.sub("", HIDDEN.sub("   ", _unnumbered(text)))
        text = REAL.sub("VERSION", IN_JSON.sub(r"\g<before>0", text))
        return GENERATED.sub(self._renamed, text)

    def _renamed(self, found: re.Match[str]) -> str:
        name, first, second = found["name"], found["first"], found["second"]
        parts = [self._letters(name, first), *([self._letters(name + first, second)] if second else [])]
        return name + "-".join(parts)

    def _letters(self, name: str, part: str) -> str:
        seen = self._seen.setdefault(name, [])
        if part not in seen:
            seen.append(part)
        return re.sub(r"[^-]", chr(ord("a") + seen.index(part) % 26), part)


def _unnumbered(text: str) -> str:
    """Without the numbers of events. The lines below a row, which continue it, move with it."""
    lines = []
    margin, width = "", 0
    for line in text.split("\n"):
        if row := NUMBERED.match(line):
            margin, width = row["indent"], len(row["number"])
        elif not line.startswith(" " * (len(margin) + width)):
            width = 0
        lines.append(line if not width else margin + line[len(margin) + width :])
    return "\n".join(lines)
