"""The arithmetic of a Deployment: which ReplicaSet is new, how many pods each may have, the status. Changes nothing.

From pkg/controller/deployment (sync.go, rolling.go, progress.go, util) of Kubernetes 1.34.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition, with_condition, without_condition, without_zeros
from seatrial.kinds.core.objectmeta import created_at, generation_of
from seatrial.model.resource import Body, annotations_of, dig, labels_of, listed, name_of

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMAL = "deployment.kubernetes.io/max-replicas"
NO_DEADLINE = 2**31 - 1

SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no hash is a word."""


class DeploymentRollout(Struct, frozen=True):
    """A Deployment, its ReplicaSet for the current template, and its old ReplicaSets."""

    deployment: Body
    new: Body | None
    old: tuple[Body, ...]

    @property
    def sets(self) -> tuple[Body, ...]:
        return self.old if self.new is None else (*self.old, self.new)

    @property
    def replicas(self) -> int:
        replicas = dig(self.deployment, "spec", "replicas")
        return 1 if replicas is None else int(replicas)

    @property
    def rolls(self) -> bool:
        return dig(self.deployment, "spec", "strategy", "type") in (None, "RollingUpdate")

    @property
    def surge(self) -> int:
        return self._fenceposts()[0] if self.rolls else 0

    @property
    def unavailable_max(self) -> int:
        return min(self._fenceposts()[1], self.replicas) if self.rolls else 0

    def _fenceposts(self) -> tuple[int, int]:
        rolling = dig(self.deployment, "spec", "strategy", "rollingUpdate") or {}
        surge = portion(rolling.get("maxSurge", "25%"), self.replicas, up=True)
        unavailable = portion(rolling.get("maxUnavailable", "25%"), self.replicas, up=False)
        # With both zero a rollout would never progress.
        return (surge, unavailable) if surge or unavailable else (0, 1)


def rollout_of(deployment: Body, sets: Sequence[Body]) -> DeploymentRollout:
    template = dig(deployment, "spec", "template") or {}
    same = [found for found in sets if without_hash(dig(found, "spec", "template") or {}) == without_hash(template)]
    # The oldest: `FindNewReplicaSet` in pkg/controller/deployment/util/deployment_util.go. A revision would not do: the
    # chosen one gets the highest, so that two equal ReplicaSets would be chosen in turns.
    new = min(same, key=lambda found: (created_at(found), name_of(found))) if same else None
    return DeploymentRollout(deployment, new, tuple(found for found in sets if found is not new))


