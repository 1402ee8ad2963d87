"""Deployment: a ReplicaSet for each template it ever had, and the way from one to the next."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Change, Create, Deadline, Delete, Kind, Say, Status, World
from seatrial.kinds.core.immutable import NEWEST, frozen_field, selector
from seatrial.kinds.core.objectmeta import adopt, generation_of, is_going, namespace_of, with_metadata
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.kinds.workloads.pods import is_finished
from seatrial.kinds.workloads.replicaset import NAMESPACE_GOES
from seatrial.kinds.workloads.rollout import (
    DESIRED,
    HASH_LABEL,
    MAXIMAL,
    REVISION,
    Rollout,
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
"""Annotations of a Deployment that its ReplicaSets do not get."""


def behave(deployment: Body, world: World) -> Acts:
    """One step of a rollout; every ReplicaSet that changes brings the next."""
    yield from adopt(deployment, world, "ReplicaSet", dig(deployment, "spec", "selector") or {}, "apps")
    if not is_going(deployment):
        yield from _keep_new_set(deployment, world)
    rollout = _look(deployment, world)
    if is_going(deployment):
        yield Status(deployment, status_of(rollout, rolls=False))
    elif (kept := paused_conditions(rollout.deployment)) is not None:
        yield Status(deployment, {**(rollout.deployment.get("status") or {}), "conditions": kept})
    elif dig(deployment, "spec", "paused") or _was_scaled(rollout):
        yield from _scale(rollout)
        yield Status(deployment, status_of(_look(deployment, world), rolls=False))
    else:
        yield from _roll(rollout, world)
        yield Status(deployment, status_of(_look(deployment, world)))


def frozen(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from frozen_field(old, new, "spec.selector", minor, selector)


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
    """`progressDeadlineSeconds`: the rollout is not stopped, it is only called failed."""
    if is_going(deployment) or dig(deployment, "spec", "paused"):
        return None
    late = timed_out(_look(deployment, world))
    return None if late is None else Deadline(late[0], _gives_up(deployment, late[1]))


def _gives_up(deployment: Body, status: Body) -> Acts:
    yield Status(deployment, status)


def _look(deployment: Body, world: World) -> Rollout:
    """The Deployment and its ReplicaSets as they are now, after what was done to them in this step."""
    now = world.get(Ref("Deployment", namespace_of(deployment), name_of(deployment), "apps")) or deployment
    return rollout_of(now, world.owned(now, "ReplicaSet", "apps"))


def _keep_new_set(deployment: Body, world: World) -> Acts:
    """Make the ReplicaSet of the template, or give it the newest revision; the Deployment shows that revision."""
    rollout = _look(deployment, world)
    if dig(deployment, "spec", "paused"):
        return
    if rollout.new is not None:
        yield Change(_marked(rollout))
    elif not _must_wait(rollout, world):
        yield from _create(rollout, world)
    rollout = _look(deployment, world)
    if rollout.new is not None:
        yield Change(_with_annotations(rollout.deployment, {REVISION: annotations_of(rollout.new)[REVISION]}))


def _must_wait(rollout: Rollout, world: World) -> bool:
    """Recreate makes nothing new while anything old runs."""
    return not rollout.rolls and (bool(size(*rollout.old)) or _old_pods_run(rollout, world))


def _old_pods_run(rollout: Rollout, world: World) -> bool:
    return any(not is_finished(pod) for found in rollout.old for pod in world.owned(found, "Pod"))


def _create(rollout: Rollout, world: World) -> Acts:
    deployment = rollout.deployment
    body = _new_set(rollout)
    refusal = yield Create(body, owner=deployment)
    if refusal is None:
        yield Status(deployment, status_of(rollout, created=name_of(body)))
    elif NAMESPACE_GOES not in refusal:
        # One of the same name may still be on its way out; its end is what to wait for.
        world.get(Ref("ReplicaSet", namespace_of(deployment), name_of(body), "apps"))
        words = f'Failed to create new replica set "{name_of(body)}": {refusal}'
        yield Say(deployment, "ReplicaSetCreateError", words)


def _new_set(rollout: Rollout) -> Body:
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


def _marked(rollout: Rollout) -> Body:
    """The new ReplicaSet with the annotations it is to have: the Deployment's, and the highest revision."""
    assert rollout.new is not None
    wanted = _inherited(rollout.deployment)
    if revision_of(rollout.new) < _next_revision(rollout):
        wanted[REVISION] = str(_next_revision(rollout))
    return _with_annotations(rollout.new, wanted)


def _next_revision(rollout: Rollout) -> int:
    return max(map(revision_of, rollout.old), default=0) + 1


def _was_scaled(rollout: Rollout) -> bool:
    """Someone changed `replicas`: what the ReplicaSets were made for is no longer what is wanted."""
    return any(size(found) and annotations_of(found).get(DESIRED) != str(rollout.replicas) for found in rollout.sets)


def _scale(rollout: Rollout) -> Acts:
    """Follow `replicas`, in the middle of a rollout too; the rollout itself goes on after that."""
    active = [found for found in rollout.sets if size(found)]
    newest = [rollout.new] if rollout.new else sorted(rollout.old, key=revision_of)[-1:]
    for found in active or newest:
        yield from _resize(rollout, found, rollout.replicas if len(active) <= 1 else size(found))


def _roll(rollout: Rollout, world: World) -> Acts:
    """Grow the new one, or shrink the old ones, or be content and forget the oldest."""
    if rollout.rolls and rollout.new is not None:
        yield from _rolling(rollout, rollout.new)
    elif not rollout.rolls:
        yield from _recreating(rollout, world)
    if is_complete(rollout, rollout.deployment.get("status") or {}):
        yield from _forget_old(rollout)


def _rolling(rollout: Rollout, new: Body) -> Acts:
    wanted = min(new_size(rollout), rollout.replicas)
    if size(new) != wanted:
        yield from _resize(rollout, new, wanted)
        return
    for found, smaller in scaled_down(rollout):
        yield from _resize(rollout, found, smaller)


def _recreating(rollout: Rollout, world: World) -> Acts:
    shrinking = [found for found in rollout.old if size(found)]
    for found in shrinking:
        yield from _resize(rollout, found, 0)
    if not shrinking and rollout.new is not None and not _old_pods_run(rollout, world):
        yield from _resize(rollout, rollout.new, rollout.replicas)


def _resize(rollout: Rollout, found: Body, replicas: int) -> Acts:
    if size(found) != replicas or not _sizes(rollout).items() <= annotations_of(found).items():
        yield Change(_with_annotations({**found, "spec": {**found["spec"], "replicas": replicas}}, _sizes(rollout)))


def _forget_old(rollout: Rollout) -> Acts:
    limit = dig(rollout.deployment, "spec", "revisionHistoryLimit")
    idle = [found for found in sorted(rollout.old, key=revision_of) if not is_going(found)]
    for found in idle[: max(0, len(idle) - (10 if limit is None else int(limit)))]:
        seen = dig(found, "status", "observedGeneration") or 0
        if not size(found) and not dig(found, "status", "replicas") and seen >= generation_of(found):
            yield Delete(found, why="older than revisionHistoryLimit keeps")


def _sizes(rollout: Rollout) -> dict[str, str]:
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
        needs=template_needs("spec", "template"),
        behave=behave,
        frozen=frozen,
        default=default,
        deadline=deadline,
        ready=ready,
    ),
)
