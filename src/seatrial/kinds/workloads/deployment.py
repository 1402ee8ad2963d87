"""Deployment: one ReplicaSet for each template, and the rollout from one to the next."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Create, Deadline, Delete, Emit, Kind, Need, Status, Update, World, always
from seatrial.kinds.core.immutable import NEWEST, immutable_field, selector
from seatrial.kinds.core.objectmeta import adopt, generation_of, is_terminating, namespace_of, with_metadata
from seatrial.kinds.scripts.containers import template_awaited
from seatrial.kinds.scripts.programs import template_products
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.kinds.workloads.pods import is_finished
from seatrial.kinds.workloads.replicaset import namespace_terminates
from seatrial.kinds.workloads.rollout import (
    DESIRED,
    HASH_LABEL,
    MAXIMAL,
    REVISION,
    DeploymentRollout,
    is_complete,
    new_size,
    paused_conditions,
    revision_of,
    rollout_of,
    scaled_down,
    size,
    status_of,
    template_hash,
    timed_out,
)
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of, name_of

NOT_COPIED = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        "deployment.kubernetes.io/revision-history",
        DESIRED,
        MAXIMAL,
        "deprecated.deployment.rollback.to",
    )
)
"""Annotations of a Deployment that are not copied to its ReplicaSets."""


def needs(body: Body) -> Iterator[Need]:
    """What its pods refer to, and what their init containers wait for."""
    yield from template_needs("spec", "template")(body)
    yield from template_awaited(body)


def behave(deployment: Body, world: World) -> Acts:
    """One step of a rollout. Every ReplicaSet that changes triggers the next step."""
    yield from adopt(deployment, world, "ReplicaSet", dig(deployment, "spec", "selector") or {}, "apps")
    if not is_terminating(deployment):
        yield from _keep_new_set(deployment, world)
    rollout = _current_rollout(deployment, world)
    if is_terminating(deployment):
        yield Status(deployment, status_of(rollout, rolls=False))
    elif (kept := paused_conditions(rollout.deployment)) is not None:
        yield Status(deployment, {**(rollout.deployment.get("status") or {}), "conditions": kept})
    elif dig(deployment, "spec", "paused") or _was_scaled(rollout):
        yield from _scale(rollout)
        yield Status(deployment, status_of(_current_rollout(deployment, world), rolls=False))
    else:
        yield from _roll(rollout, world)
        yield Status(deployment, status_of(_current_rollout(deployment, world)))


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from immutable_field(old, new, "spec.selector", minor, selector)


def default(deployment: Body) -> Body:
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        **(deployment.get("spec") or {}),
    }
    strategy = {"type": "RollingUpdate", **(spec.get("strategy") or {})}
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.get("rollingUpdate") or {}
        strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **rolling}
    spec["strategy"] = strategy
    if isinstance(spec.get("template"), dict):
        spec["template"] = default_template(spec["template"])
    return {**deployment, "spec": spec}


def ready(deployment: Body) -> bool:
    return is_complete(rollout_of(deployment, ()), deployment.get("status") or {})


def deadline(deployment: Body, world: World) -> Deadline | None:
    """`progressDeadlineSeconds`: the rollout is not stopped, only reported as failed."""
    if is_terminating(deployment) or dig(deployment, "spec", "paused"):
        return None
    exceeded = timed_out(_current_rollout(deployment, world))
    return None if exceeded is None else Deadline(exceeded[0], _exceed_deadline(deployment, exceeded[1]))


def _exceed_deadline(deployment: Body, status: Body) -> Acts:
    yield Status(deployment, status)


def _current_rollout(deployment: Body, world: World) -> DeploymentRollout:
    """The current Deployment and its ReplicaSets, including the changes of this step."""
    now = world.get(Ref("Deployment", namespace_of(deployment), name_of(deployment), "apps")) or deployment
    return rollout_of(now, world.owned(now, "ReplicaSet", "apps"))


def _keep_new_set(deployment: Body, world: World) -> Acts:
    """Create the ReplicaSet of the template, or give it the newest revision. The Deployment shows that revision."""
    rollout = _current_rollout(deployment, world)
    if dig(deployment, "spec", "paused"):
        return
    if rollout.new is not None:
        yield Update(_marked(rollout))
    elif not _must_wait(rollout, world):
        yield from _create(rollout, world)
    rollout = _current_rollout(deployment, world)
    if rollout.new is not None:
        yield Update(_with_annotations(rollout.deployment, {REVISION: annotations_of(rollout.new)[REVISION]}))


def _must_wait(rollout: DeploymentRollout, world: World) -> bool:
    """Recreate creates nothing while old pods run."""
    return not rollout.rolls and (bool(size(*rollout.old)) or _old_pods_run(rollout, world))


def _old_pods_run(rollout: DeploymentRollout, world: World) -> bool:
    return any(not is_finished(pod) for found in rollout.old for pod in world.owned(found, "Pod"))


def _create(rollout: DeploymentRollout, world: World) -> Acts:
    deployment = rollout.deployment
    body = _new_set(rollout)
    refusal = yield Create(body, owner=deployment)
    if refusal is None:
        yield Status(deployment, status_of(rollout, created=name_of(body)))
    elif not namespace_terminates(refusal):
        # A ReplicaSet of the same name may still be terminating. Reading it makes the controller run again when it is
        # gone.
        world.get(Ref("ReplicaSet", namespace_of(deployment), name_of(body), "apps"))
        message = f'Failed to create new replica set "{name_of(body)}": {refusal.message}'
        yield Emit(deployment, "ReplicaSetCreateError", message, refusal=refusal)


def _new_set(rollout: DeploymentRollout) -> Body:
    deployment = rollout.deployment
    template = dig(deployment, "spec", "template") or {}
    hashed = template_hash(template)
    labels = {**labels_of(template), HASH_LABEL: hashed}
    wanted = dig(deployment, "spec", "selector") or {}
    spec: Body = {
        "replicas": new_size(rollout),
        "selector": {**wanted, "matchLabels": {**(wanted.get("matchLabels") or {}), HASH_LABEL: hashed}},
        "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
    }
    if dig(deployment, "spec", "minReadySeconds"):
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    meta = {
        "name": f"{name_of(deployment)}-{hashed}",
        "namespace": namespace_of(deployment),
        "labels": labels,
        "annotations": {**_inherited(deployment), **_sizes(rollout), REVISION: str(_next_revision(rollout))},
    }
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec}


def _marked(rollout: DeploymentRollout) -> Body:
    """The new ReplicaSet with its annotations: the Deployment's, and the highest revision."""
    assert rollout.new is not None
    wanted = _inherited(rollout.deployment)
    if revision_of(rollout.new) < _next_revision(rollout):
        wanted[REVISION] = str(_next_revision(rollout))
    return _with_annotations(rollout.new, wanted)


