"""`dependsOn` of a Kustomization names a HelmRelease, or the other way round, so the dependency is never found.

## What happens
`dependsOn` of a Kustomization names Kustomizations, and that of a HelmRelease names HelmReleases. There is no field for
the kind. Flux looks for an object of the same kind, does not find it, and retries every 30 seconds, forever: neither
the object nor anything that depends on it is reconciled. Nothing is rejected and there is no timeout; the only sign is
the condition `DependencyNotReady`.

## Example
```yaml
kind: Kustomization
metadata: {name: databases}
spec: {path: ./databases, dependsOn: [{name: postgres-operator}]}     # which is a HelmRelease
```

## Instead
Name the Kustomization that contains the HelmRelease, and give it `wait: true`: it is Ready when the HelmRelease is. Or
list the HelmRelease in its `healthChecks`.

## Fix safety
Everything that was blocked until now is applied at once when the name is right.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, listed
from seatrial.model.timeline import Event, Rehearsal


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        waiting = {one.object for one in moment.ended.reconciled if not one.attempts}
        for event in moment.events():
            is_waiting = event.object in waiting and event.effect == "said" and bool(event.missing)
            if is_waiting and event.object not in reported:
                reported.add(event.object)
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
            f"{others[0].kind}",
            details=(
                f"A {kind} can only depend on another {kind}.",
                f'Flux reports: "{event.message}"',
                f"{others[0]} is in {holders[0]}: depend on that." if holders else "",
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
    return f"Never created: {', '.join(map(str, refs[:3]))}{more}."


RULE = Rule("ST924", "flux-dependson-of-another-kind", check)
