"""SealedSecret: its controller creates and owns the Secret of the same name.

From pkg/controller/controller.go of sealed-secrets 0.36. The data is assumed to be sealed for this cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import Acts, Emit, Kind, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.objectmeta import controller_of, namespace_of
from seatrial.kinds.operators.reconcile import apply, keep_finalizer, secret, set_condition
from seatrial.kinds.operators.table import release_of
from seatrial.model.resource import Body, Ref, annotations_of, dig, name_of, uid_of

GROUP = "bitnami.com"
OPERATOR = "sealed-secrets"
MANAGED = ("sealedsecrets.bitnami.com/managed", "sealedsecrets.bitnami.com/patch")
"""Annotations of a Secret that let the controller take it over."""
WITHOUT_OWNER = "sealedsecrets.bitnami.com/skip-set-owner-references"


def produces(sealed: Body) -> Iterator[Ref]:
    yield Ref("Secret", namespace_of(sealed), name_of(sealed))


def behave(sealed: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(sealed, release)):
        return
    found = world.get(Ref("Secret", namespace_of(sealed), name_of(sealed)))
    if found is not None and not _is_ours(found, sealed):
        message = f'Resource "{name_of(sealed)}" already exists and is not managed by SealedSecret'
        yield set_condition(sealed, "Synced", "False", "", f"failed update: {message}")
        yield Emit(sealed, "ErrUpdateFailed", message)
        return
    template = dig(sealed, "spec", "template") or {}
    keys = [*(dig(sealed, "spec", "encryptedData") or {}), *(template.get("data") or {})]
    made = secret(sealed, name_of(sealed), keys, type_=str(template.get("type") or ""))
    about = {key: dig(template, "metadata", key) for key in ("labels", "annotations")}
    meta = {**made["metadata"], **{key: value for key, value in about.items() if value}}
    alone = annotations_of(template).get(WITHOUT_OWNER) == "true"
    yield from apply({**made, "metadata": meta}, world, owner=None if alone else sealed)
    yield set_condition(sealed, "Synced", "True")


def is_synced(sealed: Body) -> bool:
    return conditions.is_true(sealed, "Synced")


def _is_ours(found: Body, sealed: Body) -> bool:
    owner = controller_of(found)
    if owner is not None and owner.get("uid") == uid_of(sealed):
        return True
    return any(annotations_of(found).get(annotation) == "true" for annotation in MANAGED)


KINDS = (
    Kind("SealedSecret", GROUP, actor="sealed-secrets-controller", produces=produces, behave=behave, ready=is_synced),
)
