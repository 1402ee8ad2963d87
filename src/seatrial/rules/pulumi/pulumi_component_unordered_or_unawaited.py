"""A resource fails because a Pulumi component adds no dependency: neither in `dependsOn` nor among its own resources.

## What happens
`helm.v3.Chart`, and `ConfigFile`, `ConfigGroup` and `Directory` of the old API, are components that the SDK expands
inside the program. A component itself is never a dependency. In `dependsOn` it stands for its resources that are known
at that moment. Those of a chart are known only after rendering, which takes a call to the provider. The list is empty,
unless the program happens to wait for something else first, for longer than the chart takes to render: in Python that
is luck, in TypeScript it depends on the inputs.

So the resource is registered at once. Pulumi retries its creation for 63 seconds, but only while its kind or its
namespace does not exist. As soon as the CRD is served, the webhook of the same chart is called, whose pods need longer;
its rejection is final. Inside such a component it is the same: its objects are created concurrently, in no order.

A resource that needs the kind or namespace of a `Release`, a `v4.Chart` or another resource, and does not depend on it,
has the same 63 seconds. A Release may take longer: its hooks run first.

The reason is not that Pulumi does not wait for pods: it waits for each Deployment of the chart. The reason is that
nothing waits for the chart. A second `pulumi up` works, so the failure looks random until the cluster is rebuilt.

## Example
```python
keeper = Chart("keeper", LocalChartOpts(path="keeper"))
CustomResource("pull-secret", ..., opts=ResourceOptions(depends_on=[keeper]))      # adds no dependency
```

## Instead
`depends_on=keeper.ready` depends on every resource of the chart. The provider expands `helm.v4.Chart` and
`yaml.v2.ConfigGroup`: a dependent waits for everything in them. A `helm.v3.Release` is one resource, which waits like
`helm --wait`. None of them waits for a certificate that is injected later: use `pulumi.com/waitFor` on the webhook
configuration.

What does not help: a longer `customTimeouts`, a Pod that sleeps (it does not depend on the chart either), or
`failurePolicy: Ignore`, which lets through what the webhook should reject.

## Fix safety
`depends_on=chart.ready` does not change what is deployed. For Pulumi, a chart that becomes a `Release` or a `v4.Chart`
is new resources, which it creates before it deletes the old ones: with the same names that fails, unless the old ones
are deleted first, or mapped to the new ones with `aliases` (a Release has none).
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import Unexpanded, Unordered, unexpanded, unordered
from seatrial.kinds.operators.table import operator_kinds
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import short
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import first_named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[str] = set()
    by_component: dict[str, list[Unordered]] = {}
    for one in unordered(rehearsal, case):
        by_component.setdefault(one.component.urn, []).append(one)
    for urn, failed in by_component.items():
        if urn not in reported:
            reported.add(urn)
            yield _finding(rehearsal, case, failed)
    without_chart: dict[str, list[Unexpanded]] = {}
    for unknown in unexpanded(rehearsal, case):
        without_chart.setdefault(unknown.component.urn, []).append(unknown)
    yield from map(_unknown, without_chart.values())


def _unknown(named: list[Unexpanded]) -> Finding:
    """The same where the chart is not on disk, so that what it contains is known at best from its operator."""
    webhooks = {one.ref: webhook for one in named if (webhook := _webhook(one.ref))}
    refs = [one.ref for one in named if one.ref in webhooks] or [one.ref for one in named]
    first = next(one for one in named if one.ref == refs[0])
    component = short(first.component.urn)
    does = "does" if len(refs) == 1 else "do"
    known = f'{first.ref.kind} has the webhook "{webhooks[refs[0]]}", which has failurePolicy Fail.' if webhooks else ""
    return found(
        RULE,
        first.moment,
        objects=refs,
        damage="failed-deploy",
        message=f"pulumi up fails: {first_named(refs)} {does} not wait for {component}",
        details=(
            f"Despite dependsOn it is registered with no dependency on {component}: the SDK replaces the component "
            "by its "
            "resources, and none of them is known at that time.",
            "Pulumi retries a creation for 63 seconds, and only while the kind or the namespace does not exist; a "
            "webhook rejection is final.",
            known,
            f"Not rehearsed: {first.absent}",
        ),
        places=(place for one in (first.registration, first.component) if (place := one.place)),
        evidence=[event for event in first.moment.events() if event.object == refs[0]][:1],
        confirm=_confirm(first.registration.name),
        certainty="likely" if webhooks else "may",
    )


def _webhook(ref: Ref) -> str:
    """The name of the webhook without which the operator's release refuses to create an object of this kind."""
    operator, kind = operator_kinds().get((ref.group, ref.kind), (None, None))
    if operator is None or kind is None:
        return ""
    meant = {f"{resource}.{kind.group}" for resource in (kind.plural, "*", "*/*")}
    asked = (w for w in operator.webhooks if "CREATE" in w.operations and not meant.isdisjoint(w.resources))
    return next((webhook.name for webhook in asked if webhook.failure_policy == "Fail"), "")


