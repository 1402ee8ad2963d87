"""A step deletes, takes over or changes an object of another owner, and no other finding explains why.

## What happens
An object belongs to the release, Application, Kustomization, stack or person that created it. A step should leave the
objects of others alone. It touches them if two sources contain the same object, if a Namespace or a CRD is deleted with
what others put into it, or if a hook has the name of an object that is already there. A rule that knows the cause
reports it under its own name. This finding is what remains.

The owner is read from the marks of the engines (Helm's annotations, the tracking id of Argo CD, the labels of Flux),
and from the timeline: which step created the object, or whether it was there before the trial. What controllers create
does not count, nor does what you adopt yourself (`--take-ownership` of Helm, `import` of Pulumi) from no other release.

The damage is `data-loss` if a Namespace, a CRD or a PVC of others is deleted, or something in it; `outage` if something
that runs uses the object, or if a CRD loses a version or a field; `nuisance` otherwise.

## Example
```yaml
# Release a and release b both contain this hook. Hooks have no owner: b deletes the one of a, and creates its own.
kind: ConfigMap
metadata:
  name: shared-settings
  annotations: {helm.sh/hook: pre-install}
```

## Instead
Give the object one owner, and let the others only refer to it. `--take-ownership` (Helm) moves an object to another
release deliberately; remove it from the first release before.

## Fix safety
There is no automatic fix: the cause is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.evidence.breaches import Breach, Breaches, unexplained
from seatrial.evidence.moment import moments
from seatrial.evidence.others import ANOTHER_USER, Touch, touches
from seatrial.model.finding import Finding, Invariant, Reviewed
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.breaches import breach_finding, ended_sentence, names
from seatrial.phrases.objects import in_kubectl


def check(trial: Sequence[Reviewed]) -> Iterator[Finding]:
    yield from map(_finding, unexplained(trial, _breaches))


def _breaches(rehearsal: Rehearsal, case: Case) -> Iterator[Breach]:
    for moment in moments(rehearsal, case):
        for touch in touches(moment):
            # A prerequisite is only assumed, in a namespace that is the release's own: chart-owned-namespace-deleted.
            if touch.owner == ANOTHER_USER and (touch.adopted or case.is_assumed(touch.object)):
                continue
            yield Breach(moment, touch.object, touch.damage, _cause(touch), touch.chain, _why(touch), lasts=True)


def _cause(touch: Touch) -> str:
    return f"{touch.verb} of {touch.owner}"


def _why(touch: Touch) -> str:
    return f"--take-ownership asks for this: {touch.object} is taken from {touch.owner}." if touch.adopted else ""


def _finding(group: Breaches) -> Finding:
    moment = group.first.moment
    verb, _, owner = group.first.cause.partition(" of ")
    belong = "belongs" if len(group.objects) == 1 else "belong"
    return breach_finding(
        INVARIANT,
        group,
        f"{moment.act} {verb} {names(group.objects)}, which {belong} to {owner}",
        ended=ended_sentence(moment),
        confirm=f"kubectl get {in_kubectl(group.first.object)} -o yaml --show-managed-fields",
    )


INVARIANT = Invariant("ST004", "others-touched", check)
