"""Pulumi waits for an object that needs another one, which is not made before the first is ready.

## What happens
Pulumi does not go on after it has made an object: for some kinds it waits until the object is as it should be. A
Deployment, a StatefulSet and a Pod have to be ready, a Job has to complete, a claim has to be bound, an Ingress has
to have an address, a Service of type LoadBalancer too. Whatever depends on the object begins only then, and an input
that is made of its outputs is a dependency like `dependsOn`.

So a Deployment that mounts a Secret which is made after it never gets ready, and the Secret is never made: each waits
for the other. Pulumi waits for ten minutes and gives up. What is shown meanwhile speaks of pods, and nothing of the
resource that has not begun.

It is the same where what is waited for cannot come by itself. A StatefulSet is ready when all its pods are of the
newest revision, so one with a `partition` never is after a change: the pods below the partition are to stay as they
are. A DaemonSet with `updateStrategy: OnDelete` waits until somebody deletes the pods by hand. The change is there, and
Pulumi gives up on it all the same, with all that depends on it undone.

A Job that fails ends the wait only where it has run out of tries or of time (`BackoffLimitExceeded`,
`DeadlineExceeded`). One that its `podFailurePolicy` ends is waited for to the last second. A claim without a class, in
a cluster that has no default one, is never bound. An Ingress waits for an address that its controller writes into its
status; some never do, as Traefik behind a NodePort. Which controller runs is not known here, and it is taken to.

A claim whose class binds at the first consumer is not waited for, and neither is a Service that has no pods behind it:
older versions of the provider locked up there too.

## Example
```yaml
resources:
  api:
    type: kubernetes:apps/v1:Deployment            # mounts the Secret api-key
  key:
    type: kubernetes:core/v1:Secret
    properties: {metadata: {name: api-key}}
    options: {dependsOn: ["${api}"]}               # is made when the Deployment is ready
```

## Instead
Turn the dependency round: what an object needs comes before it. Where both need each other, give the one the name of
the other as text rather than as an output, or say `pulumi.com/skipAwait: "true"` on the one that is to be waited for.

## Fix safety
`skipAwait` goes for updates and deletions too: what depends on the object is then never sure that it is ready.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.volumes import CLAIM
from seatrial.model.finding import Finding, Rule
from seatrial.model.program import Program, Registration, effective, short
from seatrial.model.release import Case
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl

ALL_IS_WELL = (
    "The change has been made and is as it was asked for: only Pulumi takes it for a failure. Nothing of what depends "
    "on it is made, and every up after it waits again."
)
ONLY_TWO_REASONS = "Pulumi gives up at once only where the reason is BackoffLimitExceeded or DeadlineExceeded."
NO_CLASS = (
    "kubectl and Helm without --wait go on and leave the claim pending. A StorageClass that is the default, or one "
    "that the claim names, lets it be bound."
)
SKIPPED = (
    'pulumi.com/skipAwait: "true" on the object lets Pulumi go on; pulumi.com/timeoutSeconds lets it give up sooner.'
)


class Trap(Struct, frozen=True):
    """Something that Pulumi waits for and that never comes."""

    why: str
    told: str
    confirm: str


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = moment.release if moment.index < len(case.releases) else None
        if moment.ended.outcome != "hung" or release is None or release.program is None:
            continue
        pairs = list(_waiting_for_each_other(release.program, moment.ended.waits_for, moment.ended.lacking))
        if pairs:
            yield _finding(moment, pairs)
            return
        for one in release.program.registrations:
            if one.ref in moment.ended.waits_for and (trap := _trap(moment, one)):
                yield _waits_for_ever(moment, one, trap)
                return


def _waiting_for_each_other(
    program: Program, waited: tuple[Ref, ...], lacking: tuple[Ref, ...]
) -> Iterator[tuple[Registration, Registration]]:
    """What is waited for, and what it lacks and what comes after it."""
    by_ref = {one.ref: one for one in program.registrations if one.ref is not None and not one.reads}
    for first in (by_ref[ref] for ref in waited if ref in by_ref):
        for second in (by_ref[ref] for ref in lacking if ref in by_ref):
            if first.urn in effective(program, second):
                yield first, second


def _trap(moment: Moment, one: Registration) -> Trap | None:
    """Why an object is never what Pulumi waits for, by itself and whatever else is made."""
    assert one.ref is not None
    live = moment.live(one.ref) or {}
    if why := _held_back(one.object or {}):
        rolled_out = f"kubectl rollout status {in_kubectl(one.ref)}  # done, while pulumi up waits"
        return Trap(f"it waits until every pod of {one.ref} is of the new revision, and {why}", ALL_IS_WELL, rolled_out)
    failed = next((c for c in listed(live, "status", "conditions") if c.get("type") == "Failed"), None)
    if one.ref.kind == "Job" and failed is not None:
        told = f'{one.ref} has failed ({failed.get("reason")}): "{failed.get("message")}". {ONLY_TWO_REASONS}'
        shown = f"kubectl describe {in_kubectl(one.ref)}  # Failed, while pulumi up waits"
        return Trap(f"it waits for {one.ref} to complete, which has failed for good", told, shown)
    if one.ref.kind == CLAIM and not dig(live, "spec", "storageClassName"):
        shown = "kubectl get storageclass  # none is the default"
        return Trap(
            f"it waits for {one.ref} to be bound, which names no class where none is the default", NO_CLASS, shown
        )
    return None


def _held_back(body: Body) -> str:
    """Why an object keeps pods of an old revision of its own accord."""
    strategy = dig(body, "spec", "updateStrategy") or {}
    partition = dig(strategy, "rollingUpdate", "partition")
    if body.get("kind") == "StatefulSet" and partition:
        return f"its partition of {partition} keeps the pods below it at the old revision"
    if body.get("kind") == "DaemonSet" and strategy.get("type") == "OnDelete":
        return "with OnDelete its pods stay as they are until somebody deletes them"
    return ""


def _waits_for_ever(moment: Moment, one: Registration, trap: Trap) -> Finding:
    assert one.ref is not None
    return found(
        RULE,
        moment,
        objects=[one.ref],
        damage="failed-deploy",
        message=f"pulumi up hangs: {trap.why}",
        details=(f"Pulumi {moment.ended.error}", trap.told, SKIPPED),
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
        message=f"pulumi up hangs: it waits for {first.ref}, which lacks {second.ref}, which is made only after it",
        details=(
            f"Pulumi {ended.error}",
            _why(first, second),
            "Nothing of what depends on either is made, and every up after it does the same.",
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
        return f"{short(second.urn)} depends on {short(first.urn)}: its {', '.join(keys)} is made of outputs of that."
    return f"{short(second.urn)} depends on {short(first.urn)} through others."


RULE = Rule("ST902", "pulumi-await-deadlock", check)
