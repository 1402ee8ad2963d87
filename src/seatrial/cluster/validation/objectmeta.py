"""Validation of metadata, in the API server's words. Knows nothing of specs.

The order and texts follow apimachinery's `api/validation/objectmeta.go`.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from seatrial.cluster.validation import names
from seatrial.cluster.validation.causes import each, invalid, required, too_long
from seatrial.cluster.validation.names import NameRule
from seatrial.kinds.tables.catalogue import CATALOGUE, ServedKind
from seatrial.model.resource import Body

ANNOTATIONS_BYTES_MAX = 256 * 1024

# Every other kind is named by a DNS subdomain.
_NAME_RULES: dict[tuple[str, str], NameRule] = {
    ("", "Namespace"): names.label,
    ("", "Service"): names.label_1035,
    ("apps", "StatefulSet"): names.label,
    ("apiregistration.k8s.io", "APIService"): names.path_segment,
    ("certificates.k8s.io", "CertificateSigningRequest"): names.path_segment,
    ("image.openshift.io", "ImageStreamTag"): names.path_segment,  # `app:latest`, in OpenShift
    ("rbac.authorization.k8s.io", "ClusterRole"): names.path_segment,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): names.path_segment,
    ("rbac.authorization.k8s.io", "Role"): names.path_segment,
    ("rbac.authorization.k8s.io", "RoleBinding"): names.path_segment,
}

# Finalizers that need no domain. A namespace's own finalizer is in its spec.
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})

_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")

# Served by other API servers, which do not require a domain.
_NO_DOMAIN_REQUIRED = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})

_UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"


def metadata_problems(kind: ServedKind, meta: Body) -> Iterator[str]:
    """The problems that refuse a creation. A generated name is already set."""
    rule = _NAME_RULES.get((kind.group, kind.kind), names.subdomain)
    if prefix := meta.get("generateName"):
        yield from each("metadata.generateName", prefix, rule(names.as_prefix(prefix)))
    if name := meta.get("name"):
        if problems := rule(name):
            yield from each("metadata.name", name, problems)
    else:
        yield required("metadata.name", "name or generateName is required")
    if labels := meta.get("labels"):
        yield from label_problems("metadata.labels", labels)
    if annotations := meta.get("annotations"):
        yield from annotation_problems("metadata.annotations", annotations)
    if owners := meta.get("ownerReferences"):
        yield from _owner_problems(owners)
    if finalizers := meta.get("finalizers"):
        yield from _finalizer_problems(kind, finalizers)


def label_problems(field: str, labels: dict[str, str | None]) -> Iterator[str]:
    for key, value in labels.items():
        if problems := names.qualified_name(key):
            yield from each(field, key, problems)
        if value and (problems := names.label_value(value)):
            yield from each(field, value, problems)


def annotation_problems(field: str, annotations: dict[str, str | None]) -> Iterator[str]:
    size = 0
    for key, value in annotations.items():
        # The rule of labels, but case-insensitive.
        if problems := names.qualified_name(key.lower()):
            yield from each(field, key, problems)
        size += len(key) + len(value or "")
    if size * 4 > ANNOTATIONS_BYTES_MAX and _bytes(annotations) > ANNOTATIONS_BYTES_MAX:
        yield too_long(field, ANNOTATIONS_BYTES_MAX)


def _bytes(texts: dict[str, str | None]) -> int:
    return sum(len(key.encode()) + len((value or "").encode()) for key, value in texts.items())


def _owner_problems(owners: list[Body]) -> Iterator[str]:
    field = "metadata.ownerReferences"
    controller = ""
    for owner in owners:
        group, _, version = str(owner.get("apiVersion") or "").rpartition("/")
        if not version or "/" in group:
            yield invalid(f"{field}.apiVersion", owner.get("apiVersion") or "", "version must not be empty")
        for key in ("kind", "name", "uid"):
            if not owner.get(key):
                yield invalid(f"{field}.{key}", "", "must not be empty")
        if (group, version, owner.get("kind")) == ("", "v1", "Event"):
            yield invalid(field, _printed(owner), "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            this = f"{owner.get('kind')}/{owner.get('name')}"
            if controller:
                shown = [_printed(owner) for owner in owners]
                yield invalid(field, shown, _two_controllers(controller, this))
            controller = controller or this


def _printed(owner: Body) -> Raw:
    """In the order of Go's struct."""
    return Raw(msgspec.json.encode({key: owner[key] for key in _OWNER_FIELDS if owner.get(key) is not None}))


def _two_controllers(first: str, second: str) -> str:
    return f'Only one reference can have Controller set to true. Found "true" in references for {first} and {second}'


def _finalizer_problems(kind: ServedKind, finalizers: list[str]) -> Iterator[str]:
    field = "metadata.finalizers"
    for name in finalizers:
        yield from each(field, name, names.qualified_name(name))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        yield invalid(field, finalizers, detail)
    if (kind.group, kind.kind) not in CATALOGUE or kind.group in _NO_DOMAIN_REQUIRED:
        return
    for index, name in enumerate(finalizers):
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            yield invalid(f"{field}[{index}]", name, _UNQUALIFIED)
