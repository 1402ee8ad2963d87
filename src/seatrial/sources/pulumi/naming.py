"""The Kubernetes object that a registration stands for, with a name of the provider's where the program gives none."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from msgspec.structs import replace

from seatrial.kinds.operators.table import is_cluster_scoped
from seatrial.kinds.tables.pulumi_force_new import at, force_new_fields
from seatrial.model.errors import CannotContinue
from seatrial.model.program import KUBERNETES, Registration, api_version_of, short
from seatrial.model.resource import Body, Ref, annotations_of, group_of, metadata, ref_of
from seatrial.sources.pulumi.values import UNKNOWN

NAMESPACE = "default"
AUTO_NAMED = "pulumi.com/autonamed"
PATCH = "Patch"
"""How the type of a resource ends that says something about an object of others."""
NOT_KNOWN = "unknown"
ENCODED = base64.b64encode(NOT_KNOWN.encode()).decode()
ENCODES = (("Secret", "data"), ("ConfigMap", "binaryData"))


def as_object(one: Registration) -> Registration:
    """The Kubernetes object that a resource is; auto-named where the program gives no name."""
    if not one.type.startswith(KUBERNETES) or one.type.startswith("kubernetes:helm.sh/"):
        return one
    api_version, kind = api_version_of(one.type)
    token = kind
    api_version, kind = str(one.inputs.get("apiVersion") or api_version), str(one.inputs.get("kind") or kind)
    kind = kind if one.inputs.get("kind") else kind.removesuffix(PATCH)
    patches = token == kind + PATCH
    meta = metadata(one.inputs)
    if patches and not meta.get("name"):
        raise CannotContinue(f"{short(one.urn)}: patch resources require the `.metadata.name` field to be set")
    named = bool(meta.get("name") or meta.get("generateName")) and annotations_of(one.inputs).get(AUTO_NAMED) != "true"
    if not meta.get("name") and not meta.get("generateName"):
        annotations = {**annotations_of(one.inputs), AUTO_NAMED: "true"}
        meta = {**meta, "name": _given_name(one, Ref(kind, "", "", group_of(api_version))), "annotations": annotations}
    body = {**one.inputs, "apiVersion": api_version, "kind": kind, "metadata": meta}
    clustered = is_cluster_scoped(group_of(api_version), kind)
    if not clustered and not meta.get("namespace"):
        body["metadata"] = {**meta, "namespace": one.manner.namespace or NAMESPACE}
    known = {key: _told(value, key, kind) for key, value in body.items() if value != UNKNOWN}
    ref = ref_of(known, namespaced=not clustered, namespace=NAMESPACE)
    return replace(one, object=known, ref=ref, auto_named=not named, patches=patches)


def scoped(one: Registration, clustered: set[tuple[str, str]]) -> Registration:
    """A registration that knows which kinds (by group) belong to no namespace, as definitions in the program say."""
    contents = tuple(_unplaced(body) if _kind(body) in clustered else body for body in one.contents)
    if one.ref is None or one.object is None or (one.ref.group, one.ref.kind) not in clustered:
        return replace(one, contents=contents)
    return replace(one, object=_unplaced(one.object), ref=Ref(one.ref.kind, "", one.ref.name, one.ref.group))


def _told(value: Any, key: str, kind: str) -> Any:
    """A value as an API server takes it, where only a real run knows it: a word, encoded where that is wanted."""
    match value:
        case str() if value == UNKNOWN:
            return ENCODED if (kind, key) in ENCODES else NOT_KNOWN
        case dict():
            return {name: _told(one, key, kind) for name, one in value.items()}
        case list():
            return [_told(one, key, kind) for one in value]
    return value


def _unplaced(body: Body) -> Body:
    return {**body, "metadata": {key: value for key, value in metadata(body).items() if key != "namespace"}}


def _kind(body: Body) -> tuple[str, str]:
    return group_of(str(body.get("apiVersion"))), str(body.get("kind"))


def suffix(seed: str) -> str:
    """Eight hexadecimal digits as the provider gives; the same ones each time, and others for another object."""
    return hashlib.sha256(seed.encode()).hexdigest()[:8]


def _given_name(one: Registration, ref: Ref) -> str:
    """Another one whenever another object comes of it: who is replaced has a new name, who is changed keeps his.

    Who has an alias has the name that was given under it.
    """
    content = {
        path: found
        for path in force_new_fields(ref, one.manner, one.inputs)
        if (found := at(one.inputs, path)) is not None
    }
    known = next((urn for urn in one.aliases if urn.split("::")[2].rpartition("$")[2] == one.type), one.urn)
    called = known.split("::", 3)[3].lower()
    return f"{called}-{suffix(known + (json.dumps(content, sort_keys=True) if content else ''))}"
