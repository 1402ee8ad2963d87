"""The `scale` subresource: the replicas of an object as a Scale. Knows where each kind stores them."""

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
    """The paths of the fields that a Scale shows."""

    spec: tuple[str, ...] = ("spec", "replicas")
    status: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ()
    """A string. For built-in kinds the selector is built from `spec.selector`."""


def paths_of(cluster: Cluster, kind: ServedKind) -> Paths:
    if (kind.group, kind.kind) in CATALOGUE:
        return Paths()
    for version in listed(cluster.crd_of(kind), "spec", "versions"):
        if version.get("name") == kind.version:
            scale = dig(version, "subresources", "scale") or {}
            return Paths(
                *(_parts(scale.get(f"{name}Path")) for name in ("specReplicas", "statusReplicas", "labelSelector"))
            )
    return Paths()


def scale_of(body: Body, paths: Paths) -> Body:
    """The Scale that a GET returns."""
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
    """A custom resource without spec replicas has no Scale."""
    if paths != Paths() and dig(body, *paths.spec) is None:
        raise internal(f'the spec replicas field ".{".".join(paths.spec)}" does not exist')


def scaled(live: Body, scale: Any, paths: Paths) -> Body:
    """The object with the replicas of a Scale."""
    kind, version = scale.get("kind") or "Scale", str(scale.get("apiVersion") or "autoscaling/v1")
    if (kind, version) != ("Scale", "autoscaling/v1"):
        short = version.rpartition("/")[2]
        message = f"converting ({short}.{kind}) to (autoscaling.Scale): unknown conversion"
        raise bad_request(f'{kind} in version "{short}" cannot be handled as a Scale: {message}')
    replicas = dig(scale, "spec", "replicas") or 0
    if not isinstance(replicas, int):
        raise bad_request('Scale in version "v1" cannot be handled as a Scale: spec.replicas is no number')
    if replicas < 0:
        message = f"spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale", "autoscaling", name_of(live), [message])
    meta = {**live["metadata"]}
    if version_text := metadata(scale).get("resourceVersion"):
        meta["resourceVersion"] = version_text
    changed: Body = _with(live, paths.spec, replicas)
    return {**changed, "metadata": meta}


def _with(body: Body, path: tuple[str, ...], value: Any) -> Body:
    first, *rest = path
    inner = _with(body.get(first) or {}, tuple(rest), value) if rest else value
    return {**body, first: inner}


def _parts(path: str | None) -> tuple[str, ...]:
    return tuple(part for part in (path or "").split(".") if part)


def _selector(selector: Body | None) -> str:
    """A selector in query syntax. A ReplicationController's is a plain mapping."""
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
