"""A step reports success, but an object of the source is missing or different, and no other finding explains why.

## What happens
When `helm upgrade`, a sync or `kubectl apply` reports success, the cluster should contain what the source says. The
rehearsal compares both after every successful step. An object may be missing because the engine skipped it, or because
something deleted it. A field may be different because the API server dropped it, because the engine does not update
that object, or because the source contains the object twice. A rule that knows the cause reports it under its own name.
This finding is what remains.

Only fields that are written in the source are compared, as the API server reads them: `1000m` is `1`, and `60s` is
`1m`. Defaults, status, replicas, CA bundles, fields that a controller or a person wrote, and what you exclude yourself
(`ignoreDifferences` of Argo CD, `ignoreChanges` of Pulumi, `kustomize.toolkit.fluxcd.io/ssa` of Flux) do not count.
Jobs and Pods do not count as missing, and hooks only if something that stays cannot start without them.

## Example
```yaml
kind: Deployment
spec:
  template:
    spec:
      containers:
        - name: shop
          readinesProbe: {httpGet: {path: /ready, port: 80}}   # dropped: the field is called readinessProbe
```

## Instead
`kubectl diff` shows the same difference on a cluster. Remove the field or the object from the source, or make the
engine apply it.

## Fix safety
There is no automatic fix: the cause is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.evidence.breaches import Breach, Breaches, unexplained
from seatrial.evidence.deviations import SERVES, Deviation, deviations
from seatrial.evidence.moment import moments
from seatrial.helm import hooks
from seatrial.model.finding import Damage, Finding, Invariant, Reviewed
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.breaches import breach_finding, ended_sentence, fields_sentence, names
from seatrial.phrases.objects import in_kubectl

MISSING = "missing"
DIFFERENT = "different"


def check(trial: Sequence[Reviewed]) -> Iterator[Finding]:
    yield from map(_finding, unexplained(trial, _breaches))


def _breaches(rehearsal: Rehearsal, case: Case) -> Iterator[Breach]:
    for moment in moments(rehearsal, case):
        for one in deviations(moment):
            cause = DIFFERENT if one.fields else MISSING
            path = one.fields[0] if one.fields else ("metadata", "name")
            yield Breach(moment, one.object, _damage(one), cause, one.events, _why(one), path, lasts=True)


def _damage(one: Deviation) -> Damage:
    if not one.fields:
        return "outage" if one.users or one.object.kind in SERVES else "failed-deploy"
    minor = hooks.is_hook(one.written.body) or all(path[0] == "metadata" for path in one.fields)
    return "nuisance" if minor else "failed-deploy"


def _why(one: Deviation) -> str:
    if not one.fields:
        return f"{names(one.users)} cannot start without {one.object}." if one.users else ""
    return fields_sentence(one.object, one.fields)


def _answer(breach: Breach) -> str:
    """The warning or error with which the API server answered."""
    said = breach.events[0].message.partition("\n")[0] if breach.events else ""
    return f'The API server reports: "{said}"' if said else ""


def _finding(group: Breaches) -> Finding:
    first, moment = group.first, group.first.moment
    one = len(set(group.objects)) == 1
    differs = "differs from the source" if one else "differ from the source"
    missing = "is missing" if one else "are missing"
    return breach_finding(
        INVARIANT,
        group,
        f"{moment.act} reports success, but {names(group.objects)} {missing if first.cause == MISSING else differs}",
        steps="end like this",
        answer=_answer(first),
        ended=ended_sentence(moment),
        confirm=f"kubectl get {in_kubectl(first.object)} -o yaml  # after {moment.act}",
    )


INVARIANT = Invariant("ST003", "not-as-written", check)
