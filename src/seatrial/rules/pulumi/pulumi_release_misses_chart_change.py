"""The templates of a chart have changed, and Pulumi leaves its Release as it is.

## What happens
Pulumi asks what has changed in the inputs of a resource. Those of a `helm.v3.Release` are the path or name of its
chart, its values, and the version that the chart gives itself in Chart.yaml. What the chart renders to is none of them.
Where somebody changes the templates of a chart that lies beside the program, or the values in its values.yaml, and
nothing else, all inputs are as they were: `pulumi up` says `unchanged`, and deploys nothing. The change comes with the
next version of the chart, or with the next value that somebody sets, in an up that is about something else.

A `v3.Chart` and a `v4.Chart` are rendered with every up, and have no such trouble.

## Example
```yaml
# chart/Chart.yaml: the same before and after chart/templates/settings.yaml was changed
name: shop
version: 1.0.0
```

## Instead
Give the chart another version whenever it changes. Where nobody does that, let the program say what is in it: a hash of
its files as a value, which no template has to use.

## Fix safety
The first up after that deploys everything that was left out so far.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import HELM_RELEASE, Registration
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref, ref_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import named

PLACES_MAX = 3


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[str] = set()
    for moment in moments(rehearsal, case):
        release, before = moment.release, moment.before
        if (moment.ended.action, moment.ended.outcome) != ("up", "ok") or not (release and release.program and before):
            continue
        if release.program.varies:  # Its charts render to something else each time, changed or not.
            continue
        for one in release.program.registrations:
            was = before.program.find(one.urn) if before.program else None
            if was is None or one.urn in told or not _is_left_alone(was, one):
                continue
            if changed := list(_changed(was, one)):
                told.add(one.urn)
                yield _finding(moment, one, changed)


def _is_left_alone(was: Registration, one: Registration) -> bool:
    return one.type == HELM_RELEASE and was.inputs == one.inputs


def _changed(was: Registration, one: Registration) -> Iterator[Ref]:
    """What the chart renders to otherwise than before, or no longer."""
    old, new = ({ref_of(body): body for body in it.contents} for it in (was, one))
    return (ref for ref in {**new, **old} if old.get(ref) != new.get(ref))


def _finding(moment: Moment, one: Registration, changed: list[Ref]) -> Finding:
    return found(
        RULE,
        moment,
        objects=changed,
        damage="failed-deploy",
        message=f"pulumi up deploys no change of {named(changed)}: the chart of the Release {one.name} has changed, "
        "and none of the Release's inputs",
        details=(
            f"The chart says that it has version {one.inputs.get('version')}, as it did before. Pulumi looks at that, "
            "at the path and at the values, and says: unchanged.",
            "The next change of any of them deploys this one, too.",
        ),
        places=list(_places(moment.case, moment.index, changed)) or ([one.place] if one.place else []),
        confirm="pulumi preview --diff  # shows no change of the Release",
    )


def _places(case: Case, step: int, changed: list[Ref]) -> Iterator[Pointer]:
    written = (case.written(step, ref) for ref in changed[:PLACES_MAX])
    return (resource.place() for resource in written if resource is not None)


RULE = Rule("ST907", "pulumi-release-misses-chart-change", check)
