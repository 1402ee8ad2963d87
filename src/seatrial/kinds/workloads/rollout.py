"""The arithmetic of a Deployment: which ReplicaSet is new, how many pods each may have now, what its status says.

From pkg/controller/deployment (sync.go, rolling.go, progress.go, util) of Kubernetes 1.34. Acts on nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition, with_condition, without_condition, without_zeros
from seatrial.kinds.core.objectmeta import generation_of, moment
from seatrial.model.resource import Body, annotations_of, dig, labels_of, listed, name_of

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMAL = "deployment.kubernetes.io/max-replicas"
NO_DEADLINE = 2**31 - 1

SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no hash is a word."""


class Rollout(Struct, frozen=True):
    """A Deployment and its ReplicaSets, the one of its template apart."""

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
        # Both zero would never move.
        return (surge, unavailable) if surge or unavailable else (0, 1)


def rollout_of(deployment: Body, sets: Sequence[Body]) -> Rollout:
    template = dig(deployment, "spec", "template") or {}
    same = [found for found in sets if without_hash(dig(found, "spec", "template") or {}) == without_hash(template)]
    new = min(same, key=revision_of) if same else None
    return Rollout(deployment, new, tuple(found for found in sets if found is not new))


def portion(value: Any, whole: int, *, up: bool) -> int:
    """A number, or a percentage of `whole`."""
    if isinstance(value, str) and value.endswith("%"):
        percent = int(value[:-1]) * whole
        return -(-percent // 100) if up else percent // 100
    return int(value)


def template_hash(template: Body) -> str:
    """A name for a template: the same text, the same name."""
    number = 2166136261
    for byte in json.dumps(template, sort_keys=True).encode():
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(SAFE_LETTERS[ord(digit) % len(SAFE_LETTERS)] for digit in str(number))


def without_hash(template: Body) -> Body:
    labels = {key: value for key, value in labels_of(template).items() if key != HASH_LABEL}
    return {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}


def revision_of(body: Body) -> int:
    return int(annotations_of(body).get(REVISION) or 0)


def size(*sets: Body) -> int:
    """How many pods these ReplicaSets are to have."""
    return sum(int(dig(found, "spec", "replicas") or 0) for found in sets)


def counted(field: str, *sets: Body) -> int:
    return sum(int(dig(found, "status", field) or 0) for found in sets)


def new_size(rollout: Rollout) -> int:
    """How many pods the new ReplicaSet may have now."""
    current = size(rollout.new) if rollout.new else 0
    if not rollout.rolls:
        return rollout.replicas
    room = rollout.replicas + rollout.surge - size(*rollout.sets)
    if room <= 0:
        return current
    return current + min(room, rollout.replicas - current)


def scaled_down(rollout: Rollout) -> Iterator[tuple[Body, int]]:
    """Old ReplicaSets and their smaller sizes: what is unavailable goes first, then what availability allows."""
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


def status_of(rollout: Rollout, *, created: str = "", rolls: bool = True) -> Body:
    """The status after a look at the ReplicaSets; `created` names one just made. Without `rolls` none is judged."""
    counts = _counts(rollout)
    kept = with_condition(listed(rollout.deployment, "status", "conditions"), _availability(rollout))
    if created:
        words = f'Created new replica set "{created}"'
        kept = with_condition(kept, _said(rollout.deployment, "Progressing", "True", "NewReplicaSetCreated", words))
    if not has_deadline(rollout.deployment):
        kept = without_condition(kept, "Progressing")
    elif rolls and not created:
        kept = _progress(rollout, counts, kept)
    return {**without_zeros(counts), "conditions": _with_failure(rollout, kept)}


def is_complete(rollout: Rollout, status: Body) -> bool:
    wanted = (rollout.replicas,) * 3
    found = tuple(int(status.get(field) or 0) for field in ("updatedReplicas", "replicas", "availableReplicas"))
    return found == wanted and status.get("observedGeneration", 0) >= generation_of(rollout.deployment)


def has_deadline(deployment: Body) -> bool:
    return _deadline_seconds(deployment) != NO_DEADLINE


def timed_out(rollout: Rollout) -> tuple[int, Body] | None:
    """After how many seconds without progress the Deployment is called failed, and its status then."""
    found = conditions.find(rollout.deployment, "Progressing")
    if not has_deadline(rollout.deployment) or found is None:
        return None
    if found.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    words = f"{_progressing(rollout)} has timed out progressing."
    said = _said(rollout.deployment, "Progressing", "False", "ProgressDeadlineExceeded", words)
    status: Body = rollout.deployment.get("status") or {}
    late = {**status, "conditions": with_condition(listed(status, "conditions"), said)}
    return _deadline_seconds(rollout.deployment), late


def paused_conditions(deployment: Body) -> list[Body] | None:
    """The conditions of a Deployment that was just paused or resumed; None where nothing changed."""
    kept = listed(deployment, "status", "conditions")
    found = conditions.find(deployment, "Progressing") or {}
    paused = bool(dig(deployment, "spec", "paused"))
    if not has_deadline(deployment) or paused == (found.get("reason") == "DeploymentPaused"):
        return None
    reason, words = ("DeploymentPaused", "paused") if paused else ("DeploymentResumed", "resumed")
    return with_condition(kept, _said(deployment, "Progressing", "Unknown", reason, f"Deployment is {words}"))


def _counts(rollout: Rollout) -> Body:
    available = counted("availableReplicas", *rollout.sets)
    return {
        "observedGeneration": generation_of(rollout.deployment),
        "replicas": counted("replicas", *rollout.sets),
        "updatedReplicas": counted("replicas", rollout.new) if rollout.new else 0,
        "readyReplicas": counted("readyReplicas", *rollout.sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, size(*rollout.sets) - available),
    }


def _availability(rollout: Rollout) -> Body:
    if counted("availableReplicas", *rollout.sets) >= rollout.replicas - rollout.unavailable_max:
        words = "Deployment has minimum availability."
        return _said(rollout.deployment, "Available", "True", "MinimumReplicasAvailable", words)
    words = "Deployment does not have minimum availability."
    return _said(rollout.deployment, "Available", "False", "MinimumReplicasUnavailable", words)


def _progress(rollout: Rollout, counts: Body, kept: list[Body]) -> list[Body]:
    deployment = rollout.deployment
    found = conditions.find(deployment, "Progressing")
    done = found is not None and found.get("reason") == "NewReplicaSetAvailable"
    if done and counts["replicas"] == counts["updatedReplicas"]:
        return kept
    what = _progressing(rollout)
    if is_complete(rollout, counts):
        words = f"{what} has successfully progressed."
        return with_condition(kept, _said(deployment, "Progressing", "True", "NewReplicaSetAvailable", words))
    if _moved(deployment.get("status") or {}, counts):
        words = f"{what} is progressing."
        said = _said(deployment, "Progressing", "True", "ReplicaSetUpdated", words)
        return [*without_condition(kept, "Progressing"), said]
    return kept


def _progressing(rollout: Rollout) -> str:
    if rollout.new is not None:
        return f'ReplicaSet "{name_of(rollout.new)}"'
    return f'Deployment "{name_of(rollout.deployment)}"'


def _deadline_seconds(deployment: Body) -> int:
    return int(dig(deployment, "spec", "progressDeadlineSeconds") or 600)


def _moved(was: Body, now: Body) -> bool:
    def old_pods(status: Body) -> int:
        return int(status.get("replicas") or 0) - int(status.get("updatedReplicas") or 0)

    grew = any(
        now[field] > int(was.get(field) or 0) for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )
    return grew or old_pods(now) < old_pods(was)


def _with_failure(rollout: Rollout, kept: list[Body]) -> list[Body]:
    """A ReplicaSet that cannot make its pods says so through the Deployment."""
    for found in (rollout.new, *rollout.old):
        failure = conditions.find(found, "ReplicaFailure") if found else None
        if failure is not None:
            words = str(failure.get("message") or "")
            said = _said(rollout.deployment, "ReplicaFailure", "True", str(failure.get("reason")), words)
            return with_condition(kept, said)
    return without_condition(kept, "ReplicaFailure")


def _said(deployment: Body, type_: str, status: str, reason: str, words: str) -> Body:
    return condition(deployment, type_, status, reason, words, lastUpdateTime=moment(deployment))
