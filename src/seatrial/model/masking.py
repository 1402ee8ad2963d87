"""Values of Secrets, replaced by their lengths in everything that is shown or stored."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.engine import EngineId
from seatrial.model.finding import FileEdit
from seatrial.model.refusal import NO_FAILURE
from seatrial.model.release import RECORD_TYPE, Case
from seatrial.model.resource import Body, Origin, Place, Ref, without_mark, written
from seatrial.model.result import Patch
from seatrial.model.timeline import Event, Rehearsal

VALUES_MAX = 20_000
KEPT = (Ref, Place, EngineId, Origin, FileEdit, Patch)
"""Names, and what is written to the files of the user."""
MARKS = ("-----BEGIN CERTIFICATE", "-----BEGIN ", "$2a$", "$2b$", "$2y$")
"""What rules recognize a certificate and a salted hash by."""
FIELDS = ("data", "stringData")
PEM_SHOWN = "(a certificate or key)"
PEM = lazy_re.compile(r"-----BEGIN [\s\S]*?-----END [A-Z ]+-----|LS0tLS1CRUdJTi[\w+/=]*")
"""Certificates and keys, as they are and in base64."""
_WORD = lazy_re.compile(r".{0,5}|[a-z]{0,11}", re.S)
"""Words like `admin` and `certificate`: they are masked where they are the value of a key, not in sentences."""
_PLACEHOLDER = lazy_re.compile(r"\bvalue \d+, \d+ characters$")
_PAIR = lazy_re.compile(r"""^(?P<before>\s*(?:-\s+)?["']?(?P<key>[\w.\-/]+)["']?\s*:\s*)(?P<value>\S.*?)\s*$""")


class Mask:
    """The values of the Secrets of a check. The pattern is compiled once."""

    def __init__(self, secrets: Iterable[Body], names: Iterable[str] = ()) -> None:
        self._pairs: set[tuple[str, str]] = set()
        for body in secrets:
            self._pairs |= {*_pairs(body), *_pairs(written(body) or {})}
        plain = {"", *names}
        known = {form for _, value in self._pairs for form in _forms(value) if not _WORD.fullmatch(form)} - plain
        longest = sorted(known, key=lambda value: (-len(value), value))[:VALUES_MAX]
        self._pattern = re.compile("|".join(map(_bounded, longest))) if longest else None

    def text(self, text: str) -> str:
        """A sentence without values of Secrets."""
        return self._pattern.sub(lambda found: hidden(found[0]), text) if self._pattern else text

    def line(self, text: str) -> str:
        """A line of a file: also the value of a key of a Secret, however short it is."""
        found = _PAIR.match(text)
        if found and (found["key"], found["value"].strip("\"'")) in self._pairs:
            return f"{found['before']}{hidden(found['value'])}"
        return self.text(text)

    def lines(self, text: str) -> frozenset[str]:
        """The lines of a file that would not be shown as they are."""
        return frozenset(line for line in text.split("\n") if self.line(line) != line)

    def whole(self, value: Any) -> Any:
        """Plain data without values of Secrets in its texts. Names of objects and places stay, and so do bodies."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Event) and value.refusal is None and value.failure is NO_FAILURE:  # As most of them.
            shown = self.text(value.message)
            return value if shown == value.message else replace(value, message=shown)
        if isinstance(value, tuple | list):
            found = [self.whole(one) for one in value]
            return value if all(map(_same, found, value)) else type(value)(found)
        if isinstance(value, dict):
            return {key: self.whole(one) for key, one in value.items()}
        if not isinstance(value, Struct) or isinstance(value, KEPT):
            return value
        fields = ("message", "refusal", "failure") if isinstance(value, Event) else value.__struct_fields__
        changed = {name: self.whole(getattr(value, name)) for name in fields}
        changed = {name: new for name, new in changed.items() if new is not getattr(value, name)}
        return replace(value, **changed) if changed else value


def mask_of(seen: Iterable[tuple[Rehearsal, Case]]) -> Mask:
    """The mask for all Secrets that rehearsals and their releases contain."""
    secrets: list[Body] = []
    names: set[str] = set()
    for rehearsal, case in seen:
        timeline = (*rehearsal.timeline, *(rehearsal.otherwise.timeline if rehearsal.otherwise else ()))
        secrets += (one.body for one in case.all_resources() if is_secret(one.body))
        secrets += (event.after for event in timeline if event.after and _has_values(event.after))
        names |= {name for event in timeline for name in (event.object.name, event.object.namespace, event.object.kind)}
    return Mask(secrets, names)


def _has_values(body: Body) -> bool:
    """Whether it is a Secret whose values may be shown; the blob of a Helm release is large and never is."""
    return is_secret(body) and body.get("type") != RECORD_TYPE


def hidden(value: str) -> str:
    """What is shown in place of a value. A certificate that is generated has another length in every run."""
    return PEM_SHOWN if PEM.match(value.strip("\"' ")) else f"({len(value)} characters)"


def is_secret(body: Any) -> bool:
    return isinstance(body, dict) and body.get("kind") == "Secret" and body.get("apiVersion") in ("v1", None)


def without_secrets(data: Any) -> Any:
    """Plain data with a placeholder for every value of a Secret: the same for the same value, and of the same sort."""
    numbers: dict[str, int] = {}

    def placeholder(text: str) -> str:
        if _PLACEHOLDER.search(text):
            return text  # It was stored before.
        number = numbers.setdefault(text, len(numbers) + 1)
        sort = next((mark for mark in MARKS if mark in text), "")
        return f"{sort} value {number}, {len(text)} characters".strip()

    def visit(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [visit(one) for one in value]
        if not isinstance(value, dict):
            return value
        if not is_secret(value) and "stringData" not in value:
            return {key: visit(one) for key, one in value.items()}
        mask, body = Mask([value]), without_mark(value)
        return {key: keys_of(one, key) if key in FIELDS else mask.whole(one) for key, one in body.items()}

    def keys_of(data: Any, field: str) -> Any:
        return {key: kept(one, field) for key, one in data.items()} if isinstance(data, dict) else data

    def kept(value: Any, field: str) -> Any:
        if isinstance(value, list):
            return [kept(one, field) for one in value]
        if isinstance(value, dict):  # Not valid, but a chart may have it.
            return {placeholder(key): kept(one, field) for key, one in value.items()}
        if not isinstance(value, str):
            return value
        text = _decoded(value) if field == "data" else value
        return base64.b64encode(placeholder(text).encode()).decode() if field == "data" else placeholder(text)

    return visit(data)


def _pairs(body: Body) -> Iterator[tuple[str, str]]:
    for field in FIELDS:
        data = body.get(field)
        for key, value in data.items() if isinstance(data, dict) else ():
            yield from ((str(key), text) for text in _texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield str(key)
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def _forms(value: str) -> Iterator[str]:
    """A value as it may be written: as it is, in base64, decoded, and line by line."""
    for text in (value, _decoded(value)):
        yield text
        yield base64.b64encode(text.encode()).decode()
        yield from (line.strip() for line in text.splitlines())


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""


def _bounded(value: str) -> str:
    """Not in the middle of a longer word: `postgres` is not masked in `postgres-0`."""
    start = r"(?<![\w-])" if re.match(r"\w", value) else ""
    end = r"(?![\w-])" if re.search(r"\w$", value) else ""
    return f"{start}{re.escape(value)}{end}"


def _same(one: object, other: object) -> bool:
    return one is other