def portion(value: Any, whole: int, *, up: bool) -> int:
    """A number, or a percentage of `whole`."""
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1]) * whole
        return -(-percent // 100) if up else percent // 100
    return int(value)


def template_hash(template: Body) -> str:
    """A hash of the template: equal templates have equal hashes."""
    return _hash_of(json.dumps(template, sort_keys=True))


@lru_cache(maxsize=1024)
def _hash_of(text: str) -> str:
    """Computed once for each text: a controller asks for every pod, and every schedule has the same templates."""
    number = 2166136261
    for byte in text.encode():
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(SAFE_LETTERS[ord(digit) % len(SAFE_LETTERS)] for digit in str(number))


def without_hash(template: Body) -> Body:
    labels = {key: value for key, value in labels_of(template).items() if key != HASH_LABEL}
    return {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}


def revision_of(body: Body) -> int:
    return int(annotations_of(body).get(REVISION) or 0)


def size(*sets: Body) -> int:
    """How many pods these ReplicaSets want."""
    return sum(int(dig(found, "spec", "replicas") or 0) for found in sets)


def counted(field: str, *sets: Body) -> int:
    return sum(int(dig(found, "status", field) or 0) for found in sets)


def new_size(rollout: DeploymentRollout) -> int:
    """How many pods the new ReplicaSet may have now."""
    current = size(rollout.new) if rollout.new else 0
    if not rollout.rolls:
        return rollout.replicas
    room = rollout.replicas + rollout.surge - size(*rollout.sets)
    if room <= 0:
        return current
    return current + min(room, rollout.replicas - current)


def scaled_down(rollout: DeploymentRollout) -> Iterator[tuple[Body, int]]:
    """Old ReplicaSets and their smaller sizes: unavailable pods first, then as many as availability allows."""
    active = sorted((found for found in rollout.old if size(found)), key=revision_of)
    new = rollout.new
    least = rollout.replicas - rollout.unavailable_max
    unready = size(new) - counted("availableReplicas", new) if new else 0
    room = size(*rollout.sets) - least - unready
    if room <= 0:
        return
    sizes = {name_of(found): size(found) for found in active}
    for found in active:
        given = min(room, max(0, size(found) - counted("availableReplicas", found)))
        sizes[name_of(found)] -= given
        room -= given
    spare = counted("availableReplicas", *rollout.sets) - least
    for found in active:
        given = max(0, min(sizes[name_of(found)], spare))
        sizes[name_of(found)] -= given
        spare -= given
    for found in active:
        if sizes[name_of(found)] != size(found):
            yield found, sizes[name_of(found)]


def status_of(rollout: DeploymentRollout, *, created: str = "", rolls: bool = True) -> Body:
    """The status computed from the ReplicaSets. `created` names a new one. Without `rolls` progress is not updated."""
    counts = _counts(rollout)
    kept = with_condition(listed(rollout.deployment, "status", "conditions"), _availability(rollout))
    if created:
        message = f'Created new replica set "{created}"'
        kept = with_condition(
            kept, _condition(rollout.deployment, "Progressing", "True", "NewReplicaSetCreated", message)
        )
    if not has_deadline(rollout.deployment):
        kept = without_condition(kept, "Progressing")
    elif rolls and not created:
        kept = _progress(rollout, counts, kept)
    return {**without_zeros(counts), "conditions": _with_failure(rollout, kept)}


def is_complete(rollout: DeploymentRollout, status: Body) -> bool:
    wanted = (rollout.replicas,) * 3
    found = tuple(int(status.get(field) or 0) for field in ("updatedReplicas", "replicas", "availableReplicas"))
    return found == wanted and status.get("observedGeneration", 0) >= generation_of(rollout.deployment)


def has_deadline(deployment: Body) -> bool:
    return _deadline_seconds(deployment) != NO_DEADLINE


def timed_out(rollout: DeploymentRollout) -> tuple[int, Body] | None:
    """After how many seconds without progress the Deployment counts as failed, and its status then."""
    found = conditions.find(rollout.deployment, "Progressing")
    if not has_deadline(rollout.deployment) or found is None:
        return None
    if found.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    message = f"{_progressing(rollout)} has timed out progressing."
    updated = _condition(rollout.deployment, "Progressing", "False", "ProgressDeadlineExceeded", message)
    status: Body = rollout.deployment.get("status") or {}
    status_then = {**status, "conditions": with_condition(listed(status, "conditions"), updated)}
    return _deadline_seconds(rollout.deployment), status_then


def paused_conditions(deployment: Body) -> list[Body] | None:
    """The conditions of a Deployment that was just paused or resumed; None if nothing changed."""
    kept = listed(deployment, "status", "conditions")
    found = conditions.find(deployment, "Progressing") or {}
    paused = bool(dig(deployment, "spec", "paused"))
    if not has_deadline(deployment) or paused == (found.get("reason") == "DeploymentPaused"):
        return None
    reason, message = ("DeploymentPaused", "paused") if paused else ("DeploymentResumed", "resumed")
    return with_condition(kept, _condition(deployment, "Progressing", "Unknown", reason, f"Deployment is {message}"))


def _counts(rollout: DeploymentRollout) -> Body:
    available = counted("availableReplicas", *rollout.sets)
    return {
        "observedGeneration": generation_of(rollout.deployment),
        "replicas": counted("replicas", *rollout.sets),
        "updatedReplicas": counted("replicas", rollout.new) if rollout.new else 0,
        "readyReplicas": counted("readyReplicas", *rollout.sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, size(*rollout.sets) - available),
    }


def _availability(rollout: DeploymentRollout) -> Body:
    if counted("availableReplicas", *rollout.sets) >= rollout.replicas - rollout.unavailable_max:
        message = "Deployment has minimum availability."
        return _condition(rollout.deployment, "Available", "True", "MinimumReplicasAvailable", message)
    message = "Deployment does not have minimum availability."
    return _condition(rollout.deployment, "Available", "False", "MinimumReplicasUnavailable", message)


def _progress(rollout: DeploymentRollout, counts: Body, kept: list[Body]) -> list[Body]:
    deployment = rollout.deployment
    found = conditions.find(deployment, "Progressing")
    done = found is not None and found.get("reason") == "NewReplicaSetAvailable"
    if done and counts["replicas"] == counts["updatedReplicas"]:
        return kept
    what = _progressing(rollout)
    if is_complete(rollout, counts):
        message = f"{what} has successfully progressed."
        return with_condition(kept, _condition(deployment, "Progressing", "True", "NewReplicaSetAvailable", message))
    if _has_progressed(deployment.get("status") or {}, counts):
        message = f"{what} is progressing."
        updated = _condition(deployment, "Progressing", "True", "ReplicaSetUpdated", message)
        return [*without_condition(kept, "Progressing"), updated]
    return kept


def _progressing(rollout: DeploymentRollout) -> str:
    if rollout.new is not None:
        return f'ReplicaSet "{name_of(rollout.new)}"'
    return f'Deployment "{name_of(rollout.deployment)}"'


def _deadline_seconds(deployment: Body) -> int:
    return int(dig(deployment, "spec", "progressDeadlineSeconds") or 600)


def _has_progressed(was: Body, now: Body) -> bool:
    def old_pods(status: Body) -> int:
        return int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)

    grew = any(
        now[field] > int(was.get(field) or 0) for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return grew or old_pods(now) < old_pods(was)


def _with_failure(rollout: DeploymentRollout, kept: list[Body]) -> list[Body]:
    """A ReplicaSet's ReplicaFailure condition is copied to the Deployment."""
    for found in (rollout.new, *rollout.old):
        failure = conditions.find(found, "ReplicaFailure") if found else None
        if failure is not None:
            message = str(failure.get("message") or "")
            updated = _condition(rollout.deployment, "ReplicaFailure", "True", str(failure.get("reason")), message)
            return with_condition(kept, updated)
    return without_condition(kept, "ReplicaFailure")


def _condition(deployment: Body, type_: str, status: str, reason: str, message: str) -> Body:
    return condition(deployment, type_, status, reason, message, lastUpdateTime=created_at(deployment))
