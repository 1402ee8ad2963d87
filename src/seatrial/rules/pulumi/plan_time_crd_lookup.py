"""A chart in a Pulumi program checks at render time for a CRD that the same program creates.

## What happens
Some charts check with `.Capabilities.APIVersions.Has` or `lookup` whether a CRD exists, and `fail` if it does not. In a
Pulumi program an earlier chart often creates the CRD, and the chart names it in `dependsOn`. That does not help.
`pulumi up` starts with a preview, in which nothing is created, and renders a `helm.v4.Chart` there, against
the cluster as it is. A `helm.v3.Chart` is rendered whenever the program runs, in a preview or not, and waits for none
of its dependencies. So the first `up` on a new cluster fails before it creates anything, and so does every retry. On a
cluster that already has the CRDs it works, so the problem shows up when a cluster is rebuilt.

Others render an object only if its kind is served (`{{ if .Capabilities.APIVersions.Has ... }}`). Then nothing fails:
the first `up` succeeds without the object, and the next one creates it. A `v4.Chart` that depends on the CRD is
rendered a second time, when the CRD exists: only the preview omits the object. A `Release` that does not depend on the
CRD omits it until one of its inputs changes.

A custom resource whose CRD does not exist yet is not affected: the preview accepts it, and `up` retries its creation.
Only charts with such a check are. Terraform's `kubernetes_manifest` needs the CRD of any custom resource at plan time.

## Example
```yaml
{{- if not (.Capabilities.APIVersions.Has "backups.example/v1/Backup") }}
{{- fail "install the chart backup-crds first" }}
{{- end }}
```

## Instead
Use a `helm.v3.Release` for the chart that checks: Helm renders it when it is deployed, not in the preview. Or use two
programs (stacks), with the CRDs in the first. For a `v4.Chart` that depends on the CRDs, `pulumi up --skip-preview`
works once. If the chart has a value that disables the check, use it. If the chart only omits objects, a `v4.Chart` or a
`Release` that depends on the CRD is enough.

## Fix safety
For Pulumi, a chart that becomes a `Release` is a new resource, and Helm does not adopt the old objects: delete them
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import programs
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import (
    CHART_V3,
    CHART_V4,
    HELM_RELEASE,
    Guarded,
    Program,
    Registration,
    creating,
    effective,
    is_rendered_after,
    short,
)
from seatrial.model.release import Case
from seatrial.model.resource import Place, Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[str] = set()
    for moment, program in programs(rehearsal, case):
        if moment.ended.outcome != "failed":
            continue
        unrendered = {fault.urn for fault in faults(moment.ended.failure, "source-not-rendered")}
        for one in program.registrations:
            if one.urn in unrendered and one.urn not in reported:
                reported.add(one.urn)
                yield _finding(moment, program, one)
    yield from _omissions(rehearsal, case)


def _finding(moment: Moment, program: Program, one: Registration) -> Finding:
    makers = list(_makers(program, one.after))
    places = (place for resource in (one, *makers) if (place := resource.place))
    brought = f"{one.after[0]}{f' and {len(one.after) - 1} more' if len(one.after) > 1 else ''}"
    return found(
        RULE,
        moment,
        objects=one.after,
        damage="failed-deploy",
        message=f"pulumi up fails without {brought}: {short(one.urn)} checks for it at render time",
        details=(f'Helm reports: "{one.unrendered}"', _when(program, one, makers), _again(moment)),
        places=places,
        confirm=f"kubectl get crd {one.after[0].name}  # missing: pulumi preview fails the same way",
    )


def _omissions(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    """Objects that an `up` omits, or only its preview, once for each chart."""
    reported: set[str] = set()
    for moment, program in programs(rehearsal, case):
        for chart in program.registrations if moment.ended.outcome == "ok" else ():
            if chart.urn in reported:
                continue
            omitted = [one for one in chart.guarded if moment.live(one.object) is None]
            unseen = [one for one in chart.guarded if chart.type == CHART_V4 and _is_unseen(moment, one)]
            if omitted or unseen:
                reported.add(chart.urn)
                yield _omission(moment, program, chart, omitted) if omitted else _preview(moment, chart, unseen)


def _is_unseen(moment: Moment, one: Guarded) -> bool:
    """Whether the step creates an object that its preview could not show."""
    return moment.was(one.object) is None and any(moment.was(ref) is None for ref in one.crds)


def _omission(moment: Moment, program: Program, chart: Registration, omitted: list[Guarded]) -> Finding:
    makers = list(_makers(program, omitted[0].crds))
    later = any(
        moment.at(step).live(omitted[0].object) for step in range(moment.index + 1, len(moment.rehearsal.steps))
    )
    again = (
        "The next up creates it."
        if later
        else "Helm renders the chart of a Release again only when an input of the Release changes."
        if chart.type == HELM_RELEASE
        else ""
    )
    return found(
        RULE,
        moment,
        objects=[one.object for one in omitted],
        damage="failed-deploy",
        certainty="likely" if chart.type == CHART_V4 and makers != [chart] else "will",
        message=f"pulumi up omits {omitted[0].object}: {short(chart.urn)} is rendered before its CRD is served",
        details=(
            _others(omitted),
            f"The chart renders it only if the cluster serves the kind of {omitted[0].crds[0]}. "
            + _when(program, chart, makers),
            f"The up reports success. {again}".strip(),
        ),
        places=_places(chart, makers),
        confirm=f"kubectl get {in_kubectl(omitted[0].object)}  # after the first up of a new stack",
        way_out=_way_out(program, chart, makers),
    )


def _preview(moment: Moment, chart: Registration, unseen: list[Guarded]) -> Finding:
    return found(
        RULE,
        moment,
        objects=[one.object for one in unseen],
        damage="nuisance",
        message=f"the preview omits {unseen[0].object}, and up creates it: {short(chart.urn)} checks for its CRD",
        details=(
            _others(unseen),
            f"The chart renders it only if the cluster serves the kind of {unseen[0].crds[0]}. The preview renders the "
            "chart before the program creates that; the up itself renders it again, after what it depends on.",
            "A reviewer of the preview does not see it, and pulumi up --plan refuses what is not in its plan.",
        ),
        places=_places(chart, []),
        confirm="pulumi preview  # on a new stack",
        way_out=(f"Render {unseen[0].object} without a condition: a preview accepts a kind that is not served yet.",),
    )


def _others(guarded: list[Guarded]) -> str:
    return f"Also omitted: {named([one.object for one in guarded[1:]])}." if len(guarded) > 1 else ""


def _places(chart: Registration, makers: list[Registration]) -> Iterator[Place]:
    return (place for resource in (chart, *makers) if (place := resource.place))


def _way_out(program: Program, chart: Registration, makers: list[Registration]) -> Iterator[str]:
    makes = " and ".join(short(maker.urn) for maker in makers if maker.urn != chart.urn)
    if is_rendered_after(program, chart, chart.guarded[0].crds):
        yield f"Create {chart.guarded[0].crds[0]} in a program (stack) of its own that runs first."
    elif not makes:
        yield f"Render the object without a condition, or create the CRD before {short(chart.urn)}, outside of it."
    elif chart.type == CHART_V3:
        yield f"Deploy the chart with helm.v4.Chart or helm.v3.Release, with dependsOn {makes}."
    else:
        yield f"Add dependsOn {makes} to {short(chart.urn)}."


def _makers(program: Program, definitions: tuple[Ref, ...]) -> Iterator[Registration]:
    """What creates the first of these CRDs: the CRD itself, or the component or Release that contains it."""
    for one in islice((one for ref in definitions for one in creating(program, ref)), 1):
        parent = program.find(one.parent) if one.parent else None
        yield parent or one


def _when(program: Program, one: Registration, makers: list[Registration]) -> str:
    makes = " and ".join(short(maker.urn) for maker in makers)
    depends = {maker.urn for maker in makers} & {*one.dependencies, *effective(program, one)}
    if any(maker.urn == one.urn for maker in makers):
        return f"{makes} itself contains the CRD: it is rendered before it creates anything."
    if one.type == HELM_RELEASE:
        if depends:
            return f"It depends on {makes}, which creates it, and Pulumi does not wait until a CRD is established."
        return f"It does not depend on {makes}, which creates it: Helm renders the chart before it exists."
    if one.type == CHART_V3:
        return (
            f"{makes} creates it. A v3.Chart is rendered whenever the program runs, including the preview, and waits "
            "for nothing: dependsOn does not change that."
        )
    if not depends and not one.unrendered:
        return f"{makes} creates it, and a v4.Chart waits only for what it depends on."
    although = ", even though it depends on that resource" if depends else ""
    return (
        f"{makes} creates it. A v4.Chart is rendered in the preview at the start of an up{although}, and a preview "
        "creates nothing."
    )


def _again(moment: Moment) -> str:
    failed = [
        ended
        for ended in moment.rehearsal.steps[moment.index + 1 :]
        if ended.action == "up" and ended.outcome == "failed"
    ]
    return "Nothing is created, and the next up fails the same way." if failed and not moment.ended.created else ""


RULE = Rule("ST903", "plan-time-crd-lookup", check)
