"""A step deletes or recreates an object that the source still contains, and no other finding explains why.

## What happens
A step may create and update the objects of its source. It should not delete them: a deleted object loses what other
clients wrote into it, and its users fail until it is recreated. When a step deletes or recreates an object that its
source contains, the rules look for the cause: a hook with a delete policy, a Namespace that is deleted with everything
in it, a replacement. A rule that knows the cause reports it under its own name. If there is none, this finding is
reported.

The damage is

- `data-loss` for a bound PVC whose volume is deleted with it, for a Namespace or a CRD with objects in it, and for a
  Secret whose generated content cannot be restored;
- `outage` if running pods use the object: they mount it or run as it, it is a Service or an Ingress that leads to them,
  or a role or binding that grants their permissions; also for a webhook configuration or an APIService with a backend;
- `nuisance` otherwise, or if a ConfigMap, a Secret, a role, a binding or a webhook configuration is recreated at once
  and no pod misses it meanwhile.

An object that an upgrade drops and a rollback deploys again is reported only if its data is lost. Jobs and Pods are not
reported: they are meant to be deleted after they ran. A hook that is deleted by its own delete policy counts only if
something other than hooks uses it, or if pods that it keeps running are deleted with it. Uninstalling removes
everything by design; only objects with `helm.sh/resource-policy: keep` count there.

## Example
```yaml
apiVersion: v1
kind: Service
metadata:
  name: shop
  annotations: {helm.sh/hook: post-install,post-upgrade}   # every upgrade deletes and recreates it
```

## Instead
Read the chain of causes in the finding: it leads from the request to the deleted object. `seatrial run` prints all
events of the step. Make the step update the object instead of deleting it, or move the object out of the release.

## Fix safety
There is no automatic fix: the cause is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.evidence.breaches import Breach, Breaches, unexplained
from seatrial.evidence.losses import Loss, content, is_hook, losses
from seatrial.evidence.moment import moments
from seatrial.evidence.users import WEBHOOKS
from seatrial.evidence.volumes import CLAIM
from seatrial.model.finding import Finding, Invariant, Reviewed
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.breaches import breach_finding, ended_sentence, names
from seatrial.phrases.objects import confirm_twice


def check(trial: Sequence[Reviewed]) -> Iterator[Finding]:
    yield from map(_finding, unexplained(trial, _breaches))


def _breaches(rehearsal: Rehearsal, case: Case) -> Iterator[Breach]:
    for moment in moments(rehearsal, case):
        for loss in losses(moment):
            if loss.damage == "nuisance" and moment.ended.explicit:
                continue  # The user listed every object and expects this.
            yield Breach(moment, loss.object, loss.damage, _cause(loss), loss.chain, _why(loss))


def _cause(loss: Loss) -> str:
    """Groups losses: an object deleted with another object of the source is reported with it."""
    request, release = loss.request, loss.moment.release
    if request.actor not in loss.moment.rehearsal.actors:
        return f"{request.actor} {request.verb} {request.object}"
    asked = release.find(request.object) if release else None
    if asked is None:
        return f"{request.actor} drops"
    return f"{request.actor} deletes{' hooks' if is_hook(asked, request.actor) else ''}"


def _why(loss: Loss) -> str:
    said = []
    inside = content(loss.object, loss.with_it)
    if inside:
        said.append(f"Deleted with {loss.object}: {names(event.object for event in inside)}.")
    if loss.users and loss.object.kind not in WEBHOOKS:
        leads = loss.object.kind in ("Service", "Ingress")
        said.append(f"{loss.object} {'leads to' if leads else 'is used by'} {names(loss.users)}.")
    if loss.object.kind == CLAIM and loss.damage == "data-loss":
        said.append(f"The volume of {loss.object} is deleted with it.")
    return " ".join(said)


def _finding(group: Breaches) -> Finding:
    moment = group.first.moment
    verb = "deletes and recreates" if _is_back(group.first) else "deletes"
    return breach_finding(
        INVARIANT,
        group,
        f"{moment.act} {verb} {names(group.objects)}, which {_contains(group)}",
        ended=ended_sentence(moment),
        confirm=confirm_twice(group.first.object, "{.metadata.uid}", moment.act),
    )


def _is_back(breach: Breach) -> bool:
    return breach.object in breach.moment.ended.recreated


def _contains(group: Breaches) -> str:
    moment, ref = group.first.moment, group.first.object
    if moment.ended.role == "remove":
        return "the source marks to be kept"
    here = moment.release is not None and moment.release.find(ref) is not None
    return "the source still contains" if here else "a later step deploys again"


INVARIANT = Invariant("ST002", "object-lost", check)
