"""Steps that operators share: finalizers, conditions, Secrets, applying objects."""

from __future__ import annotations

import base64
from collections.abc import Generator, Iterable

from seatrial.kinds import Act, Acts, Create, Emit, Status, Update, World
from seatrial.kinds.core.conditions import condition, with_condition
from seatrial.kinds.core.objectmeta import (
    controller_reference,
    finalizers_of,
    is_terminating,
    namespace_of,
    with_finalizer,
    with_metadata,
    without_finalizer,
)
from seatrial.kinds.operators.table import Number, operator_kinds
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.model.resource import (
    Body,
    Ref,
    annotations_of,
    group_of,
    listed,
    metadata,
    name_of,
    uid_of,
)

CA_BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nseatrial\n-----END CERTIFICATE-----\n").decode()
"""Stands for any CA certificate."""

# The keys that the API server requires in a typed Secret.
TYPED_KEYS = {
    "kubernetes.io/basic-auth": {"username": "", "password": ""},
    "kubernetes.io/dockercfg": {".dockercfg": base64.b64encode(b"{}").decode()},
    "kubernetes.io/dockerconfigjson": {".dockerconfigjson": base64.b64encode(b'{"auths":{}}').decode()},
    "kubernetes.io/ssh-auth": {"ssh-privatekey": ""},
    "kubernetes.io/tls": {"tls.crt": CA_BUNDLE, "tls.key": CA_BUNDLE},
}


def keep_finalizer(body: Body, release: Number, finalizer: str = "") -> Generator[Act, str | None, bool]:
    """Set the operator's finalizer, or remove it after a deletion request. Returns whether to continue."""
    finalizer = finalizer or finalizer_of(body, release)
    if is_terminating(body):
        if finalizer in finalizers_of(body):
            yield Update(without_finalizer(body, finalizer))
        return False
    if finalizer and finalizer not in finalizers_of(body):
        yield Update(with_finalizer(body, finalizer))
        return False
    return True


def finalizer_of(body: Body, release: Number) -> str:
    """The finalizer that a release of its operator sets on an object, or an empty string."""
    found = operator_kinds().get((group_of(str(body.get("apiVersion") or "")), str(body.get("kind") or "")))
    if found is None or release < found[1].finalizer_since:
        return ""
    return found[1].finalizer


def set_condition(body: Body, type_: str, status: str, reason: str = "", message: str = "", **more: object) -> Status:
    """The status with one condition added or replaced."""
    kept = with_condition(listed(body, "status", "conditions"), condition(body, type_, status, reason, message))
    return Status(body, {**(body.get("status") or {}), **more, "conditions": kept})


def secret(
    owner: Body, name: str, keys: Iterable[str], *, type_: str = "", any_key: bool = False, namespace: str = ""
) -> Body:
    """A Secret as an operator creates it, with unknown content. `any_key`: its keys are unknown too."""
    typed = TYPED_KEYS.get(type_, {})
    meta: Body = {"name": name, "namespace": namespace or namespace_of(owner)}
    if any_key:
        meta["annotations"] = {ANY_KEY: "true"}
    data = {**dict.fromkeys(keys, ""), **typed}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": type_ or "Opaque", "data": data}


def apply(body: Body, world: World, owner: Body | None = None) -> Acts:
    """Create an object, or update the data, labels and owners of the existing one."""
    ref = Ref(body["kind"], namespace_of(body), name_of(body), group_of(body["apiVersion"]))
    found = world.get(ref)
    if found is None:
        refusal = yield Create(body, owner=owner)
        if refusal is not None:
            yield Emit(owner or body, "CreateFailed", refusal.message, refusal=refusal)
    elif not is_terminating(found):
        yield Update(_updated(found, body, owner))


def _updated(found: Body, wanted: Body, owner: Body | None) -> Body:
    fields: Body = {
        "labels": {**(metadata(found).get("labels") or {}), **(metadata(wanted).get("labels") or {})} or None,
        "annotations": {**annotations_of(found), **annotations_of(wanted)} or None,
    }
    owners = metadata(found).get("ownerReferences") or []
    if owner is not None and not any(other.get("uid") == uid_of(owner) for other in owners):
        fields["ownerReferences"] = [*owners, controller_reference(owner)]
    changed = with_metadata(found, **fields)
    if "data" in wanted:
        changed = {**changed, "data": {**wanted["data"], **(found.get("data") or {})}}
    return changed
