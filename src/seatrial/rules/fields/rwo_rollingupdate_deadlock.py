"""A Deployment rolls its pods while they share a volume that one node may hold: the new pod waits for the old one.

## What happens
With `RollingUpdate` and `maxUnavailable` 0 (25 % of one to three replicas rounds down to 0) the old pod is stopped only
when the new one is ready. A ReadWriteOnce volume can be attached to one node. Where the scheduler puts the new pod on
another node, it waits with `Multi-Attach error` for a volume that the old pod holds until the new one is ready. On the
same node it works, which is why a cluster of one node never shows it. With ReadWriteOncePod it never works: one pod may
hold the volume, wherever it is.

Without `--wait` Helm reports success; ten minutes later the Deployment says `ProgressDeadlineExceeded`. With `--wait`
or `--atomic` Helm fails at its timeout, and a rollback meets the same. Two Deployments that share such a claim meet it
from the first day on.

For a chart alone it is a `may` that waits for the first change of the pod template.

## Example
```yaml
apiVersion: apps/v1
kind: Deployment
spec:
  replicas: 1                       # strategy: RollingUpdate is the default
  template:
    spec:
      volumes:
        - name: data
          persistentVolumeClaim: {claimName: data}    # accessModes: [ReadWriteOnce]
```

## Instead
`strategy: {type: Recreate}` stops the old pod first, at the price of a gap. So does `maxSurge: 0` with
`maxUnavailable: 1`. A StatefulSet does it by nature. Or a volume that is ReadWriteMany.

## Fix safety
`Recreate` means a gap at every change. Remove `rollingUpdate` with it, or the API server refuses both together.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.acts import label_of
from seatrial.evidence.history import newest, owner_of, restarted
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.volumes import CLAIM
from seatrial.kinds.workloads.rollout import rollout_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Pointer, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import named

ELSEWHERE = "Multi-Attach error for volume"
TAKEN = "PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
SHARED = ("ReadWriteMany", "ReadOnlyMany")
ONE_POD = "ReadWriteOncePod means one pod, on whatever node: this never goes through."
ONE_NODE = (
    "ReadWriteOnce means one node: it goes through where the scheduler puts both pods on the same one, as on a cluster "
    "with a single node."
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for event in rehearsal.timeline:
        if event.effect != "said" or event.step < 0 or not (ELSEWHERE in event.message or TAKEN in event.message):
            continue
        workload = owner_of(Moment(rehearsal, case, event.step), event.object, event.after)
        if workload is None or workload.kind != "Deployment" or workload in told:
            continue
        others = [owner for owner in _holders(rehearsal, case, event) if owner != workload]
        told.update((workload, *others))
        yield _seen(rehearsal, case, event, workload, others)
    yield from _waiting(rehearsal, case, told)


def _seen(rehearsal: Rehearsal, case: Case, event: Event, workload: Ref, others: list[Ref]) -> Finding:
    ended, written = rehearsal.steps[event.step], case.written(event.step, workload)
    claims = list(_claims(event.after or {}, workload.namespace))
    return found(
        RULE,
        Moment(rehearsal, case, event.step),
        objects=[workload, *claims],
        damage="failed-deploy",
        message=f"a pod of {workload} waits for {named(claims)}, which "
        + (f"a pod of {named(others)} holds" if others else "the old pod holds until the new one is ready"),
        details=(
            f'{event.object} says: "{event.message}"',
            "" if others else _why(written),
            ONE_POD if TAKEN in event.message else ONE_NODE,
            f"{label_of(rehearsal.engine)} reported success; after ten minutes the Deployment says "
            "ProgressDeadlineExceeded."
            if ended.outcome == "ok"
            else f"The {ended.action} {ended.outcome}: {ended.error}.",
        ),
        places=[*_strategy(written), *_modes(case, event.step, claims)],
        evidence=[event],
        confirm=f"kubectl describe pod -n {workload.namespace}  # FailedAttachVolume, while the other one is Running",
    )


def _holders(rehearsal: Rehearsal, case: Case, event: Event) -> Iterator[Ref]:
    """The workloads of the pods that the message names."""
    named_pods = event.message.partition("used by pod(s) ")[2]
    for name in filter(None, named_pods.split(", ")):
        pod = Ref("Pod", event.object.namespace, name)
        owner = owner_of(Moment(rehearsal, case, event.step), pod)
        if owner is not None:
            yield owner


def _waiting(rehearsal: Rehearsal, case: Case, told: set[Ref]) -> Iterator[Finding]:
    """Deployments whose next change of the pod template meets this."""
    deployed = newest(rehearsal, case)
    if deployed is None:
        return
    moment, release = deployed
    for resource in release.resources:
        if resource.ref.kind != "Deployment" or resource.ref in told or not _keeps_old_pods(resource.body):
            continue
        if any(restarted(step, resource.ref) for step in moments(rehearsal, case)):
            continue  # It was seen to go well here; where it does not, it is told as seen.
        claims = _claims(dig(resource.body, "spec", "template"), resource.ref.namespace)
        held = [ref for ref in claims if _is_for_one(release, ref)]
        if held:
            yield _next_change(moment, resource, held)


def _next_change(moment: Moment, resource: Resource, claims: list[Ref]) -> Finding:
    return found(
        RULE,
        moment,
        objects=[resource.ref, *claims],
        damage="failed-deploy",
        certainty="may",
        message=f"the next change of {resource.ref} starts a pod that waits for {named(claims)}, which the old pod "
        "holds until the new one is ready",
        details=(
            _why(resource),
            "It happens when the pod template changes and the scheduler puts the new pod on another node: "
            '"Multi-Attach error for volume ... Volume is already used by pod(s) ...".',
        ),
        places=[*_strategy(resource), *_modes(moment.case, moment.index, claims)],
        confirm=f"kubectl rollout restart deployment {resource.ref.name} -n {resource.ref.namespace}  # on two nodes",
    )


def _claims(pod: Body | None, namespace: str) -> Iterator[Ref]:
    for volume in listed(pod, "spec", "volumes"):
        if name := dig(volume, "persistentVolumeClaim", "claimName"):
            yield Ref(CLAIM, namespace, str(name))


def _is_for_one(release: Release, claim: Ref) -> bool:
    """Whether the release itself says that one node, or one pod, may hold the volume."""
    written = release.find(claim)
    modes = listed(written.body, "spec", "accessModes") if written else []
    return bool(modes) and not any(mode in SHARED for mode in modes)


def _keeps_old_pods(deployment: Body) -> bool:
    """Whether no old pod is stopped before a new one is ready."""
    rollout = rollout_of(deployment, ())
    return rollout.rolls and rollout.replicas > 0 and rollout.unavailable_max == 0


def _why(written: Resource | None) -> str:
    if written is None or not _keeps_old_pods(written.body):
        return ""
    replicas = rollout_of(written.body, ()).replicas
    many = "1 replica" if replicas == 1 else f"{replicas} replicas"
    return f"Of {many} none may be unavailable while it rolls: the old pod is stopped only when the new one is ready."


def _strategy(written: Resource | None) -> list[Pointer]:
    return [written.place("spec", "strategy")] if written else []


def _modes(case: Case, step: int, claims: list[Ref]) -> list[Pointer]:
    found = (case.written(step, claim) for claim in claims)
    return [resource.place("spec", "accessModes") for resource in found if resource is not None]


RULE = Rule("ST306", "rwo-rollingupdate-deadlock", check)
