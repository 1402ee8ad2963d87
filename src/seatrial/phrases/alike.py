"""Findings that one line of a template causes, as one finding that names its objects."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.model import lazy_re
from seatrial.model.finding import Finding
from seatrial.model.fingerprint import without_names
from seatrial.phrases.headline import fitted
from seatrial.phrases.outcome import named

_OBJECT = lazy_re.compile(r"\b([A-Z]\w+)/[\w.*-]+(?:/[\w.-]+)?")
_COUNTED = lazy_re.compile(r"\b\d+ objects?\b")


def one_for_each_line(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for all that a rule says in the same words about objects of the same line; the first comes first."""
    alike: dict[tuple[object, ...], list[Finding]] = {}
    for number, finding in enumerate(findings):
        line = finding.places[0] if finding.places else number
        alike.setdefault((line, *_said(finding)), []).append(finding)
    return [_merged(*group) for group in alike.values()]


def _said(finding: Finding) -> tuple[object, ...]:
    """What a finding says, whatever its objects are called and how many others they take along."""
    words = finding.message
    for ref in finding.objects:
        for name in (str(ref), f"{ref.namespace}/{ref.name}", ref.name):
            words = words.replace(name, ref.kind)
    words = _COUNTED.sub("objects", _OBJECT.sub(r"\1", words))
    return finding.rule, finding.certainty, finding.damage, finding.removal, finding.engines, words


def _merged(first: Finding, *others: Finding) -> Finding:
    more = [ref for other in others for ref in [ref for ref in other.objects if ref not in first.objects][:1]]
    if not more:
        return fitted(first)
    every = (first, *others)
    merged = replace(
        first,
        details=(*first.details, f"The same line does this to {named(more)}."),
        objects=tuple(dict.fromkeys(ref for finding in every for ref in finding.objects)),
        pointers=tuple(dict.fromkeys(pointer for finding in every for pointer in finding.pointers)),
        places=tuple(dict.fromkeys(place for finding in every for place in finding.places)),
        fingerprint=without_names(first.fingerprint),
    )
    return fitted(merged, f" (and {len(more)} more like it)", f" (and {len(more)} more)")
