"""A chart in a Pulumi program asks the cluster, when it is rendered, for a definition that the same program makes.

## What happens
Some charts look before they leap: `.Capabilities.APIVersions.Has` or `lookup` tell them whether a definition is there,
and where it is not they `fail`. In a Pulumi program the definition often comes from the program itself, from a chart
before this one, and `dependsOn` says so. That does not help. `pulumi up` begins with a preview, in which nothing is
made, and a `helm.v4.Chart` is rendered there, against the cluster as it is. A `helm.v3.Chart` is rendered whenever the
program runs, preview or not, and waits for nothing that it depends on. So the first `up` on a new cluster fails before
it makes anything, and so does every one after it. Where the definitions were installed long ago it works, which is why
this comes up when a cluster is built anew.

A custom resource of a kind that is not there yet is no such case: the preview takes it as it is, and `up` tries its
creation again. It is charts that ask. Terraform's `kubernetes_manifest` needs the definition for any custom resource as
soon as it plans.

## Example
```yaml
{{- if not (.Capabilities.APIVersions.Has "backups.example/v1/Backup") }}
{{- fail "install the chart backup-crds first" }}
{{- end }}
```

## Instead
A `helm.v3.Release` for the chart that asks: Helm renders it when it is its turn, and it is not rendered in a preview.
Or two programs (stacks), the definitions in the first. For a `v4.Chart` that depends on the definitions,
`pulumi up --skip-preview` gets through once. Where the chart has a value that turns the question off, use it.

## Fix safety
A chart that becomes a `Release` is other resources to Pulumi, and Helm takes over nothing that it does not own: delete
the old ones first.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import CHART_V3, HELM_RELEASE, Program, Registration, effective, short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[str] = set()
    for moment in moments(rehearsal, case):
        release = moment.release if moment.index < len(case.releases) else None
        if release is None or release.program is None or moment.ended.outcome != "failed":
            continue
        for one in release.program.registrations:
            if one.unrendered and one.unrendered in moment.ended.error and one.urn not in told:
                told.add(one.urn)
                yield _finding(moment, release.program, one)


def _finding(moment: Moment, program: Program, one: Registration) -> Finding:
    makers = list(_makers(program, one.after))
    places = (place for resource in (one, *makers) if (place := resource.place))
    brought = f"{one.after[0]}{f' and {len(one.after) - 1} more' if len(one.after) > 1 else ''}"
    return found(
        RULE,
        moment,
        objects=one.after,
        damage="failed-deploy",
        message=f"pulumi up fails on a cluster without {brought}: {short(one.urn)} asks for it when it is rendered, "
        "and the same program makes it",
        details=(f'Helm says: "{one.unrendered}"', _when(program, one, makers), _again(moment)),
        places=places,
        confirm=f"kubectl get crd {one.after[0].name}  # not there: pulumi preview fails alike",
    )


def _makers(program: Program, definitions: tuple[Ref, ...]) -> Iterator[Registration]:
    """What people wrote that brings these: a definition, or the component or Release that it is in."""
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
        return f"It does not depend on {makes}, which brings it: Helm renders the chart before that is there."
    if one.type == CHART_V3:
        return (
            f"{makes} brings it. A v3.Chart is rendered whenever the program runs, the preview of an up included, and "
            "waits for nothing before: dependsOn does not change that."
        )
    although = "although it depends on that: " if depends else ""
    return (
        f"{makes} brings it. A v4.Chart is rendered in the preview with which an up begins, {although}in a preview "
        "nothing is made."
    )


def _again(moment: Moment) -> str:
    failed = [
        ended
        for ended in moment.rehearsal.steps[moment.index + 1 :]
        if ended.action == "up" and ended.outcome == "failed"
    ]
    return "Nothing is made, and the up after it fails alike." if failed and not moment.ended.created else ""


RULE = Rule("ST903", "plan-time-crd-lookup", check)
