"""What helm-controller does to the objects of a chart between rendering and applying them.

Upstream: internal/postrender and internal/action/post_render.go of helm-controller 1.6, `renderResources` in
pkg/action/action.go of Helm 4.2, and `NewResMapFromBytes` of kustomize 0.21, which reads what was rendered.
"""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.engines.flux.objects import HELM_GROUP
from seatrial.engines.postrendered import PostRendered
from seatrial.helm import hooks
from seatrial.kinds.operators.table import is_cluster_scoped
from seatrial.model.release import Resource
from seatrial.model.resource import Body, dig, group_of, metadata, name_of, version_of

COMBINED = "combined"


def origin_labels(name: str, namespace: str) -> dict[str, str]:
    """The labels by which Flux recognizes the objects of a HelmRelease."""
    return {f"{HELM_GROUP}/name": name, f"{HELM_GROUP}/namespace": namespace}


def additions(declared: Body) -> PostRendered:
    """The labels and annotations that the objects of a HelmRelease get."""
    common = dig(declared, "spec", "commonMetadata") or {}
    origin = origin_labels(name_of(declared), str(metadata(declared).get("namespace") or "default"))
    labels = {**(common.get("labels") or {}), **origin}
    return PostRendered(labels, dict(common.get("annotations") or {}), hooks=_strategy(declared) != "nohooks")


def rendered_error(resources: Iterable[Resource], declared: Body) -> str:
    """Why post-rendering fails: kustomize takes no object twice."""
    everything, strategy = tuple(resources), _strategy(declared)
    if strategy == COMBINED:
        return _repeated(everything, "files")
    own = tuple(one for one in everything if hooks.is_hook(one.body))
    plain = tuple(one for one in everything if not hooks.is_hook(one.body))
    return (strategy == "separate" and _repeated(own, "hooks")) or _repeated(plain, "manifests")


def _strategy(declared: Body) -> str:
    return str(dig(declared, "spec", "postRenderStrategy") or COMBINED)


def _repeated(resources: Iterable[Resource], what: str) -> str:
    seen = set()
    for resource in sorted(resources, key=lambda one: one.file):
        body = resource.body
        namespace = str(metadata(body).get("namespace") or "")
        version, kind = str(body.get("apiVersion")), str(body.get("kind"))
        group = group_of(version)
        # No namespace is the same as `default` to kustomize, whatever the namespace of the release is.
        home = "" if is_cluster_scoped(group, kind) else namespace or "default"
        found = (version, kind, home, name_of(body))
        if found in seen:
            named = f"{kind}.{version_of(version)}.{group or '[noGrp]'}/{name_of(body)}.{namespace or '[noNs]'}"
            why = f"may not add resource with an already registered id: {named}"
            return f"error while running post render on {what}: {why}"
        seen.add(found)
    return ""
