"""Applications make each other, so that none of them can be deleted for good.

## What happens
Each holds the Application of another in its folder, and in the end one holds the first. Syncs go well, since each only
finds what is there already. One that is deleted is made again by the next sync of another. Where all have the finalizer
`resources-finalizer.argocd.argoproj.io`, none goes at all: each waits until its objects are gone, and one that waits
itself is among them.

An Application that holds itself is no such case: it leaves itself out of its own deletion.

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
One root that nobody makes but who installs it, and a tree below.

## Fix safety
Take the finalizers off, and automated syncs, before one of them leaves its folder: with them it is pruned with all its
objects.
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
    told: set[Ref] = set()
    for app in sorted(makes):
        cycle = _cycle(app, makes)
        if len(cycle) > 1 and not told & set(cycle):
            told.update(cycle)
            yield _finding(Moment(rehearsal, case, first[app]), cycle)


def _cycle(start: Ref, makes: Mapping[Ref, set[Ref]]) -> list[Ref]:
    """The way from an Application back to itself; empty where there is none."""
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
        message=f"Applications make each other ({way}): "
        + ("none of them can be deleted" if kept else "one that is deleted is made again by another"),
        details=(
            "Each has the finalizer for its objects, and the next one is among those: each waits for the other."
            if kept
            else "",
        ),
        places=[resource.place("metadata", "name") for resource in written],
        confirm="kubectl get applications -n argocd -o custom-columns='NAME:.metadata.name,"
        "BY:.metadata.annotations.argocd\\.argoproj\\.io/tracking-id'",
    )


RULE = Rule("ST822", "argocd-applications-make-each-other", check)
