"""What is kept of a result: all that reports show, except for the HTML page, and no object.

Timelines hold objects, and objects hold the values of Secrets. Without them an entry has a hundredth of the size.
"""

from __future__ import annotations

from functools import cache

import msgspec
from msgspec.structs import replace

from seatrial.model.result import Played, Result


def kept(result: Result) -> Result:
    """The result with only those events that prove a finding, without objects, and without what writing files needs."""
    wanted = {index for finding in result.findings for index in finding.evidence}

    def played(one: Played) -> Played:
        events = (event for event in one.rehearsal.timeline if event.index in wanted)
        timeline = tuple(replace(event, before=None, after=None) for event in events)
        return replace(one, rehearsal=replace(one.rehearsal, timeline=timeline, otherwise=None))

    return replace(
        result,
        played=tuple(map(played, result.played)),
        continued=tuple(map(played, result.continued)),
        findings=tuple(replace(finding, pointers=()) for finding in result.findings),
        patches=(),
        mended=None,
    )


def encoded(result: Result) -> bytes:
    return msgspec.msgpack.encode(result)


def decoded(data: bytes) -> Result:
    """Raises `msgspec.DecodeError` if it is no result."""
    return _decoder().decode(data)


@cache
def _decoder() -> msgspec.msgpack.Decoder[Result]:
    return msgspec.msgpack.Decoder(Result)
