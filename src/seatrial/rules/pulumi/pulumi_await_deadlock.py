"""Pulumi waits for an object that needs another one, which is created only after the first is ready.

## What happens
After creating an object of some kinds, Pulumi waits until it is ready. Deployments, StatefulSets and Pods must be
ready, a Job must complete, a PVC must be bound, an Ingress and a Service of type LoadBalancer must have an address.
Everything that depends on the object starts only then, and an input built from its outputs is a dependency like
`dependsOn`.

So a Deployment that mounts a Secret which is created after it never becomes ready, and the Secret is never created: a
deadlock. Pulumi waits for ten minutes and gives up. Its output mentions the pods, and not the resource that has not
started.

The same happens if the condition can never be met. A StatefulSet is ready when all its pods are of the newest revision,
so one with a `partition` never is after a change. A DaemonSet with `updateStrategy: OnDelete` waits until a user
deletes the pods by hand. The change is made, but Pulumi gives up on it, and everything that depends on it is not
deployed.

A failed Job ends the wait only if it ran out of retries or time (`BackoffLimitExceeded`, `DeadlineExceeded`). One that
its `podFailurePolicy` ends is waited for until the timeout. A PVC without a class, in a cluster without a default
class, is never bound. An Ingress waits for an address in its status, which some controllers never write, such as
Traefik behind a NodePort. seatrial does not know which controller runs, and assumes that one does.

Pulumi does not wait for a PVC whose class binds at the first consumer, nor for a Service without pods: older versions
of the provider did and hung there too.

## Example
```yaml
resources:
  api:
    type: kubernetes:apps/v1:Deployment            # mounts the Secret api-key
  key:
    type: kubernetes:core/v1:Secret
    properties: {metadata: {name: api-key}}
    options: {dependsOn: ["${api}"]}               # created when the Deployment is ready
```

## Instead
Reverse the dependency: what an object needs must come before it. If both need each other, write the name of one as text
instead of an output, or set `pulumi.com/skipAwait: "true"` on the object that Pulumi waits for.

## Fix safety
`skipAwait` also applies to updates and deletions: dependents can then no longer rely on the object being ready.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import programs
from seatrial.evidence.volumes import CLAIM
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import Program, Registration, effective, short
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl

ALL_IS_WELL = (
    "The change itself succeeded; only Pulumi treats it as failed. Nothing that depends on it is created, and every "
    "further up waits again."
)
ONLY_TWO_REASONS = "Pulumi gives up at once only for the reasons BackoffLimitExceeded and DeadlineExceeded."
NO_CLASS = (
    "The cluster has no default StorageClass. kubectl and Helm without --wait continue and leave the PVC pending. "
    "A default StorageClass, or one that the PVC "
    "names, lets it be bound."
)
SKIPPED = (
    'pulumi.com/skipAwait: "true" on the object skips the wait; pulumi.com/timeoutSeconds makes Pulumi give up sooner.'
)


class Trap(Struct, frozen=True):
    """A condition that Pulumi waits for and that never becomes true."""

    why: str
    detail: str
    confirm: str


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment, program in programs(rehearsal, case):
        if moment.ended.outcome != "hung":
            continue
        pairs = list(_waiting_for_each_other(program, moment.ended.waits_for, moment.ended.lacking))
        if pairs:
            yield _finding(moment, pairs)
            return
        for one in program.registrations:
            if one.ref in moment.ended.waits_for and (trap := _trap(moment, one)):
                yield _waits_forever(moment, one, trap)
                return


def _waiting_for_each_other(
    program: Program, waited: tuple[Ref, ...], lacking: tuple[Ref, ...]
) -> Iterator[tuple[Registration, Registration]]:
    """Pairs: what Pulumi waits for, and what that lacks and comes after it."""
    by_ref = {one.ref: one for one in program.registrations if one.ref is not None and not one.reads}
    for first in (by_ref[ref] for ref in waited if ref in by_ref):
        for second in (by_ref[ref] for ref in lacking if ref in by_ref):
            if first.urn in effective(program, second):
                yield first, second


def _trap(moment: Moment, one: Registration) -> Trap | None:
    """Why an object never meets Pulumi's condition, whatever else is created."""
    assert one.ref is not None
    live = moment.live(one.ref) or {}
    if held := _held_back(one.object or {}):
        because, why = held
        rolled_out = f"kubectl rollout status {in_kubectl(one.ref)}  # done, while pulumi up waits"
        detail = f"It waits until every pod is of the new revision, and {why}. {ALL_IS_WELL}"
        return Trap(f"{one.ref} keeps old pods, because {because}", detail, rolled_out)
    failed = next((c for c in listed(live, "status", "conditions") if c.get("type") == "Failed"), None)
    if one.ref.kind == "Job" and failed is not None:
        detail = f'{one.ref} has failed ({failed.get("reason")}): "{failed.get("message")}". {ONLY_TWO_REASONS}'
        shown = f"kubectl describe {in_kubectl(one.ref)}  # Failed, while pulumi up waits"
        return Trap(f"it waits for {one.ref} to complete, which has failed permanently", detail, shown)
    if one.ref.kind == CLAIM and not dig(live, "spec", "storageClassName"):
        shown = "kubectl get storageclass  # none is the default"
        return Trap(
            f"it waits for {one.ref} to be bound, which has no StorageClass",
            NO_CLASS,
            shown,
        )
    return None


