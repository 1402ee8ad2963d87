"""Applications create each other in a cycle, so none of them can be deleted.

## What happens
Each Application contains another one, and the last contains the first. Syncs work, because everything already exists. A
deleted Application is recreated by the next sync of another. If all have the finalizer
`resources-finalizer.argocd.argoproj.io`, none can be deleted at all: each waits until its objects are deleted, and the
next Application is one of them.

An Application that contains itself is not reported: it excludes itself from its own deletion.

## Example
```yaml
# apps/hen.yaml, synced by egg
kind: Application
metadata: {name: hen}
---
# more/egg.yaml, synced by hen
kind: Application
metadata: {name: egg}
```

## Instead
Use one root Application that is installed by hand or by a pipeline, and a tree below it.

## Fix safety
Remove the finalizers and the automated sync before you remove an Application from its folder: otherwise it is pruned
with all its objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seatrial.evidence.argocd.syncs import operations
from seatrial.evidence.moment import Moment, found
from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, listed
from seatrial.model.timeline import Rehearsal

FINALIZER = "resources-finalizer.argocd.argoproj.io"
KIND = ("Application", GROUP)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    makes: dict[Ref, set[Ref]] = {}
    first: dict[Ref, int] = {}
    for step, operation in operations(rehearsal):
        made = {task.object for task in operation.tasks if (task.object.kind, task.object.group) == KIND}
        app = next((ref for ref in (*made, *makes) if ref.name == operation.app), None)
        app = app or Ref("Application", "argocd", operation.app, GROUP)
        makes.setdefault(app, set()).update(made)
        first.setdefault(app, step)
    reported: set[Ref] = set()
    for app in sorted(makes):
        cycle = _cycle(app, makes)
        if len(cycle) > 1 and not reported & set(cycle):
            reported.update(cycle)
            yield _finding(Moment(rehearsal, case, first[app]), cycle)


def _cycle(start: Ref, makes: Mapping[Ref, set[Ref]]) -> list[Ref]:
    """The cycle from an Application back to itself; empty if there is none."""
    ways, seen = [[start]], {start}
    while ways:
        way = ways.pop(0)
        for made in sorted(makes.get(way[-1], ())):
            if made == start:
                return way
            if made not in seen:
                seen.add(made)
                ways.append([*way, made])
    return []


def _finding(moment: Moment, cycle: list[Ref]) -> Finding:
    written = [resource for ref in cycle if (resource := moment.case.written(moment.index, ref)) is not None]
    kept = bool(written) and all(
        any(word.startswith(FINALIZER) for word in listed(resource.body, "metadata", "finalizers"))
        for resource in written
    )
    way = " -> ".join(ref.name for ref in (*cycle, cycle[0]))
    return found(
        RULE,
        moment,
        objects=cycle,
        damage="failed-deploy" if kept else "nuisance",
        message=f"Applications create each other ({way}): "
        + ("none of them can be deleted" if kept else "a deleted one is recreated by another"),
        details=(
            "Each has the resources finalizer and contains the next one: each waits for the other." if kept else "",
        ),
        places=[resource.place("metadata", "name") for resource in written],
        evidence=[e for ref in cycle for e in moment.rehearsal.of_object(ref) if e.effect == "deleting"],
        confirm=f"kubectl get applications -n {cycle[0].namespace} -o custom-columns='NAME:.metadata.name,"
        "BY:.metadata.annotations.argocd\\.argoproj\\.io/tracking-id'",
    )


RULE = Rule("ST822", "argocd-applications-make-each-other", check)
