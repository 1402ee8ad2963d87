"""DaemonSet: one pod on each node. Node selectors, taints and surge during an update are not modelled.

From pkg/controller/daemon of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Create, Delete, Kind, Need, Status, World, always
from seatrial.kinds.core.immutable import NEWEST, immutable_field, selector
from seatrial.kinds.core.objectmeta import adopt, generation_of, is_terminating, with_metadata
from seatrial.kinds.scripts.containers import template_awaited
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.kinds.workloads.pods import is_finished, is_ready, pod_from
from seatrial.kinds.workloads.replicaset import refused_creation
from seatrial.kinds.workloads.revisions import HASH_LABEL, delete_old_revisions, keep_revision
from seatrial.kinds.workloads.rollout import portion, template_hash
from seatrial.kinds.workloads.scheduler import PINNED
from seatrial.model.resource import Body, annotations_of, dig, labels_of, listed, name_of

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def needs(body: Body) -> Iterator[Need]:
    """What its pods refer to, and what their init containers wait for."""
    yield from template_needs("spec", "template")(body)
    yield from template_awaited(body)


def behave(body: Body, world: World) -> Acts:
    yield from adopt(body, world, "Pod", dig(body, "spec", "selector") or {})
    revision = yield from keep_revision(body, world)
    nodes = [name_of(node) for node in world.all("Node")]
    if not is_terminating(body):
        yield from _manage(body, nodes, world)
        yield from _update(body, nodes, world)
    yield Status(body, _status(body, nodes, world))
    yield from delete_old_revisions(body, world, {name_of(revision)})


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from immutable_field(old, new, "spec.selector", minor, selector)


def default(body: Body) -> Body:
    spec = {"revisionHistoryLimit": 10, **(body.get("spec") or {})}
    strategy = {"type": "RollingUpdate", **(spec.get("updateStrategy") or {})}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **(strategy.get("rollingUpdate") or {})}
    spec["updateStrategy"] = strategy
    if isinstance(spec.get("template"), dict):
        spec["template"] = default_template(spec["template"])
    return {**body, "spec": spec}


def prepare(body: Body, old: Body | None) -> Body:
    """Count the template generations, in an annotation that only this kind still has."""
    number = int(annotations_of(old or {}).get(TEMPLATE_GENERATION) or 0)
    if old is None or dig(old, "spec", "template") != dig(body, "spec", "template"):
        number += 1
    return with_metadata(body, annotations={**annotations_of(body), TEMPLATE_GENERATION: str(number)})


def ready(body: Body) -> bool:
    status = body.get("status") or {}
    wanted = status.get("desiredNumberScheduled")
    observed = status.get("observedGeneration") is not None
    return observed and wanted == status.get("numberReady") == status.get("updatedNumberScheduled", 0)


def _manage(body: Body, nodes: list[str], world: World) -> Acts:
    """Create a pod on each node that has none. Delete finished pods and pods of removed nodes."""
    pods = [pod for pod in world.owned(body, "Pod") if not is_terminating(pod)]
    served = set()
    for pod in pods:
        if is_finished(pod) or _node(pod) not in nodes or _node(pod) in served:
            yield Delete(pod, why="a DaemonSet keeps one running pod on each node")
        served.add(_node(pod))
    terminating = {_node(pod) for pod in world.owned(body, "Pod") if is_terminating(pod)}
    for node in nodes:
        if node in served or node in terminating:
            continue
        pod = _pod(body, node)
        refusal = yield Create(pod, owner=body)
        if refusal:
            yield from refused_creation(body, refusal)
            return


def _update(body: Body, nodes: list[str], world: World) -> Acts:
    """Replace pods of older templates within maxUnavailable. Unready pods come first."""
    strategy = dig(body, "spec", "updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    limit = dig(strategy, "rollingUpdate", "maxUnavailable")
    room = max(1, portion(1 if limit is None else limit, len(nodes), up=True))
    pods = world.owned(body, "Pod")
    room -= len(nodes) - sum(is_ready(pod) and not is_terminating(pod) for pod in pods)
    for pod in (pod for pod in pods if not is_terminating(pod) and not _is_new(body, pod)):
        if is_ready(pod):
            if room <= 0:
                continue
            room -= 1
        yield Delete(pod, why="the template has changed")


def _pod(body: Body, node: str) -> Body:
    template = dig(body, "spec", "template") or {}
    labels = {
        HASH_LABEL: template_hash(template),
        "pod-template-generation": annotations_of(body).get(TEMPLATE_GENERATION, "1"),
    }
    pod = pod_from(template, body, labels=labels)
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    pinned = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {**(pod["spec"].get("affinity") or {})}
    affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": pinned}
    return {**pod, "spec": {**pod["spec"], "affinity": affinity}}


def _node(pod: Body) -> str:
    named = dig(pod, "spec", "nodeName") or dig(listed(pod, "spec", *PINNED), 0, "values", 0)
    return str(named or "")


def _is_new(body: Body, pod: Body) -> bool:
    return labels_of(pod).get(HASH_LABEL) == template_hash(dig(body, "spec", "template") or {})


def _status(body: Body, nodes: list[str], world: World) -> Body:
    pods = [pod for pod in world.owned(body, "Pod") if not is_terminating(pod)]
    ready_pods = sum(is_ready(pod) for pod in pods)
    found: Body = {
        "currentNumberScheduled": len(pods),
        "desiredNumberScheduled": len(nodes),
        "numberMisscheduled": 0,
        "numberReady": ready_pods,
        "observedGeneration": generation_of(body),
    }
    counted = {
        "updatedNumberScheduled": sum(_is_new(body, pod) for pod in pods),
        "numberAvailable": ready_pods,
        "numberUnavailable": len(nodes) - ready_pods,
    }
    return {**found, **{field: number for field, number in counted.items() if number}}


KINDS = (
    Kind(
        "DaemonSet",
        "apps",
        actor="daemonset-controller",
        needs=needs,
        behave=behave,
        quick=always,
        immutable=immutable,
        default=default,
        prepare=prepare,
        ready=ready,
    ),
)