def _next_revision(rollout: DeploymentRollout) -> int:
    return max(map(revision_of, rollout.old), default=0) + 1


def _was_scaled(rollout: DeploymentRollout) -> bool:
    """Whether `replicas` was changed since the ReplicaSets were sized."""
    return any(size(found) and annotations_of(found).get(DESIRED) != str(rollout.replicas) for found in rollout.sets)


def _scale(rollout: DeploymentRollout) -> Acts:
    """Follow `replicas`, also during a rollout. The rollout itself continues later."""
    active = [found for found in rollout.sets if size(found)]
    newest = [rollout.new] if rollout.new else sorted(rollout.old, key=revision_of)[-1:]
    for found in active or newest:
        yield from _resize(rollout, found, rollout.replicas if len(active) <= 1 else size(found))


def _roll(rollout: DeploymentRollout, world: World) -> Acts:
    """Scale up the new ReplicaSet, or scale down the old ones, or delete the oldest when complete."""
    if rollout.rolls and rollout.new is not None:
        yield from _rolling(rollout, rollout.new)
    elif not rollout.rolls:
        yield from _recreating(rollout, world)
    if is_complete(rollout, rollout.deployment.get("status") or {}):
        yield from _delete_old(rollout)


def _rolling(rollout: DeploymentRollout, new: Body) -> Acts:
    wanted = min(new_size(rollout), rollout.replicas)
    if size(new) != wanted:
        yield from _resize(rollout, new, wanted)
        return
    for found, smaller in scaled_down(rollout):
        yield from _resize(rollout, found, smaller)


def _recreating(rollout: DeploymentRollout, world: World) -> Acts:
    shrinking = [found for found in rollout.old if size(found)]
    for found in shrinking:
        yield from _resize(rollout, found, 0)
    if not shrinking and rollout.new is not None and not _old_pods_run(rollout, world):
        yield from _resize(rollout, rollout.new, rollout.replicas)


def _resize(rollout: DeploymentRollout, found: Body, replicas: int) -> Acts:
    if size(found) != replicas or not _sizes(rollout).items() <= annotations_of(found).items():
        yield Update(_with_annotations({**found, "spec": {**found["spec"], "replicas": replicas}}, _sizes(rollout)))


def _delete_old(rollout: DeploymentRollout) -> Acts:
    limit = dig(rollout.deployment, "spec", "revisionHistoryLimit")
    idle = [found for found in sorted(rollout.old, key=revision_of) if not is_terminating(found)]
    for found in idle[: max(0, len(idle) - (10 if limit is None else int(limit)))]:
        seen = dig(found, "status", "observedGeneration") or 0
        if not size(found) and not dig(found, "status", "replicas") and seen >= generation_of(found):
            yield Delete(found, why="exceeds revisionHistoryLimit")


def _sizes(rollout: DeploymentRollout) -> dict[str, str]:
    return {DESIRED: str(rollout.replicas), MAXIMAL: str(rollout.replicas + rollout.surge)}


def _inherited(deployment: Body) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED}


def _with_annotations(body: Body, annotations: dict[str, str]) -> Body:
    return with_metadata(body, annotations={**annotations_of(body), **annotations})


KINDS = (
    Kind(
        "Deployment",
        "apps",
        actor="deployment-controller",
        needs=needs,
        produces=template_products("spec", "template"),
        behave=behave,
        quick=always,
        immutable=immutable,
        default=default,
        deadline=deadline,
        ready=ready,
    ),
)