def _held_back(body: Body) -> tuple[str, str] | None:
    """The setting with which an object keeps pods of an old revision, and what it does."""
    strategy = dig(body, "spec", "updateStrategy") or {}
    partition = dig(strategy, "rollingUpdate", "partition")
    if body.get("kind") == "StatefulSet" and partition:
        return f"of its partition of {partition}", "its partition keeps the pods below it at the old revision"
    if body.get("kind") == "DaemonSet" and strategy.get("type") == "OnDelete":
        return "its updateStrategy is OnDelete", "with OnDelete its pods stay until a user deletes them"
    return None


def _waits_forever(moment: Moment, one: Registration, trap: Trap) -> Finding:
    assert one.ref is not None
    return found(
        RULE,
        moment,
        objects=[one.ref],
        damage="failed-deploy",
        message=f"pulumi up hangs: {trap.why}",
        details=(f"Pulumi {moment.ended.error}", trap.detail, SKIPPED),
        places=[one.place] if one.place else [],
        evidence=[event for event in moment.events() if event.object == one.ref][:4],
        confirm=trap.confirm,
    )


def _finding(moment: Moment, pairs: list[tuple[Registration, Registration]]) -> Finding:
    first, second = pairs[0]
    assert first.ref is not None and second.ref is not None
    ended = moment.ended
    waiting = moment.case.written(moment.index, first.ref)
    places = [place for one in (second, first) if (place := one.place)]
    return found(
        RULE,
        moment,
        objects=[first.ref, second.ref],
        damage="failed-deploy",
        message=f"pulumi up hangs: it waits for {first.ref}, which needs {second.ref}",
        details=(
            f"Pulumi {ended.error}",
            f"Pulumi creates {second.ref} only after that. {_why(first, second)}",
            "Nothing that depends on either is created, and every further up hangs the same way.",
        ),
        places=places or ([waiting.place("kind")] if waiting else []),
        evidence=[event for event in moment.events() if event.object == first.ref][:4],
        confirm=f"kubectl describe {in_kubectl(first.ref)}  # while pulumi up waits",
    )


def _why(first: Registration, second: Registration) -> str:
    if first.urn in second.asked:
        return f"{short(second.urn)} names {short(first.urn)} in dependsOn."
    keys = [key for key, urns in second.property_dependencies.items() if first.urn in urns]
    if keys:
        return (
            f"{short(second.urn)} depends on {short(first.urn)}: its {', '.join(keys)} uses an output of "
            f"{short(first.urn)}."
        )
    return f"{short(second.urn)} depends on {short(first.urn)} through others."


RULE = Rule("ST902", "pulumi-await-deadlock", check)
