"""A step deploys a workload whose pods cannot start, and no other finding explains why.

## What happens
`kubectl apply`, `helm install` without `--wait`, the last wave of Argo CD and a Kustomization of Flux without `wait`
report success as soon as the API server has accepted the objects. Whether their pods start is seen later, by users.
The rehearsal looks at the pods when the step has ended and nothing changes any more. A pod that is not ready for a
reason that the rehearsal knows is reported:

- a Secret, a ConfigMap, a key of one, a ServiceAccount or a PVC that the pod names does not exist;
- the API server refuses the pod: a quota, a LimitRange, Pod Security, a webhook;
- a PVC stays unbound, or another pod holds its volume;
- a script of the pod waits for something that never comes, or fails.

The same is reported of pods that still run and could not start again, because the step deleted what they name. Images,
nodes and probes are assumed to be good, prerequisites to exist, and Jobs may fail.

The damage is `outage` if pods of the workload were ready before the step and none is now. It is `failed-deploy` if
pods of the previous revision still run, or if nothing ran before.

A rule that knows the cause reports it under its own name. A client that waits hangs for the same reason: that is
reported here as well, once. A workload that a step with another input repairs is not reported: the old revision was
broken, and the new one is not.

## Example
```yaml
kind: Secret
metadata: {name: db}
stringData: {user: shop}
---
kind: Deployment
metadata: {name: shop}
spec:
  template:
    spec:
      containers:
        - name: shop
          image: registry.example/shop:1
          env:
            - name: PASSWORD
              valueFrom: {secretKeyRef: {name: db, key: password}}     # Secret db has no such key
```

## Instead
Create what the pod names in the same release or before it, correct the name or the key, or mark the reference with
`optional: true`. `helm install --wait`, `kubectl rollout status` and health checks of GitOps engines show the failure
at deploy time; they do not prevent it.

## Fix safety
There is no automatic fix: what the pod lacks is decided outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.evidence.breaches import Breach, Breaches, unexplained
from seatrial.evidence.unstarted import CRASHES, POD, Unstarted, breaches, unstarted
from seatrial.kinds import PRINTED
from seatrial.model.finding import Finding, Invariant, Reviewed
from seatrial.model.resource import dig
from seatrial.model.timeline import Event
from seatrial.phrases.breaches import breach_finding, ended_sentence, names
from seatrial.phrases.headline import fit_quote
from seatrial.phrases.objects import in_kubectl

ACCOUNT = "ServiceAccount"
DEPRECATED = (
    "The template no longer has serviceAccountName, but the API server has copied the name into the deprecated field "
    "serviceAccount, which no client removes: the live template still names it."
)
"""kubernetes/kubernetes#72519 and #76367."""
SET_ACCOUNT = (
    "Set serviceAccountName in the pod template of {0}, at the place above: default, or a ServiceAccount that exists. "
    "It overrides the deprecated field."
)
ADD_KEY = "Add the key {0} to {1}, or correct the reference at the place above, or mark it with optional: true."
ADD_OBJECT = "Let the release contain {0}, or correct the reference to it at the place above."


def check(trial: Sequence[Reviewed]) -> Iterator[Finding]:
    yield from map(_finding, unexplained(trial, breaches))


def _finding(group: Breaches) -> Finding:
    first, moment = group.first, group.first.moment
    one = _of(first)
    again = "" if one.said else " again"
    some = f"{'new ' if one.was_ready else ''}pods of " if one.said and one.ready else ""
    finding = breach_finding(
        INVARIANT,
        group,
        fit_quote(f"{some}{names(group.objects)} cannot start{again} after {moment.act}", f": {_what(one)}"),
        steps="end like this",
        answer=_answer(one),
        ended=ended_sentence(moment),
        confirm=_confirm(one),
    )
    return replace(finding, way_out=tuple(_way_out(one)))


def _of(breach: Breach) -> Unstarted:
    every = unstarted(breach.moment.rehearsal, breach.moment.case)
    return next(one for one in every if (one.moment.index, one.object) == (breach.moment.index, breach.object))


def _what(one: Unstarted) -> str:
    """The reason in a few words, or in those of the kubelet, the scheduler or the API server."""
    if one.key:
        return f"{one.missing[0]} has no key {one.key}"
    gone = [ref for ref in one.missing if one.moment.live(ref) is None]
    if gone and (one.said is None or one.said.reason != PRINTED):
        return f"{names(gone)} {'do' if gone[1:] else 'does'} not exist"
    if one.said is not None and one.said.reason == CRASHES:
        return "a container exits at start"
    return _first_line(one.said).rpartition("is forbidden: ")[2]


def _answer(one: Unstarted) -> str:
    if _is_deprecated(one):
        return DEPRECATED
    said = _first_line(one.said)
    return f'{one.said.actor} reports: "{said}"' if one.said else ""


def _first_line(said: Event | None) -> str:
    return said.message.partition("\n")[0] if said else ""


def _is_deprecated(one: Unstarted) -> bool:
    """Whether only the deprecated field of the live template still names a ServiceAccount."""
    named = dig(one.moment.live(one.object), *POD, "serviceAccount")
    return (
        any(ref.kind == ACCOUNT and ref.name == named for ref in one.missing)
        and dig(one.written.body, *POD, "serviceAccountName") is None
        and dig(one.written.body, *POD, "serviceAccount") is None
    )


def _confirm(one: Unstarted) -> str:
    if one.said is None:
        return f"kubectl get {in_kubectl(one.missing[0])}"
    return f"kubectl get events -n {one.said.object.namespace} --field-selector reason={one.said.reason}"


def _way_out(one: Unstarted) -> Iterator[str]:
    """For what is missing; else the usual one."""
    if one.key:
        yield ADD_KEY.format(one.key, one.missing[0])
    elif _is_deprecated(one):
        yield SET_ACCOUNT.format(one.object)
    elif one.missing and one.moment.live(one.missing[0]) is None:
        yield ADD_OBJECT.format(one.missing[0])


INVARIANT = Invariant("ST007", "cannot-start", check)
