"""A Deployment does a rolling update with a volume that only one node may use: the new pod waits for the old one.

## What happens
With `RollingUpdate` and `maxUnavailable` 0 (25 % of one to three replicas rounds down to 0) the old pod is stopped only
after the new one is ready. A ReadWriteOnce volume can be attached to one node. If the scheduler puts the new pod on
another node, it waits with `Multi-Attach error` for a volume that the old pod holds until the new one is ready. On the
same node it works, so a single-node cluster never shows the problem. With ReadWriteOncePod it never works: only one pod
may use the volume, on any node.

Without `--wait` Helm reports success, and ten minutes later the Deployment reports `ProgressDeadlineExceeded`. With
`--wait` or `--atomic` Helm fails at its timeout, and a rollback has the same problem. Two Deployments that share such a
PVC have it from the first install on.

For a single chart version the finding is *may*: it happens at the first change of the pod template.

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
`maxSurge: 0` with `maxUnavailable: 1` stops the old pod first, which means downtime. So does `strategy: {type:
Recreate}`. A StatefulSet always stops the old pod first. Or use a ReadWriteMany volume.

## Fix safety
Both mean downtime at every change. The API server rejects `Recreate` together with `rollingUpdate`, which it sets by
default: server-side apply (Helm 4, Flux) cannot change a Deployment that exists to `Recreate`, not even with
`rollingUpdate: null`. Helm 3 and `kubectl apply` can.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import newest, owner_of, restarted
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.volumes import CLAIM
from seatrial.kinds.workloads.rollout import rollout_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Pointer, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import first_named, named

OTHER_POD = "FailedScheduling"
"""The reason if another pod has a ReadWriteOncePod volume. Otherwise another node has a ReadWriteOnce volume."""
SHARED = ("ReadWriteMany", "ReadOnlyMany")
ONE_POD = "ReadWriteOncePod allows one pod, on any node, so this never succeeds."
ONE_NODE = (
    "ReadWriteOnce allows one node: it succeeds if the scheduler puts both pods on the same node, as on a single-node "
    "cluster."
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for event in rehearsal.timeline:
        if event.effect != "said" or event.step < 0 or not event.held_by:
            continue
        moment = Moment(rehearsal, case, event.step)
        workload = owner_of(moment, event.object, event.after)
        if workload is None or workload.kind != "Deployment" or workload in reported:
            continue
        others = [owner for owner in _holders(moment, event) if owner != workload]
        reported.update((workload, *others))
        yield _seen(moment, event, workload, others)
    yield from _next_changes(rehearsal, case, reported)


def _seen(moment: Moment, event: Event, workload: Ref, others: list[Ref]) -> Finding:
    result, written = moment.ended, moment.case.written(moment.index, workload)
    claims = list(_claims(event.after or {}, workload.namespace))
    holds = f"a pod of {named(others)} holds" if others else "the old pod holds"
    return found(
        RULE,
        moment,
        objects=[workload, *claims],
        damage="failed-deploy",
        message=f"a pod of {workload} waits for {named(claims)}, which {holds}",
        details=(
            f'{event.object} reports: "{event.message}"',
            "" if others else _why(written),
            ONE_POD if event.reason == OTHER_POD else ONE_NODE,
            f"{moment.rehearsal.label} reports success; after ten minutes the Deployment reports "
            "ProgressDeadlineExceeded."
            if result.outcome == "ok"
            else f"The {result.action} {result.outcome}: {result.error}.",
        ),
        places=[*_strategy(written), *_modes(moment, claims)],
        evidence=[event],
        confirm=f"kubectl describe pod -n {workload.namespace}  # FailedAttachVolume, while the other one is Running",
    )


def _holders(moment: Moment, event: Event) -> Iterator[Ref]:
    """The workloads of the pods that hold the volume."""
    for pod in event.held_by:
        owner = owner_of(moment, pod)
        if owner is not None:
            yield owner


def _next_changes(rehearsal: Rehearsal, case: Case, reported: set[Ref]) -> Iterator[Finding]:
    """Deployments that fail at the next change of their pod template."""
    deployed = newest(rehearsal, case)
    if deployed is None:
        return
    moment, release = deployed
    for resource in release.resources:
        if resource.ref.kind != "Deployment" or resource.ref in reported or not _keeps_old_pods(resource.body):
            continue
        if any(restarted(step, resource.ref) for step in moments(rehearsal, case)):
            continue  # This rehearsal shows that it succeeds; one in which it does not reports it as seen.
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
        message=f"the next new pod of {resource.ref} waits for {first_named(claims)}, which the old pod holds",
        details=(
            _why(resource),
            "The old pod holds it until the new one is ready. It happens when the pod template changes and the "
            "scheduler puts the new pod on another node: "
            '"Multi-Attach error for volume ... Volume is already used by pod(s) ...".',
        ),
        places=[*_strategy(resource), *_modes(moment, claims)],
        confirm=f"kubectl rollout restart deployment {resource.ref.name} -n {resource.ref.namespace}  # on two nodes",
    )


def _claims(pod: Body | None, namespace: str) -> Iterator[Ref]:
    for volume in listed(pod, "spec", "volumes"):
        if name := dig(volume, "persistentVolumeClaim", "claimName"):
            yield Ref(CLAIM, namespace, str(name))


def _is_for_one(release: Release, claim: Ref) -> bool:
    """Whether the release restricts the volume to one node or one pod."""
    written = release.find(claim)
    modes = listed(written.body, "spec", "accessModes") if written else []
    return bool(modes) and not any(mode in SHARED for mode in modes)


def _keeps_old_pods(deployment: Body) -> bool:
    """Whether old pods are stopped only after new ones are ready."""
    rollout = rollout_of(deployment, ())
    return rollout.rolls and rollout.replicas > 0 and rollout.unavailable_max == 0


def _why(written: Resource | None) -> str:
    if written is None or not _keeps_old_pods(written.body):
        return ""
    replicas = rollout_of(written.body, ()).replicas
    many = "1 replica" if replicas == 1 else f"{replicas} replicas"
    return f"With {many}, maxUnavailable is 0: the old pod is stopped only after the new one is ready."


def _strategy(written: Resource | None) -> list[Pointer]:
    return [written.place("spec", "strategy")] if written else []


def _modes(moment: Moment, claims: list[Ref]) -> list[Pointer]:
    written = (moment.case.written(moment.index, claim) for claim in claims)
    return [resource.place("spec", "accessModes") for resource in written if resource is not None]


RULE = Rule("ST306", "rwo-rollingupdate-deadlock", check)
