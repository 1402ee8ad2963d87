"""The Kubernetes object of a registration, with a generated name if the program sets none."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from msgspec.structs import replace

from seatrial.kinds.operators.table import is_cluster_scoped
from seatrial.kinds.tables.pulumi_force_new import at, force_new_fields
from seatrial.kinds.tables.shapes import shaped
from seatrial.model.errors import CannotContinue
from seatrial.model.program import KUBERNETES, Registration, api_version_of, short
from seatrial.model.resource import Body, Ref, annotations_of, group_of, metadata, ref_of
from seatrial.sources.pulumi.values import UNKNOWN

NAMESPACE = "default"
AUTO_NAMED = "pulumi.com/autonamed"
PATCH = "Patch"
"""The suffix of resource types that patch an existing object."""
NOT_KNOWN = "unknown"
ENCODED = base64.b64encode(NOT_KNOWN.encode()).decode()
ENCODES = (("Secret", "data"), ("ConfigMap", "binaryData"))


def as_object(one: Registration) -> Registration:
    """The Kubernetes object of a resource; auto-named if the program sets no name."""
    if not one.type.startswith(KUBERNETES) or one.type.startswith("kubernetes:helm.sh/"):
        return one
    api_version, kind = api_version_of(one.type)
    token = kind
    api_version, kind = str(one.inputs.get("apiVersion") or api_version), str(one.inputs.get("kind") or kind)
    kind = kind if one.inputs.get("kind") else kind.removesuffix(PATCH)
    patches = token == kind + PATCH
    written = {**one.inputs, "apiVersion": api_version, "kind": kind}
    body = shaped({key: _with_placeholders(value, key, kind) for key, value in written.items() if value != UNKNOWN})
    meta = metadata(body)
    if patches and not meta.get("name"):
        raise CannotContinue(f"{short(one.urn)}: patch resources require the `.metadata.name` field to be set")
    named = bool(meta.get("name") or meta.get("generateName")) and annotations_of(body).get(AUTO_NAMED) != "true"
    if not meta.get("name") and not meta.get("generateName"):
        annotations = {**annotations_of(body), AUTO_NAMED: "true"}
        meta = {**meta, "name": _given_name(one, Ref(kind, "", "", group_of(api_version))), "annotations": annotations}
    clustered = is_cluster_scoped(group_of(api_version), kind)
    if not clustered and not meta.get("namespace"):
        meta = {**meta, "namespace": one.manner.namespace or NAMESPACE}
    known = {**body, "metadata": meta}
    ref = ref_of(known, namespaced=not clustered, namespace=NAMESPACE)
    return replace(one, object=known, ref=ref, auto_named=not named, patches=patches)


def scoped(one: Registration, clustered: set[tuple[str, str]]) -> Registration:
    """The registration without a namespace if CRDs of the program make its kind cluster-scoped."""
    contents = tuple(_unplaced(body) if _kind(body) in clustered else body for body in one.contents)
    if one.ref is None or one.object is None or (one.ref.group, one.ref.kind) not in clustered:
        return replace(one, contents=contents)
    return replace(one, object=_unplaced(one.object), ref=Ref(one.ref.kind, "", one.ref.name, one.ref.group))


def _with_placeholders(value: Any, key: str, kind: str) -> Any:
    """A value with placeholders that the API server accepts instead of unknown values."""
    match value:
        case str() if value == UNKNOWN:
            return ENCODED if (kind, key) in ENCODES else NOT_KNOWN
        case dict():
            return {name: _with_placeholders(one, key, kind) for name, one in value.items()}
        case list():
            return [_with_placeholders(one, key, kind) for one in value]
    return value


def _unplaced(body: Body) -> Body:
    return {**body, "metadata": {key: value for key, value in metadata(body).items() if key != "namespace"}}


def _kind(body: Body) -> tuple[str, str]:
    return group_of(str(body.get("apiVersion"))), str(body.get("kind"))


def suffix(seed: str) -> str:
    """Eight hexadecimal digits, as the provider generates them; deterministic here."""
    return hashlib.sha256(seed.encode()).hexdigest()[:8]


def _given_name(one: Registration, ref: Ref) -> str:
    """The generated name: it changes when the object is replaced, and stays when it is updated.

    A resource with an alias keeps the name generated under the alias.
    """
    content = {
        path: found
        for path in force_new_fields(ref, one.manner, one.inputs)
        if (found := at(one.inputs, path)) is not None
    }
    known = next((urn for urn in one.aliases if urn.split("::")[2].rpartition("$")[2] == one.type), one.urn)
    called = known.split("::", 3)[3].lower()
    return f"{called}-{suffix(known + (json.dumps(content, sort_keys=True) if content else ''))}"
