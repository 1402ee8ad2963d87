"""Whether a node of a real cluster can take the pods of a release. Pure functions of a snapshot and releases.

Knows node selectors, required node affinity and taints; not resources, and not affinity between pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds.core.selection import fits
from seatrial.live.point import Point, State
from seatrial.model.release import Release
from seatrial.model.resource import Body, Path, dig, labels_of, listed, name_of
from seatrial.model.snapshot import Snapshot
from seatrial.sources.places import place_of

NODES = "Node"
TEMPLATES: dict[tuple[str, str], Path] = {
    ("", "Pod"): ("spec",),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
    **{("apps", kind): ("spec", "template", "spec") for kind in ("Deployment", "StatefulSet", "ReplicaSet")},
    ("batch", "Job"): ("spec", "template", "spec"),
}
"""Where the pods of a kind are described. A DaemonSet without a node that fits has no pods, and is ready."""
TERMS = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
REPELS = ("NoSchedule", "NoExecute")
COMPARED = ("Gt", "Lt")
POOLS = (
    *("karpenter.sh/nodepool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool"),
    *("kubernetes.azure.com/agentpool", "machine.openshift.io/cluster-api-machineset"),
)
"""Labels of nodes that belong to a pool: an autoscaler may add others, with other labels."""


def has_pods(releases: list[Release]) -> bool:
    return any((one.ref.group, one.ref.kind) in TEMPLATES for release in releases for one in release.resources)


def unplaceable(releases: list[Release], snapshot: Snapshot) -> Iterator[Point]:
    """Objects whose pods no node takes."""
    if NODES not in snapshot.whole:
        return
    nodes = [body for ref, body in snapshot.refs.items() if (ref.group, ref.kind) == ("", NODES)]
    grows = any(label in labels_of(node) for node in nodes for label in POOLS)
    for release in releases:
        for resource in release.resources:
            at = TEMPLATES.get((resource.ref.group, resource.ref.kind))
            spec = dig(resource.body, *at) if at else None
            if not at or not isinstance(spec, dict) or spec.get("nodeName"):
                continue
            if why := _why_not(spec, nodes):
                field = (*at, "nodeSelector") if spec.get("nodeSelector") else at
                says = f"its pods stay Pending: {why}" + ("; an autoscaler may add one" if grows else "")
                state: State = "note" if grows else "fails"
                yield Point(state, str(resource.ref), says, place_of(resource.place(*field)), "kubectl get nodes")


def _why_not(spec: Body, nodes: list[Body]) -> str:
    """Why no node takes a pod; empty if one does."""
    open_ = [node for node in nodes if not dig(node, "spec", "unschedulable")]
    if not open_:
        return "the cluster has no node" if not nodes else f"all {len(nodes)} nodes are cordoned"
    selected = [node for node in open_ if _is_selected(spec, node)]
    if not selected:
        wanted = ",".join(f"{key}={value}" for key, value in (spec.get("nodeSelector") or {}).items())
        return f"no node has the labels {wanted}" if wanted else "no node fits its node affinity"
    repelled = [taint for node in selected if (taint := _repels(node, listed(spec, "tolerations")))]
    if len(repelled) == len(selected):
        return f"no node that it selects is without a taint that it does not tolerate ({repelled[0]})"
    return ""


def _is_selected(spec: Body, node: Body) -> bool:
    labels = labels_of(node)
    if not fits(labels, {"matchLabels": spec.get("nodeSelector") or {}}):
        return False
    terms = dig(spec, *TERMS)
    return not isinstance(terms, list) or not terms or any(_term_fits(term, labels, node) for term in terms)


def _term_fits(term: Body, labels: dict[str, str], node: Body) -> bool:
    """Comparisons of numbers count as fitting."""
    expressions = [one for one in listed(term, "matchExpressions") if one.get("operator") not in COMPARED]
    fields = {"metadata.name": name_of(node)}
    return fits(labels, {"matchExpressions": expressions}) and fits(
        fields, {"matchExpressions": listed(term, "matchFields")}
    )


def _repels(node: Body, tolerations: list[Body]) -> str:
    """The first taint of a node that is not tolerated."""
    for taint in listed(node, "spec", "taints"):
        if taint.get("effect") in REPELS and not any(_tolerates(one, taint) for one in tolerations):
            value = f"={taint['value']}" if taint.get("value") else ""
            return f"{taint.get('key')}{value}:{taint['effect']}"
    return ""


def _tolerates(toleration: Body, taint: Body) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if not toleration.get("key"):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.get("key"):
        return False
    return toleration.get("operator") == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")
