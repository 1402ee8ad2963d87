"""A Kustomization depends on a HelmRelease, or the other way round, by a name that its own kind does not have.

## What happens
`dependsOn` of a Kustomization names Kustomizations, and that of a HelmRelease names HelmReleases. There is no field for
the kind. A name of the other kind is looked up as one's own, is not found, and is looked up again every 30 seconds, for
ever: the object is never reconciled, nor is what depends on it. Nothing is refused, and no timeout ends it; the only
sign is a condition that says `DependencyNotReady`.

## Example
```yaml
kind: Kustomization
metadata: {name: databases}
spec: {path: ./databases, dependsOn: [{name: postgres-operator}]}     # which is a HelmRelease
```

## Instead
Name the Kustomization that holds the HelmRelease, and give it `wait: true`: it is Ready when the HelmRelease is. Or
name the HelmRelease in its `healthChecks`.

## Fix safety
What was held up until now is applied as soon as the name is right, all at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, listed
from seatrial.model.timeline import Event, Rehearsal

NOT_FOUND = " not found"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for moment in moments(rehearsal, case):
        waiting = {one.object for one in moment.ended.reconciled if not one.attempts}
        for event in moment.events():
            is_waiting = event.object in waiting and event.effect == "said" and event.message.endswith(NOT_FOUND)
            if is_waiting and event.object not in told:
                told.add(event.object)
                yield from _findings(rehearsal, case, event)


def _findings(rehearsal: Rehearsal, case: Case, event: Event) -> Iterator[Finding]:
    own = case.written(event.step, event.object)
    ended = rehearsal.steps[event.step]
    for index, entry in enumerate(listed(own.body, "spec", "dependsOn") if own else ()):
        named = [one for one in ended.reconciled if one.object.name == entry.get("name")]
        others = [one.object for one in named if one.object.kind != event.object.kind]
        if own is None or not others or len(named) > len(others):
            continue
        holders = [one.object for one in ended.reconciled if others[0] in one.objects]
        kind, name = event.object.kind, event.object.name
        yield found(
            RULE,
            Moment(rehearsal, case, event.step),
            objects=[event.object],
            damage="failed-deploy",
            message=f"{event.object} is never reconciled: it depends on {entry.get('name')}, which is a "
            f"{others[0].kind}, and a {kind} can only depend on another {kind}",
            details=(
                f'Flux says of it: "{event.message}"',
                f"{others[0]} comes with {holders[0]}, which can be depended on." if holders else "",
                f"{_named([r for one in ended.reconciled if one.object == event.object for r in one.objects])}",
            ),
            places=[own.place("spec", "dependsOn", index, "name")],
            evidence=[event],
            confirm=f"kubectl get {kind.lower()} {name} -n {event.object.namespace} "
            "-o jsonpath='{.status.conditions[?(@.type==\"Ready\")].message}'",
        )


def _named(refs: list[Ref]) -> str:
    if not refs:
        return ""
    more = f" and {len(refs) - 3} more" if len(refs) > 3 else ""
    return f"Not there for it: {', '.join(map(str, refs[:3]))}{more}."


RULE = Rule("ST924", "flux-dependson-of-another-kind", check)
