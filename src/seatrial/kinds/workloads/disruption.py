"""PodDisruptionBudget: how many of the selected pods may be unavailable now.

From pkg/controller/disruption of Kubernetes 1.34.
"""

from __future__ import annotations

from seatrial.kinds import Acts, Kind, Status, World, always
from seatrial.kinds.core.conditions import condition
from seatrial.kinds.core.objectmeta import controller_of, generation_of, is_terminating, namespace_of
from seatrial.kinds.core.selection import selected
from seatrial.kinds.workloads.pods import is_finished, is_ready
from seatrial.kinds.workloads.rollout import portion
from seatrial.model.resource import Body, Ref, dig, group_of


def behave(budget: Body, world: World) -> Acts:
    wanted = dig(budget, "spec", "selector")
    if is_terminating(budget) or wanted is None:
        return
    pods = [pod for pod in selected(world, "Pod", namespace_of(budget), wanted) if not is_finished(pod)]
    expected, least = _expected(budget, pods, world)
    healthy = sum(is_ready(pod) and not is_terminating(pod) for pod in pods)
    allowed = max(0, healthy - least) if expected else 0
    status, reason = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    allowed_condition = condition(budget, "DisruptionAllowed", status, reason, observedGeneration=generation_of(budget))
    yield Status(
        budget,
        {
            "conditions": [{**allowed_condition, "message": ""}],
            "currentHealthy": healthy,
            "desiredHealthy": least,
            "disruptionsAllowed": allowed,
            "expectedPods": expected,
            "observedGeneration": generation_of(budget),
        },
    )


def _expected(budget: Body, pods: list[Body], world: World) -> tuple[int, int]:
    """(expected pods, pods that must be healthy)."""
    least, most_missing = dig(budget, "spec", "minAvailable"), dig(budget, "spec", "maxUnavailable")
    if most_missing is not None:
        expected = _scale(pods, world)
        return expected, max(0, expected - portion(most_missing, expected, up=True))
    if isinstance(least, str):
        expected = _scale(pods, world)
        return expected, portion(least, expected, up=True)
    return len(pods), int(least or 0)


def _scale(pods: list[Body], world: World) -> int:
    """The sum of the replicas that the pods' controllers want."""
    owners = {}
    for pod in pods:
        if owner := controller_of(pod):
            group = group_of(str(owner.get("apiVersion") or ""))
            owners[owner["uid"]] = Ref(str(owner["kind"]), namespace_of(pod), str(owner["name"]), group)
    return sum(int(dig(world.get(ref), "spec", "replicas") or 0) for ref in owners.values())


KINDS = (Kind("PodDisruptionBudget", "policy", actor="disruption-controller", behave=behave, quick=always),)