def _confirm(name: str) -> str:
    chosen = f'select(.urn | endswith("::{name}")) | .dependencies'
    return f"pulumi stack export | jq '.deployment.resources[] | {chosen}'"


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
            _too_early(first, component),
            f'Pulumi reports: "{first.event.message}"',
            _why(first, component),
            _again(moment, refs),
        ),
        places=places,
        evidence=[event for event in rehearsal.of_step(step) if event.object in (first.ref, first.culprit)][:6],
        confirm=_confirm(first.registration.name),
    )


def _message(refs: list[Ref], first: Unordered, component: str) -> str:
    does = "does" if len(refs) == 1 else "do"
    if first.how == "forgotten" and first.component.ref == first.culprit:
        return f"pulumi up fails: {first_named(refs)} {does} not depend on {first.culprit}"
    if first.how == "forgotten":
        return f"pulumi up fails: {first_named(refs)} {does} not depend on {component}, which creates {first.culprit}"
    if first.how == "named":
        return f"pulumi up fails: {first_named(refs)} {does} not wait for {component}, despite dependsOn"
    return f"pulumi up fails: {component} creates {first_named(refs)} and {first.culprit} in no order"


def _too_early(first: Unordered, component: str) -> str:
    if first.how == "forgotten":
        return f"{first.ref} is created before {first.culprit} exists."
    if first.how == "named":
        return (
            f"{first.ref} names {component} in dependsOn, which adds no dependency: it is created before "
            f"{first.culprit} is usable."
        )
    return f"{component} creates its objects concurrently."


def _why(first: Unordered, component: str) -> str:
    if first.how == "forgotten":
        return (
            "Pulumi starts every resource as soon as its dependencies are done, and retries a creation for 63 seconds "
            f"if the kind or the namespace does not exist. {_not_enough(first.culprit)}"
        )
    depends = len(first.registration.dependencies)
    counted = f"no dependency on {component}" if depends else "no dependency"
    if first.how == "named":
        return (
            f"It is registered with {counted}: the SDK replaces the component {component} in dependsOn by its "
            "resources, and none of them is known at that time. Pulumi retries a creation only while the kind or the "
            "namespace does not exist; a webhook rejection is final."
        )
    return "Nothing in such a component depends on anything else in it, and Helm's kind order does not apply."


def _not_enough(culprit: Ref) -> str:
    if culprit.kind in ("CustomResourceDefinition", "Namespace"):
        return "That may not be enough."
    return f"It does not retry for lack of a {culprit.kind}."


def _again(moment: Moment, refs: list[Ref]) -> str:
    for ended in moment.rehearsal.steps[moment.index + 1 :]:
        if ended.action == "up" and set(refs) <= set(ended.created):
            return "The next up creates it, so the failure looks random until the cluster is rebuilt."
    return ""


RULE = Rule("ST901", "pulumi-component-unordered-or-unawaited", check, before=("webhook-not-ready-race",))
