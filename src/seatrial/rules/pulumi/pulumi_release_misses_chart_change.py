"""The templates of a chart changed, and Pulumi does not upgrade its Release.

## What happens
Pulumi compares the inputs of a resource. Those of a `helm.v3.Release` are the path or name of its chart, its values,
and the version in Chart.yaml. The rendered manifests are not an input. If only the templates of a local chart, or its
values.yaml, change, all inputs stay the same: `pulumi up` reports `unchanged` and deploys nothing. The change is
deployed with the next chart version or the next changed value, in an up for another reason.

A `v3.Chart` and a `v4.Chart` are rendered on every up and are not affected.

## Example
```yaml
# chart/Chart.yaml: the same before and after chart/templates/settings.yaml was changed
name: shop
version: 1.0.0
```

## Instead
Change the chart version whenever the chart changes. Otherwise pass a hash of its files as a value, which no template
has to use.

## Fix safety
The first up after that deploys all pending changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import changed_programs
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import HELM_RELEASE, Registration
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref, ref_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import first_named, named

PLACES_MAX = 3


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[str] = set()
    for moment, before, program in changed_programs(rehearsal, case):
        # The charts of a program that varies render to something else each time, changed or not.
        if moment.ended.outcome != "ok" or program.varies:
            continue
        for one in program.registrations:
            was = before.find(one.urn)
            if was is None or one.urn in reported or not _is_left_alone(was, one):
                continue
            if changed := list(_changed(was, one)):
                reported.add(one.urn)
                yield _finding(moment, one, changed)


def _is_left_alone(was: Registration, one: Registration) -> bool:
    return one.type == HELM_RELEASE and was.inputs == one.inputs


def _changed(was: Registration, one: Registration) -> Iterator[Ref]:
    """The objects that the chart renders differently than before, or no longer."""
    old, new = ({ref_of(body): body for body in it.contents} for it in (was, one))
    return (ref for ref in {**new, **old} if old.get(ref) != new.get(ref))


def _finding(moment: Moment, one: Registration, changed: list[Ref]) -> Finding:
    return found(
        RULE,
        moment,
        objects=changed,
        damage="failed-deploy",
        message=f"pulumi up does not deploy the change of {first_named(changed)}: no input of Release "
        f"{one.name} changed",
        details=(
            f"Changed: {named(changed)}.",
            f"The chart changed, but still has version {one.inputs.get('version')}. Pulumi compares the version, "
            "the path and the "
            "values, and reports: unchanged.",
            "The next change of any of them also deploys this one.",
        ),
        places=list(_places(moment.case, moment.index, changed)) or ([one.place] if one.place else []),
        confirm="pulumi preview --diff  # shows no change of the Release",
    )


def _places(case: Case, step: int, changed: list[Ref]) -> Iterator[Pointer]:
    written = (case.written(step, ref) for ref in changed[:PLACES_MAX])
    return (resource.place() for resource in written if resource is not None)


RULE = Rule("ST907", "pulumi-release-misses-chart-change", check)
