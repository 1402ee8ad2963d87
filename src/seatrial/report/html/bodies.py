"""Objects as YAML, and what a request changed in them as a diff. Values of Secrets are replaced by their lengths."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from difflib import unified_diff
from typing import Any

import msgspec
import yaml

from seatrial.model.masking import FIELDS, PEM, PEM_SHOWN, Mask, hidden, is_secret
from seatrial.model.release import RECORD_TYPE
from seatrial.model.resource import Body
from seatrial.model.timeline import Event, Rehearsal
from seatrial.report.html.changes import KEPT_BY_THE_SERVER

BODY_MAX = 8_000
"""Characters of one object. What is larger is a CRD or a dashboard."""
ALL_MAX = 6_000_000
"""Characters of all objects in one page; the first ones are shown."""
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Bodies:
    """The objects that a page shows. Each text is made once: rehearsals repeat each other."""

    def __init__(self, rehearsals: Iterable[Rehearsal]) -> None:
        timelines = [rehearsal.timeline for rehearsal in rehearsals]
        bodies = (body for timeline in timelines for event in timeline for body in (event.before, event.after))
        secrets = (body for body in bodies if is_secret(body) and body is not None and not _is_record(body))
        names = (name for one in timelines for event in one for name in (event.object.name, event.object.namespace))
        self._mask = Mask(secrets, names)
        self._texts: dict[bytes, str] = {}
        self._room = ALL_MAX

    def shown(self, event: Event) -> str:
        """The new object, or the diff of a changed one; empty for what controllers keep up to date, and for reads."""
        if event.cause is not None or event.after is None or _is_record(event.after):
            return ""
        if event.effect == "created":
            return self._taken(self._text(event.after))
        if event.effect == "changed" and event.before is not None:
            before, after = (self._text(body).splitlines() for body in (event.before, event.after))
            _, _, *lines = [*unified_diff(before, after, n=2, lineterm="")] or ["", ""]
            return self._taken("\n".join(lines))
        return ""

    def _text(self, body: Body) -> str:
        own = _own(body)
        key = msgspec.json.encode(own)
        if key not in self._texts:
            text = yaml.dump(_hidden(own), Dumper=_DUMPER, sort_keys=False, width=110, allow_unicode=True)
            text = "\n".join(map(self._mask.line, PEM.sub(PEM_SHOWN, text).splitlines()))
            self._texts[key] = text if len(text) <= BODY_MAX else f"{text[:BODY_MAX]}\n... and more"
        return self._texts[key]

    def _taken(self, text: str) -> str:
        """A text, as long as the page has room."""
        self._room -= len(text)
        return text if self._room >= 0 else ""


def _own(body: Body) -> Body:
    """The object without what the API server writes into every one."""
    return {key: _part(value, (key,)) for key, value in body.items() if (key,) not in KEPT_BY_THE_SERVER}


def _part(value: Any, path: tuple[str, ...]) -> Any:
    if not isinstance(value, Mapping) or path[0] != "metadata":
        return value
    return {key: _part(one, (*path, key)) for key, one in value.items() if (*path, key) not in KEPT_BY_THE_SERVER}


def _hidden(body: Body) -> Body:
    """A Secret with the lengths of its values; base64 is not a secret's length."""
    if not is_secret(body):
        return body
    return {key: _lengths(value, key) if key in FIELDS else value for key, value in body.items()}


def _lengths(values: Any, field: str) -> Any:
    if not isinstance(values, Mapping):
        return hidden(str(values))
    return {key: hidden(_decoded(str(value)) if field == "data" else str(value)) for key, value in values.items()}


def _decoded(value: str) -> str:
    try:
        return b64decode(value, validate=True).decode(errors="replace")
    except ValueError:
        return value


def _is_record(body: Body) -> bool:
    """The record of a Helm release: a blob."""
    return body.get("type") == RECORD_TYPE
