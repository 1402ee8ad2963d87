"""A chart in a Pulumi program checks at render time for a CRD that the same program creates.

## What happens
Some charts check with `.Capabilities.APIVersions.Has` or `lookup` whether a CRD exists, and `fail` if it does not. In a
Pulumi program an earlier chart often creates the CRD, and the chart names it in `dependsOn`. That does not help.
`pulumi up` starts with a preview, in which nothing is created, and renders a `helm.v4.Chart` there, against
the cluster as it is. A `helm.v3.Chart` is rendered whenever the program runs, in a preview or not, and waits for none
of its dependencies. So the first `up` on a new cluster fails before it creates anything, and so does every retry. On a
cluster that already has the CRDs it works, so the problem shows up when a cluster is rebuilt.

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
works once. If the chart has a value that disables the check, use it.

## Fix safety
For Pulumi, a chart that becomes a `Release` is a new resource, and Helm does not adopt the old objects: delete them
first.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.faults import faults
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import programs
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import CHART_V3, HELM_RELEASE, Program, Registration, effective, short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal


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


def _makers(program: Program, definitions: tuple[Ref, ...]) -> Iterator[Registration]:
    """The resources that create these CRDs: the CRD itself, or the component or Release that contains it."""
    for one in program.registrations:
        names = {str(body["metadata"]["name"]) for body in (*one.definitions, *one.contents) if body["metadata"]}
        if one.ref in definitions or any(ref.name in names for ref in definitions):
            parent = program.find(one.parent) if one.parent else None
            yield parent or one
            return


def _when(program: Program, one: Registration, makers: list[Registration]) -> str:
    makes = " and ".join(short(maker.urn) for maker in makers)
    depends = {maker.urn for maker in makers} & {*one.dependencies, *effective(program, one)}
    if one.type == HELM_RELEASE:
        return f"It does not depend on {makes}, which creates it: Helm renders the chart before it exists."
    if one.type == CHART_V3:
        return (
            f"{makes} creates it. A v3.Chart is rendered whenever the program runs, including the preview, and waits "
            "for nothing: dependsOn does not change that."
        )
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
