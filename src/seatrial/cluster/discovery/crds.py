"""What a CRD adds to the API: kinds, versions and schemas. Knows nothing of custom resources."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.discovery.schema import Schema, as_schema
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, dig, listed

EXTRA_SUBRESOURCES = {("build.openshift.io", "BuildConfig"): ("instantiate",)}
"""Subresources that no CRD could define: OpenShift serves these kinds from its own API server."""


def established(crd: Body | None) -> bool:
    """Whether the API server serves the kinds of the CRD."""
    conditions = listed(crd, "status", "conditions")
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)


def served_kinds(crd: Body | None) -> tuple[ServedKind, ...]:
    """The kinds that clients find because of this CRD."""
    return tuple(_served_kinds(crd)) if crd and established(crd) else ()


def _served_kinds(crd: Body) -> Iterator[ServedKind]:
    spec = crd.get("spec") or {}
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
                *EXTRA_SUBRESOURCES.get((str(spec.get("group", "")), kind), ()),
            ),
            list_kind=str(names.get("listKind") or f"{kind}List"),
        )


def schemas(crd: Body | None) -> dict[tuple[str, str, str], Schema]:
    """The structural schema of each version, by (group, version, kind)."""
    spec = (crd or {}).get("spec") or {}
    group, kind = str(spec.get("group", "")), str(dig(spec, "names", "kind") or "")
    return {
        (group, str(version.get("name", "")), kind): as_schema(dig(version, "schema", "openAPIV3Schema"))
        for version in listed(spec, "versions")
    }


def printer_columns(crd: Body | None, version: str) -> list[Body]:
    """The columns that `kubectl get` shows for objects in this version."""
    found = (v for v in listed(crd, "spec", "versions") if v.get("name") == version)
    return next((listed(v, "additionalPrinterColumns") for v in found), [])
