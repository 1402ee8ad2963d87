"""A field of pods that a container does not have goes: in a manifest or template, or in values of a Pulumi program.

What is misspelled is left to the user: removing it would hide that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.fix.calls import call_at, is_program
from seatrial.fix.lines import without_entry
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit
from seatrial.model.resource import Path, Place, Pointer, Ref
from seatrial.sources import text_of
from seatrial.text.source import Edit, Span

UNKNOWN = "has the unknown field"
OF_PODS = ("fsGroup", "fsGroupChangePolicy", "supplementalGroups", "supplementalGroupsPolicy", "sysctls")
"""Fields that only the securityContext of a pod has: `PodSecurityContext` in `k8s.io/api/core/v1`."""
UNSAFE = "nothing replaces it: it belongs into the securityContext of the pod"


def propose(problem: Problem) -> Iterator[Proposal]:
    finding = problem.finding
    resource, pointer = problem.pointed_at(), next(iter(finding.pointers), None)
    if UNKNOWN not in " ".join((finding.message, *finding.details)) or not isinstance(pointer, Pointer):
        return
    place = _chart(problem, finding.objects[0])
    if resource is None or not pointer.path or pointer.path[-1] not in OF_PODS:
        return
    change = without_line(place, pointer.path) if place else without_entry(resource, pointer.path)
    where = f" at {place}" if place else ""
    yield Proposal(f"remove {pointer.path[-1]} of {resource.ref}{where}", change, UNSAFE)


def _chart(problem: Problem, ref: Ref) -> Place | None:
    """Where a program creates the chart that contains an object."""
    for release in problem.releases():
        every = release.program.registrations if release.program else ()
        own = next((one for one in every if one.ref == ref), None)
        parent = next((one for one in every if own and one.urn == own.parent), None)
        if parent is not None and parent.place is not None and is_program(parent.place.file):
            return parent.place
    return None


def without_line(place: Place, path: Path) -> Edits | ByHand:
    """The only line of a call that has this key goes."""
    text = text_of(place.file)
    call = call_at(text, place.line) if text else None
    if text is None or call is None or not call.arguments:
        return ByHand(f"{place} does not create one resource")
    key = re.escape(str(path[-1]))
    line = re.compile(rf"""^[ \t]*["']?{key}["']?[ ]*:[^\n{{}}\[\]()]*\n""", re.M)
    found = list(line.finditer(text.content, call.opens, call.arguments[-1].whole.end))
    if len(found) != 1:
        return ByHand(f"{place} does not have {path[-1]} on one line of its own")
    return (TextEdit(text, Edit(Span(*found[0].span()), "")),)


FIXER = Fixer(("object-is-invalid",), propose)
