"""Recordings: rehearsals of stories, stored for tests of rules and evidence.

`pytest tests/scenarios --record` renews them. A recording has no managedFields, which no rule reads, and fixed times in
Helm's own records, so that renewing one changes only what was meant.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.helm import records
from seatrial.model.resource import Body, metadata
from seatrial.model.timeline import Event
from seatrial.play import stored

FOLDER = Path(__file__).parents[1] / "unit" / "recorded" / "rehearsals"
MARK = re.compile(r"^<!-- recorded: (?P<name>[a-z0-9-]+), (?P<schedule>lazy|eager) -->\n+```console", re.M)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|[+-]\d\d:\d\d)")
FIXED = "2026-01-01T00:00:00Z"
SECONDS = "1767225600"


def recordings(text: str) -> dict[int, tuple[str, str]]:
    """The name and schedule of each recording of a story, by the end of the word `console` above its command."""
    return {found.end(): (found["name"], found["schedule"]) for found in MARK.finditer(text)}


def arguments(check: tuple[str, ...], schedule: str) -> tuple[str, ...]:
    """The command that stores the first rehearsal of a check."""
    return ("run", *check[1:], "--schedule", schedule, "-o", "json")


def keep(name: str, text: str) -> None:
    """Store what the command wrote as a recording."""
    path = Path("recording.json")
    path.write_text(text)
    found = stored.read(str(path))
    timeline = tuple(_lean(event) for event in found.rehearsal.timeline)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(stored.write(replace(found.rehearsal, timeline=timeline), found.case))


def _lean(event: Event) -> Event:
    return replace(event, before=_lean_body(event.before), after=_lean_body(event.after))


def _lean_body(body: Body | None) -> Body | None:
    if body is None:
        return None
    meta = {key: value for key, value in metadata(body).items() if key != "managedFields"}
    if body.get("type") != records.TYPE or "data" not in body:
        return {**body, "metadata": meta}
    labels = {key: SECONDS if key.endswith("At") else value for key, value in (meta.get("labels") or {}).items()}
    data = {**body["data"], "release": records.encode(_timeless(records.decode(body)))}
    return {**body, "metadata": {**meta, "labels": labels}, "data": data}


def _timeless(value: Any) -> Any:
    match value:
        case dict():
            return {key: _timeless(child) for key, child in value.items()}
        case list():
            return [_timeless(child) for child in value]
        case str() if TIME.fullmatch(value):
            return FIXED
    return value
