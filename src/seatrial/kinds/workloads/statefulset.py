"""StatefulSet: pods with stable names and PVCs, created, replaced and deleted in order.

From pkg/controller/statefulset/stateful_set_control.go and pkg/apis/apps/validation of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from msgspec import Struct

from seatrial.kinds import Act, Acts, Create, Delete, Emit, Kind, Need, Status, World, always
from seatrial.kinds.core.conditions import without_zeros
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.immutable import NEWEST, forbidden, immutable_field, invalid, selector
from seatrial.kinds.core.objectmeta import adopt, generation_of, is_terminating, namespace_of
from seatrial.kinds.scripts.containers import template_awaited
from seatrial.kinds.tables.internal_types import internal, shown
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.kinds.workloads.pods import is_finished, is_running_and_ready, phase_of, pod_from
from seatrial.kinds.workloads.replicaset import namespace_terminates
from seatrial.kinds.workloads.revisions import (
    HASH_LABEL,
    delete_old_revisions,
    keep_revision,
    revisions_of,
    template_of,
)
from seatrial.kinds.workloads.stateful_claims import keep_owners, make_claims, with_claims
from seatrial.model.resource import Body, Ref, dig, labels_of, listed, name_of

# Mutable fields by minor, in the order in which the error lists them.
MUTABLE = (
    (33, "replicas ordinals template updateStrategy revisionHistoryLimit persistentVolumeClaimRetentionPolicy"),
    (26, "replicas ordinals template updateStrategy persistentVolumeClaimRetentionPolicy"),
    (0, "replicas template updateStrategy persistentVolumeClaimRetentionPolicy"),
)
BY_FIELD_SINCE = 37
"""The minor since which each immutable field has its own error."""


class StatefulSetState(Struct, frozen=True):
    """A StatefulSet, its pods by ordinal, and its current and update revisions."""

    body: Body
    pods: dict[int, Body]
    current: Body
    update: Body

    @property
    def ordinals(self) -> range:
        start = int(dig(self.body, "spec", "ordinals", "start") or 0)
        replicas = dig(self.body, "spec", "replicas")
        return range(start, start + (1 if replicas is None else int(replicas)))

    @property
    def in_order(self) -> bool:
        return bool(dig(self.body, "spec", "podManagementPolicy") != "Parallel")


def needs(body: Body) -> Iterator[Need]:
    yield from template_needs("spec", "template")(body)
    yield from template_awaited(body)
    if name := dig(body, "spec", "serviceName"):
        yield Need(Ref("Service", namespace_of(body), str(name)), "serve", ("spec", "serviceName"))
    for index, template in entries(body, "spec", "volumeClaimTemplates"):
        if name := dig(template, "spec", "storageClassName"):
            field = ("spec", "volumeClaimTemplates", index, "spec", "storageClassName")
            yield Need(Ref("StorageClass", "", str(name), "storage.k8s.io"), "schedule", field)


def behave(body: Body, world: World) -> Acts:
    """One step. A pod that is not ready stops the step for the pods after it."""
    yield from adopt(body, world, "Pod", dig(body, "spec", "selector") or {}, name_start=f"{name_of(body)}-")
    update = yield from keep_revision(body, world)
    named = dig(body, "status", "currentRevision")
    current = next((r for r in revisions_of(body, world) if name_of(r) == named), update)
    found = StatefulSetState(body, _pods(body, world), current, update)
    if not is_terminating(body):
        yield from _step(found, world)
    after = StatefulSetState(body, _pods(body, world), current, update)
    yield Status(body, _status(after))
    live = {name_of(current), name_of(update), *(_revision(pod) for pod in after.pods.values())}
    yield from delete_old_revisions(body, world, live)


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    if minor >= BY_FIELD_SINCE:
        yield from _immutable_fields(old, new, minor)
        return
    mutable = next(fields.split() for since, fields in MUTABLE if minor >= since)
    was, wanted = (
        {key: value for key, value in (body.get("spec") or {}).items() if key not in (*mutable, "minReadySeconds")}
        for body in (old, new)
    )
    if was != wanted:
        message = ", ".join(f"'{field}'" for field in mutable) + " and 'minReadySeconds'"
        yield forbidden("spec", f"updates to statefulset spec for fields other than {message} are forbidden")


def default(body: Body) -> Body:
    spec = {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        **(body.get("spec") or {}),
    }
    strategy = {"type": "RollingUpdate", **(spec.get("updateStrategy") or {})}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0, **(strategy.get("rollingUpdate") or {})}
    spec["updateStrategy"] = strategy
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain", **retention}
    if isinstance(spec.get("template"), dict):
        spec["template"] = default_template(spec["template"])
    if claims := listed(spec, "volumeClaimTemplates"):
        spec["volumeClaimTemplates"] = [_default_claim(claim) for claim in claims]
    return {**body, "spec": spec}


def ready(body: Body) -> bool:
    replicas = dig(body, "spec", "replicas")
    status = body.get("status") or {}
    updated = status.get("currentRevision") == status.get("updateRevision")
    return updated and int(status.get("readyReplicas") or 0) >= (1 if replicas is None else int(replicas))


def _pods(body: Body, world: World) -> dict[int, Body]:
    found = {}
    for pod in world.owned(body, "Pod"):
        prefix, _, ordinal = name_of(pod).rpartition("-")
        if prefix == name_of(body) and ordinal.isdigit():
            found[int(ordinal)] = pod
    return dict(sorted(found.items()))


def _step(found: StatefulSetState, world: World) -> Acts:
    for ordinal in found.ordinals:
        stuck = yield from _replica(found, ordinal, world)
        if stuck and found.in_order:
            return
    condemned = [ordinal for ordinal in reversed(found.pods) if ordinal not in found.ordinals]
    for ordinal in condemned:
        yield from keep_owners(found.body, ordinal, found.pods[ordinal], world, condemned=True)
        if not is_terminating(found.pods[ordinal]):
            yield Delete(found.pods[ordinal], why="the StatefulSet was scaled down")
        if found.in_order:
            return
    if dig(found.body, "spec", "updateStrategy", "type") != "OnDelete":
        yield from _replace_one(found)


def _replica(found: StatefulSetState, ordinal: int, world: World) -> Generator[Act, str | None, bool]:
    """Create or keep one pod. Returns whether the pods after it must wait."""
    pod = found.pods.get(ordinal)
    if pod is None:
        yield from _create(found, ordinal, world)
        return True
    if is_finished(pod):
        yield Delete(pod, why="a StatefulSet recreates finished pods")
        return True
    if phase_of(pod) == "Pending":
        yield from make_claims(found.body, ordinal, world)
    yield from keep_owners(found.body, ordinal, pod, world, condemned=False)
    return is_terminating(pod) or not is_running_and_ready(pod)


def _create(found: StatefulSetState, ordinal: int, world: World) -> Acts:
    body = found.body
    name = f"{name_of(body)}-{ordinal}"
    why, refusal = yield from make_claims(body, ordinal, world)
    if not why:
        # A pod of an earlier StatefulSet may still have this name. Reading it makes the controller run again when it is
        # gone.
        world.get(Ref("Pod", namespace_of(body), name))
        refusal = yield Create(_pod(found, ordinal), owner=body)
        why = refusal.message if refusal else ""
    yield from keep_owners(body, ordinal, None, world, condemned=False)
    unreported = refusal is not None and (namespace_terminates(refusal) or refusal.reason == "AlreadyExists")
    if why and not unreported:
        message = f"create Pod {name} in StatefulSet {name_of(body)} failed error: {why}"
        yield Emit(body, "FailedCreate", message, refusal=refusal)


def _pod(found: StatefulSetState, ordinal: int) -> Body:
    """A pod at the revision of its ordinal: below the partition the current one, else the update."""
    body = found.body
    revision = found.update if ordinal >= _partition(body) or found.current is found.update else found.current
    name = f"{name_of(body)}-{ordinal}"
    labels = {
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
        HASH_LABEL: name_of(revision),
    }
    pod = pod_from(template_of(revision), body, name=name, labels=labels)
    spec = {**with_claims(pod["spec"], body, ordinal), "hostname": name}
    if service := dig(body, "spec", "serviceName"):
        spec["subdomain"] = service
    return {**pod, "spec": spec}


def _replace_one(found: StatefulSetState) -> Acts:
    """From the last ordinal down: delete the first pod of an old revision, or wait for a pod that is not ready."""
    for ordinal in reversed(found.ordinals):
        pod = found.pods.get(ordinal)
        if ordinal < _partition(found.body) or pod is None:
            return
        if _revision(pod) != name_of(found.update) and not is_terminating(pod):
            yield Delete(pod, why="the template has changed")
            return
        if is_terminating(pod) or not is_running_and_ready(pod):
            return


def _status(found: StatefulSetState) -> Body:
    """The counts. The update revision becomes current once every pod has it."""
    pods = list(found.pods.values())
    staying = [pod for pod in pods if not is_terminating(pod)]
    ready_pods = sum(is_running_and_ready(pod) for pod in pods)
    updated = sum(_revision(pod) == name_of(found.update) for pod in staying)
    current = sum(_revision(pod) == name_of(found.current) for pod in staying)
    named = name_of(found.current)
    rolls = dig(found.body, "spec", "updateStrategy", "type") != "OnDelete"
    if rolls and updated == len(pods) == ready_pods == len(found.ordinals):
        named, current = name_of(found.update), updated
    counted = {
        "currentReplicas": current,
        "readyReplicas": ready_pods,
        "updatedReplicas": updated,
        "currentRevision": named,
        "updateRevision": name_of(found.update),
        "observedGeneration": generation_of(found.body),
    }
    shown_zeros = {"replicas": len(pods), "availableReplicas": ready_pods, "collisionCount": 0}
    return {**shown_zeros, **without_zeros(counted)}


def _partition(body: Body) -> int:
    return int(dig(body, "spec", "updateStrategy", "rollingUpdate", "partition") or 0)


def _revision(pod: Body) -> str:
    return labels_of(pod).get(HASH_LABEL, "")


def _default_claim(claim: Body) -> Body:
    spec = {"volumeMode": "Filesystem", **(claim.get("spec") or {})}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim, "spec": spec, "status": {"phase": "Pending"}}


def _immutable_fields(old: Body, new: Body, minor: int) -> Iterator[str]:
    yield from immutable_field(old, new, "spec.selector", minor, selector)
    was, wanted = (listed(body, "spec", "volumeClaimTemplates") for body in (old, new))
    if was != wanted:
        quoted = shown([internal(claim, "PersistentVolumeClaim") for claim in wanted])
        yield invalid("spec.volumeClaimTemplates", quoted if wanted else "null")
    for field in ("serviceName", "podManagementPolicy"):
        yield from immutable_field(old, new, f"spec.{field}", minor)


KINDS = (
    Kind(
        "StatefulSet",
        "apps",
        actor="statefulset-controller",
        needs=needs,
        behave=behave,
        quick=always,
        immutable=immutable,
        default=default,
        ready=ready,
    ),
)
