"""The `scale` subresource: the replicas of an object as a small object of its own. Knows where each kind keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from seatrial.cluster.refusal import bad_request, internal, invalid
from seatrial.kinds.tables.catalogue import CATALOGUE, ServedKind
from seatrial.model.resource import Body, dig, listed, metadata, name_of

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
TERMS = {"In": "{} in ({})", "NotIn": "{} notin ({})", "Exists": "{}", "DoesNotExist": "!{}"}


class Paths(Struct, frozen=True):
    """Where an object keeps what its scale shows."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ()
    """A text; of built-in kinds the selector is made of `spec.selector`."""


def paths_of(cluster: Cluster, kind: ServedKind) -> Paths:
    if (kind.group, kind.kind) in CATALOGUE:
        return Paths()
    for version in listed(cluster.definition_of(kind), "spec", "versions"):
        if version.get("name") == kind.version:
            scale = dig(version, "subresources", "scale") or {}
            return Paths(
                *(_parts(scale.get(f"{name}Path")) for name in ("specReplicas", "statusReplicas", "labelSelector"))
            )
    return Paths()


def scale_of(body: Body, paths: Paths) -> Body:
    """What a GET of `scale` shows."""
    replicas = dig(body, *paths.spec)
    status: Body = {"replicas": dig(body, *paths.status) or 0}
    selector = dig(body, *paths.selector) if paths.selector else _selector(dig(body, "spec", "selector"))
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata(body)[key] for key in KEPT if key in metadata(body)},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def refuse_without_replicas(body: Body, paths: Paths) -> None:
    """A custom resource that does not say how many it wants has no scale that could be read."""
    if paths != Paths() and dig(body, *paths.spec) is None:
        raise internal(f'the spec replicas field ".{".".join(paths.spec)}" does not exist')


def scaled(live: Body, scale: Any, paths: Paths) -> Body:
    """The object with the replicas that a Scale asks for."""
    kind, version = scale.get("kind") or "Scale", str(scale.get("apiVersion") or "autoscaling/v1")
    if (kind, version) != ("Scale", "autoscaling/v1"):
        short = version.rpartition("/")[2]
        words = f"converting ({short}.{kind}) to (autoscaling.Scale): unknown conversion"
        raise bad_request(f'{kind} in version "{short}" cannot be handled as a Scale: {words}')
    replicas = dig(scale, "spec", "replicas") or 0
    if not isinstance(replicas, int):
        raise bad_request('Scale in version "v1" cannot be handled as a Scale: spec.replicas is no number')
    if replicas < 0:
        words = f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale", "autoscaling", name_of(live), [words])
    meta = {**live["metadata"]}
    if asked := metadata(scale).get("resourceVersion"):
        meta["resourceVersion"] = asked
    changed: Body = _with(live, paths.spec, replicas)
    return {**changed, "metadata": meta}


def _with(body: Body, path: tuple[str, ...], value: Any) -> Body:
    first, *rest = path
    inner = _with(body.get(first) or {}, tuple(rest), value) if rest else value
    return {**body, first: inner}


def _parts(path: str | None) -> tuple[str, ...]:
    return tuple(part for part in (path or "").split(".") if part)


def _selector(selector: Body | None) -> str:
    """A selector as a query would have it; a ReplicationController's is a plain mapping."""
    if not selector:
        return ""
    labels = (
        selector if not {"matchLabels", "matchExpressions"} & selector.keys() else selector.get("matchLabels") or {}
    )
    terms = [(key, f"{key}={value}") for key, value in labels.items()]
    for term in selector.get("matchExpressions") or ():
        values = ",".join(sorted(term.get("values") or ()))
        terms.append((term["key"], TERMS[term["operator"]].format(term["key"], values)))
    return ",".join(text for _, text in sorted(terms))
