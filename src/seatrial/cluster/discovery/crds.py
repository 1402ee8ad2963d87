"""What a CustomResourceDefinition adds to the API: kinds, versions and schemas. Knows nothing of their objects."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.discovery.schema import Schema, as_schema
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, dig, listed

OTHER_DOORS = {("build.openshift.io", "BuildConfig"): ("instantiate",)}
"""Subresources that no definition could give a kind: OpenShift serves it from an API server of its own."""


def established(definition: Body | None) -> bool:
    """Whether the API server has taken the definition up: its kinds are served from then on."""
    conditions = listed(definition, "status", "conditions")
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def served_kinds(definition: Body | None) -> tuple[ServedKind, ...]:
    """The kinds that clients find because of this definition."""
    return tuple(_served_kinds(definition)) if definition and established(definition) else ()


def _served_kinds(definition: Body) -> Iterator[ServedKind]:
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    kind = str(names.get("kind", ""))
    for version in listed(spec, "versions"):
        if not version.get("served"):
            continue
        yield ServedKind(
            group=str(spec.get("group", "")),
            version=str(version.get("name", "")),
            kind=kind,
            plural=str(names.get("plural", "")),
            singular=str(names.get("singular") or kind.lower()),
            namespaced=spec.get("scope") != "Cluster",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=(
                *(name for name in ("status", "scale") if dig(version, "subresources", name) is not None),
                *OTHER_DOORS.get((str(spec.get("group", "")), kind), ()),
            ),
            list_kind=str(names.get("listKind") or f"{kind}List"),
        )


def schemas(definition: Body | None) -> dict[tuple[str, str, str], Schema]:
    """The structural schema of each version, by (group, version, kind)."""
    spec = (definition or {}).get("spec") or {}
    group, kind = str(spec.get("group", "")), str(dig(spec, "names", "kind") or "")
    return {
        (group, str(version.get("name", "")), kind): as_schema(dig(version, "schema", "openAPIV3Schema"))
        for version in listed(spec, "versions")
    }


def printer_columns(definition: Body | None, version: str) -> list[Body]:
    """What `kubectl get` shows of objects in this version."""
    found = (v for v in listed(definition, "spec", "versions") if v.get("name") == version)
    return next((listed(v, "additionalPrinterColumns") for v in found), [])
