"""A resource depends on a Pulumi component that gives no dependency, or is in one that has no order, and fails.

## What happens
`helm.v3.Chart`, and `ConfigFile`, `ConfigGroup` and `Directory` of the old API, are components that the SDK expands
inside the program. A component is never a dependency itself. In `dependsOn` it stands for the resources in it that
are known at that moment. Those of a chart are known only when it has been rendered, which takes a call to the
provider. The list is empty, unless something else happens to be waited for first, and longer than the chart takes to
render: in Python that is luck, in TypeScript it depends on what the inputs are made of.

So the resource is registered at once. Pulumi tries its creation again for 63 seconds, but only while its kind or its
namespace is not there. The moment the definition is served, the webhook of the same chart is asked, whose pods need
longer than that; its refusal is final. Inside such a component it is the same: its objects are made all at once, in
no order.

Who needs the kind or the namespace that a `Release`, a `v4.Chart` or another resource of the program brings, and does
not depend on it, has the same 63 seconds. A Release may need longer before it comes to it: hooks run first.

That Pulumi does not wait for pods is not the reason: it waits for each Deployment of the chart to be ready. It is
that nobody waits for the chart. A second `pulumi up` works, which is why this is taken for bad luck until the cluster
is built anew.

## Example
```python
keeper = Chart("keeper", LocalChartOpts(path="keeper"))
CustomResource("pull-secret", ..., opts=ResourceOptions(depends_on=[keeper]))      # depends on nothing
```

## Instead
`depends_on=keeper.ready` depends on every resource of the chart. `helm.v4.Chart` and `yaml.v2.ConfigGroup` are made
by the provider: who depends on one waits for all that is in it. A `helm.v3.Release` is one resource, which waits as
`helm --wait` does. None of them waits for a certificate that is injected later: for that, `pulumi.com/waitFor` on the
webhook configuration.

No remedy: a longer `customTimeouts`, a Pod that sleeps (it depends on the chart as little), or `failurePolicy:
Ignore`, which lets through for ever what the webhook is there to refuse.

## Fix safety
`depends_on=chart.ready` changes nothing that is deployed. A chart that becomes a `Release` or a `v4.Chart` is other
resources to Pulumi, which it makes before it deletes the old ones: under the same names that fails, unless the old ones
are deleted first, or known as the new ones by `aliases` (a Release has none).
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import Unordered, unordered
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[str] = set()
    by_component: dict[str, list[Unordered]] = {}
    for one in unordered(rehearsal, case):
        by_component.setdefault(one.component.urn, []).append(one)
    for urn, failed in by_component.items():
        if urn not in told:
            told.add(urn)
            yield _finding(rehearsal, case, failed)


def _finding(rehearsal: Rehearsal, case: Case, failed: list[Unordered]) -> Finding:
    first = failed[0]
    step = first.event.step
    moment = Moment(rehearsal, case, step)
    refs = list(dict.fromkeys(one.ref for one in failed))
    component = short(first.component.urn)
    places = (place for one in (first.registration, first.component) if (place := one.place))
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        message=_message(refs, first, component),
        details=(
            f'Pulumi says: "{first.event.message}"',
            _why(first, component),
            _again(moment, refs),
        ),
        places=places,
        evidence=[event for event in rehearsal.of_step(step) if event.object in (first.ref, first.culprit)][:6],
        confirm="pulumi stack export | jq '.deployment.resources[] | "
        f'select(.urn | endswith("::{first.registration.name}")) | .dependencies\'',
    )


def _message(refs: list[Ref], first: Unordered, component: str) -> str:
    more = f" and {len(refs) - 1} more" if len(refs) > 1 else ""
    if first.how == "forgotten":
        return (
            f"pulumi up fails: {refs[0]}{more} does not depend on {component}, which brings {first.culprit}, and is "
            "made before that is there"
        )
    if first.how == "named":
        return (
            f"pulumi up fails: {refs[0]}{more} names {component} in dependsOn, which is no dependency, and is "
            f"made before {first.culprit} can be relied on"
        )
    return (
        f"pulumi up fails: {refs[0]}{more} and {first.culprit} are both in {component}, which makes all that is "
        "in it at once, in no order"
    )


def _why(first: Unordered, component: str) -> str:
    if first.how == "forgotten":
        return (
            "Pulumi begins with every resource as soon as what it depends on is done, and tries a creation again for "
            "63 seconds where the kind or the namespace is not there. Whether that is enough, nobody knows."
        )
    depends = len(first.registration.dependencies)
    counted = f"nothing of {component} among what it depends on" if depends else "no dependency"
    if first.how == "named":
        return (
            f"It is registered with {counted}: {component} is a component that is expanded in the program, and at that "
            "moment nothing of it is known. A creation is tried again only while the kind or the namespace is not "
            "there; what a webhook refuses is final."
        )
    return "Nothing in such a component depends on anything else in it, whatever Helm's order of kinds would be."


def _again(moment: Moment, refs: list[Ref]) -> str:
    for ended in moment.rehearsal.steps[moment.index + 1 :]:
        if ended.action == "up" and set(refs) <= set(ended.created):
            return "The up after it makes it: that trying again works hides this until the cluster is built anew."
    return ""


RULE = Rule("ST901", "pulumi-component-unordered-or-unawaited", check)
