"""An operator creates a Secret from another object, and something needs the Secret before it exists.

## What happens
An ExternalSecret, a SealedSecret, a database custom resource: an operator creates a Secret from each, some time later,
while it runs. Helm considers the object done when it is created. A pod that starts too early reports `secret "..." not
found` and is retried without limit, so an ordinary Deployment recovers by itself and is not reported. Two cases do not
recover:

- A hook needs the Secret of a regular resource. Helm creates regular resources after the hooks have completed, and
  waits for the hook: a deadlock. The same if the operator itself is part of the release.
- An upgrade changes both the source of the Secret and the pods that read it. Helm updates custom resources last, so the
  new pods start with the old Secret and keep it: environment variables are read once. Helm reports success.

`--wait` helps with neither: it waits for the pods, which are ready, and knows nothing about the Secret.

## Example
```yaml
apiVersion: external-secrets.io/v1
kind: ExternalSecret               # a regular resource
metadata: {name: db}
---
kind: Job
metadata:
  annotations: {helm.sh/hook: pre-install,pre-upgrade}      # reads Secret db
```

## Instead
Run the Job as a post-install hook; or make the ExternalSecret a hook of the same event with a lower weight: the Job's
pod then waits for the Secret like any pod. For running pods, mount the Secret or use a reloader that watches it; a
checksum in the template covers the source of the Secret, not the Secret, and changes too early.

## Fix safety
Helm deletes a hook before it creates it again, together with the Secret it owns: pods that start meanwhile wait.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.described import products
from seatrial.evidence.history import restarted
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import how
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named
from seatrial.phrases.produced import IMAGE, IN_A_CYCLE, awaited, finding_about, store_of

CERTIFICATE = "Certificate"
READ_ONCE = ("env", "envFrom")
INSTEAD = (
    "Run {} as a post-install hook, or make {} a hook of the same event with a lower weight: the pod then waits for "
    "the Secret like any pod."
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in awaited(rehearsal, case):
        if one.need.object.kind == IMAGE or one.producer.ref.kind == CERTIFICATE:
            continue
        if one.store is None or one.store.ref == one.user.ref:  # Others that read the Secret only wait for the cycle.
            yield finding_about(RULE, rehearsal, case, one, INSTEAD.format(one.user.ref, one.producer.ref))
    for moment in moments(rehearsal, case):
        if moment.ended.outcome == "ok":
            yield from _cycles(moment)
        if moment.ended.action == "upgrade" and moment.ended.outcome == "ok":
            yield from _stale(moment)


def _cycles(moment: Moment) -> Iterator[Finding]:
    """Stores that wait for a Secret that they are to provide, if the engine waits for none of it."""
    for producer in moment.release.resources if moment.release else ():
        for secret in products(moment.case, producer):
            store = store_of(moment.case, producer, secret)
            if store is None or moment.live(secret) is not None or moment.live(store.ref) is None:
                continue
            need = next(need for need in needs_of(store) if need.object == secret)
            yield _waiting(moment, producer, store, need)


def _waiting(moment: Moment, producer: Resource, store: Resource, need: Need) -> Finding:
    said = [e for e in moment.events() if e.effect == "said" and e.object == producer.ref]
    readers = [r.ref for r in moment.case.all_resources() if r.ref != store.ref and need.object in _read(r)]
    return found(
        RULE,
        moment,
        objects=[store.ref, need.object],
        damage="failed-deploy",
        message=f"{store.ref} and {producer.ref} wait for each other after {moment.act}",
        details=(
            f"{producer.ref} reads {need.object} through {store.ref}, and that needs the same Secret first.",
            f'{producer.ref} reports: "{said[-1].message}".' if said else "",
            f"{moment.speaker} reports success; {first_named(readers)} never starts." if readers else "",
        ),
        way_out=(IN_A_CYCLE.format(store.ref),),
        places=[store.place(*need.field), producer.place("metadata", "name")],
        evidence=said[-1:],
        confirm=f"kubectl get {in_kubectl(producer.ref)}  # never becomes ready",
    )


def _read(resource: Resource) -> set[Ref]:
    return {need.object for need in needs_of(resource) if not need.optional and not need.guess}


def _stale(moment: Moment) -> Iterator[Finding]:
    """Pods that an upgrade restarts before it changes the source of their Secret."""
    old, new = moment.before, moment.release
    if old is None or new is None:
        return
    for producer in new.resources:
        was = old.find(producer.ref)
        if was is None or hooks.is_hook(producer.body) or was.body.get("spec") == producer.body.get("spec"):
            continue
        for secret in products(moment.case, producer):
            for user, need in _readers(moment, new.resources, secret):
                events = _in_order(moment, user.ref, producer.ref)
                if events:
                    yield _started_early(moment, user, need, producer, events)


def _readers(moment: Moment, resources: tuple[Resource, ...], secret: Ref) -> Iterator[tuple[Resource, Need]]:
    """Workloads that read the Secret only at start, and restart in this step."""
    for resource in resources:
        for need in needs_of(resource):
            if need.object == secret and any(part in READ_ONCE for part in need.field):
                if restarted(moment, resource.ref):
                    yield resource, need
                break


def _in_order(moment: Moment, first: Ref, second: Ref) -> list[Event]:
    """Helm's changes of two objects, if it made them in this order."""
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
        message=f"helm upgrade restarts {user.ref} before {producer.ref} changes: it may keep old values",
        details=(
            f"{producer.ref} is the source of {need.object}. Helm updates custom resources last: first {user.ref}, "
            f"then {producer.ref}. The operator updates the "
            "Secret after that.",
            f"{user.ref} {how(need)} it into its environment, which a container reads once, when it starts. Pods that "
            "start earlier keep the old value and are ready, so Helm reports success, also with --wait.",
            "Nothing fails until the old value stops working. Another rollout fixes it.",
        ),
        places=[producer.place("spec"), user.place(*need.field)],
        evidence=events,
        confirm=f"kubectl get {in_kubectl(need.object)} --show-managed-fields "
        "-o jsonpath='{.metadata.managedFields[*].time}'  # later than the start of the pods",
    )


RULE = Rule("ST604", "secret-produced-asynchronously", check)
