"""The values of the Secrets of a story: no command prints one, and no format contains one."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator

import msgspec

from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.model.masking import is_secret
from seatrial.model.resource import Body
from seatrial.model.result import Result
from seatrial.report import FORMATS, render
from seatrial.report.page import Page

WORD = re.compile(r".{0,5}|[a-z]{0,11}", re.S)
"""Too short to be searched for, or a word that sentences contain anyway."""


class Planted:
    """Collects what must not appear, and what may: names and the contents of other objects."""

    def __init__(self) -> None:
        self._secret: set[str] = set()
        self._open: list[str] = []

    def add(self, seen: Iterable[ComparedRehearsal]) -> None:
        for one in seen:
            bodies = [resource.body for resource in one.case.all_resources()]
            bodies += [event.after for event in one.rehearsal.timeline if event.after]
            for body in bodies:
                if is_secret(body):
                    self._secret |= set(_values(body))
                else:
                    self._open.append(msgspec.json.encode(body).decode())

    def __bool__(self) -> bool:
        return bool(self._secret)

    def shown_in(self, texts: Iterable[str]) -> list[str]:
        """The values that one of these texts contains."""
        other = "\n".join(self._open)
        secret = [value for value in self._secret if not WORD.fullmatch(value) and value not in other]
        return sorted({value for text in texts for value in secret if value in text})


def formats(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        yield from (render(output, result, Page(verbose=True)) for output in FORMATS)


def _values(body: Body) -> Iterator[str]:
    for field in ("data", "stringData"):
        data = body.get(field)
        for value in map(str, data.values() if isinstance(data, dict) else ()):
            yield value
            try:
                yield base64.b64decode(value, validate=True).decode()
            except (binascii.Error, ValueError):
                yield base64.b64encode(value.encode()).decode()
