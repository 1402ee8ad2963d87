"""A Secret is made by an operator out of another object, and something needs it before it can be there.

## What happens
An ExternalSecret, a SealedSecret, a database's custom resource: each leads to a Secret, some time after it was made and
as long as its operator runs. For Helm the object is done when it is created. A pod that starts too early says
`secret "..." not found` and is tried again without end or count, so an ordinary Deployment comes right by itself, and
nothing is reported of it. Two things do not:

- A hook that needs the Secret of a plain object of the release. Helm makes plain objects when the hooks have ended, and
  waits for the hook: neither comes. The same where the operator itself is part of the release.
- An upgrade that changes both what the Secret is made of and the pods that read it. Helm updates custom kinds last, so
  the new pods start with the old Secret, run, and keep it: environment variables are read once. Helm reports success.

`--wait` does not help with either: it waits for the pods, which are ready, and knows nothing of the Secret.

## Example
```yaml
apiVersion: external-secrets.io/v1
kind: ExternalSecret               # a plain object
metadata: {name: db}
---
kind: Job
metadata:
  annotations: {helm.sh/hook: pre-install,pre-upgrade}      # reads Secret db
```

## Instead
Run the Job as a post-install hook; or make the ExternalSecret a hook of the same event with a lower weight: the Job
then starts at once, waits for the Secret as any pod does, and gets it. For pods that run, mount the Secret, or use a
reloader that watches it; a checksum in the template is one of what the Secret is made of, and comes too early.

## Fix safety
A hook is deleted before it is made again, and the Secret that it owns with it: pods that start in between wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import restarted
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import needs_of, products_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import how
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.produced import IMAGE, awaited, told_of

CERTIFICATE = "Certificate"
READ_ONCE = ("env", "envFrom")
INSTEAD = (
    "Run it as a post-install hook, or make what the Secret comes from a hook of the same event with a lower weight: "
    "its pod then waits for the Secret as any pod does."
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in awaited(rehearsal, case):
        if one.need.object.kind != IMAGE and one.producer.ref.kind != CERTIFICATE:
            yield told_of(RULE, rehearsal, case, one, INSTEAD)
    for moment in moments(rehearsal, case):
        if moment.ended.action == "upgrade" and moment.ended.outcome == "ok":
            yield from _stale(moment)


def _stale(moment: Moment) -> Iterator[Finding]:
    """Pods that an upgrade starts anew, before what their Secret is made of is changed."""
    old, new = moment.before, moment.release
    if old is None or new is None:
        return
    for producer in new.resources:
        was = old.find(producer.ref)
        if was is None or hooks.is_hook(producer.body) or was.body.get("spec") == producer.body.get("spec"):
            continue
        for secret in products_of(producer):
            for user, need in _readers(moment, new.resources, secret):
                events = _in_order(moment, user.ref, producer.ref)
                if events:
                    yield _started_early(moment, user, need, producer, events)


def _readers(moment: Moment, resources: tuple[Resource, ...], secret: Ref) -> Iterator[tuple[Resource, Need]]:
    """Who reads a Secret only when it starts, and starts anew in this step."""
    for resource in resources:
        for need in needs_of(resource):
            if need.object == secret and any(part in READ_ONCE for part in need.field):
                if restarted(moment, resource.ref):
                    yield resource, need
                break


def _in_order(moment: Moment, first: Ref, second: Ref) -> list[Event]:
    """Helm's changes of two objects, where it made them in this order."""
    done = {e.object: e for e in moment.events() if e.actor == "helm" and e.effect == "changed"}
    if first in done and second in done and done[first].index < done[second].index:
        return [done[first], done[second]]
    return []


def _started_early(moment: Moment, user: Resource, need: Need, producer: Resource, events: list[Event]) -> Finding:
    return found(
        RULE,
        moment,
        objects=[user.ref, need.object],
        damage="outage",
        certainty="may",
        message=f"helm upgrade restarts {user.ref} before it changes {producer.ref}, from which {need.object} is made: "
        "its pods may start with the old one and keep it",
        details=(
            f"Helm updates kinds that it does not know last: {user.ref} first, then {producer.ref}; the Secret follows "
            "when the operator has seen that.",
            f"{user.ref} {how(need)} it into its environment, which is read once, when a container starts. Pods that "
            "were faster stay as they are, and are ready: Helm reports success, with --wait as well.",
            "Nothing fails, so it shows only where the old value no longer works. Another rollout cures it.",
        ),
        places=[producer.place("spec"), user.place(*need.field)],
        evidence=events,
        confirm=f"kubectl get {in_kubectl(need.object)} --show-managed-fields "
        "-o jsonpath='{.metadata.managedFields[*].time}'  # later than the start of the pods",
    )


RULE = Rule("ST604", "secret-produced-asynchronously", check)
