"""External Secrets: stores, and Secrets copied from them while the operator runs.

From pkg/controllers (externalsecret, secretstore, pushsecret, clusterexternalsecret) of external-secrets 1.0.0. The
content of external vaults is assumed to exist.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from seatrial.kinds import Acts, Create, Delete, Emit, Kind, Need, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.objectmeta import controller_of, namespace_of
from seatrial.kinds.core.selection import fits
from seatrial.kinds.operators.reconcile import apply, keep_finalizer, secret, set_condition
from seatrial.kinds.operators.table import release_of
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of, listed, name_of

GROUP = "external-secrets.io"
GENERATORS = "generators.external-secrets.io"
OPERATOR = "external-secrets"
ACTOR = "external-secrets"
MANAGED = {"reconcile.external-secrets.io/managed": "true"}
CREATED_BY = "reconcile.external-secrets.io/created-by"
FAILED = "could not get secret data from provider"

Path = tuple[str | int, ...]


def store_needs(store: Body) -> Iterator[Need]:
    """The ServiceAccounts and Secrets that a store authenticates with, wherever its provider names them."""
    for field, kind, named in _references(dig(store, "spec", "provider"), ("spec", "provider")):
        # A ClusterSecretStore without a namespace uses the namespace of its reader.
        namespace = namespace_of(store) or str(named.get("namespace") or "")
        if namespace:
            ref = Ref(kind, namespace, str(named["name"]))
            yield Need(ref, "ready", field, key=str(named.get("key") or "") if kind != "ServiceAccount" else "")


def behave_store(store: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(store, release)):
        return
    missing = [need.object for need in store_needs(store) if world.get(need.object) is None]
    if missing:
        yield set_condition(store, "Ready", "False", "InvalidProviderConfig", "unable to create client")
        message = f'{missing[0].kind.lower()}s "{missing[0].name}" not found'
        yield Emit(store, "InvalidProviderConfig", message, missing=(missing[0],))
    else:
        yield set_condition(store, "Ready", "True", "Valid", "store validated")


def needs(external: Body) -> Iterator[Need]:
    for field, ref in _stores(external):
        yield Need(ref, "ready", field)
    for index, source in entries(external, "spec", "dataFrom"):
        generator = dig(source, "sourceRef", "generatorRef") or {}
        if generator.get("name") and generator.get("kind"):
            namespace = "" if generator["kind"] == "ClusterGenerator" else namespace_of(external)
            field = ("spec", "dataFrom", index, "sourceRef", "generatorRef", "name")
            yield Need(Ref(str(generator["kind"]), namespace, str(generator["name"]), GENERATORS), "ready", field)
    for index, source in entries(external, "spec", "target", "template", "templateFrom"):
        for part, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
            if name := dig(source, part, "name"):
                at = ("spec", "target", "template", "templateFrom", index, part, "name")
                yield Need(Ref(kind, namespace_of(external), str(name)), "ready", at)


def produces(external: Body) -> Iterator[Ref]:
    if _policy(external) in ("Owner", "Orphan") and not dig(external, "spec", "target", "manifest"):
        yield Ref("Secret", namespace_of(external), _target(external))


def behave(external: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(external, release)):
        return
    if unreadable := next(_unreadable(external, world), None):
        message, missing = unreadable
        yield set_condition(external, "Ready", "False", "SecretSyncedError", FAILED)
        yield Emit(external, "UpdateFailed", message, missing=missing)
        return
    policy = _policy(external)
    found = world.get(Ref("Secret", namespace_of(external), _target(external)))
    if policy == "Merge" and found is None:
        message = "secret will not be created due to CreationPolicy=Merge"
        yield set_condition(external, "Ready", "True", "SecretMissing", message)
        return
    if other := _other_owner(external, found):
        yield set_condition(
            external, "Ready", "False", "SecretSyncedError", "target is owned by another ExternalSecret"
        )
        yield Emit(external, "UpdateFailed", f"target is owned by another ExternalSecret: {other}")
        return
    if policy == "Owner":
        for old in world.owned(external, "Secret"):
            if name_of(old) != _target(external):
                yield Delete(old, why="the ExternalSecret has a new target")
    if policy != "None":
        yield from apply(_secret(external), world, owner=external if policy == "Owner" else None)
    yield set_condition(external, "Ready", "True", "SecretSynced", "secret synced", binding={"name": _target(external)})


def push_needs(push: Body) -> Iterator[Need]:
    if name := dig(push, "spec", "selector", "secret", "name"):
        ref = Ref("Secret", namespace_of(push), str(name))
        yield Need(ref, "ready", ("spec", "selector", "secret", "name"))
    for index, store in entries(push, "spec", "secretStoreRefs"):
        if store.get("name"):
            yield Need(_store(store, namespace_of(push)), "ready", ("spec", "secretStoreRefs", index, "name"))


def behave_push(push: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(push, release)):
        return
    missing = [need.object for need in push_needs(push) if world.get(need.object) is None]
    if missing:
        message = f'could not get {missing[0].kind} "{missing[0].name}"'
        yield set_condition(push, "Ready", "False", "Errored", message)
        yield Emit(push, "Errored", message, missing=(missing[0],))
    else:
        yield set_condition(push, "Ready", "True", "Synced", "PushSecret synced successfully")


def cluster_produces(cluster_wide: Body) -> Iterator[Ref]:
    """Only named namespaces are known in advance, not those that a selector matches."""
    for namespace in listed(cluster_wide, "spec", "namespaces"):
        name = str(dig(cluster_wide, "spec", "externalSecretName") or name_of(cluster_wide))
        yield Ref("ExternalSecret", str(namespace), name, GROUP)


def behave_cluster(cluster_wide: Body, world: World) -> Acts:
    if (release := release_of(world, OPERATOR)) is None or not (yield from keep_finalizer(cluster_wide, release)):
        return
    name = str(dig(cluster_wide, "spec", "externalSecretName") or name_of(cluster_wide))
    for namespace in _namespaces(cluster_wide, world):
        if world.get(Ref("ExternalSecret", namespace, name, GROUP)) is None:
            body: Body = {"apiVersion": cluster_wide["apiVersion"], "kind": "ExternalSecret"}
            meta = {**(dig(cluster_wide, "spec", "externalSecretMetadata") or {}), "name": name, "namespace": namespace}
            spec = dig(cluster_wide, "spec", "externalSecretSpec") or {}
            yield Create({**body, "metadata": meta, "spec": spec}, owner=cluster_wide)
    yield set_condition(cluster_wide, "Ready", "True")


def is_ready(body: Body) -> bool:
    return conditions.is_true(body, "Ready")


def _references(value: Any, at: Path) -> Iterator[tuple[Path, str, Body]]:
    """(field of the name, kind, reference) of everything that a provider's settings refer to."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _references(item, (*at, index))
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        kind = _kind_of_reference(str(key), inner)
        if kind and inner.get("name"):
            yield (*at, key, "name"), kind, inner
        else:
            yield from _references(inner, (*at, key))


def _kind_of_reference(key: str, value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    if key == "serviceAccountRef":
        return "ServiceAccount"
    if key == "caProvider":
        return str(value.get("type") or "")
    return "Secret" if key.lower().endswith("secretref") or key.endswith("SecretSecretRef") else ""


def _stores(external: Body) -> Iterator[tuple[Path, Ref]]:
    """Every store that is read, and the field that names it."""
    places: list[tuple[Path, Any]] = [(("spec", "secretStoreRef"), dig(external, "spec", "secretStoreRef"))]
    for part in ("data", "dataFrom"):
        for index, source in entries(external, "spec", part):
            places.append((("spec", part, index, "sourceRef", "storeRef"), dig(source, "sourceRef", "storeRef")))
    for at, store in places:
        if isinstance(store, dict) and store.get("name"):
            yield (*at, "name"), _store(store, namespace_of(external))


def _store(named: Body, namespace: str) -> Ref:
    kind = str(named.get("kind") or "SecretStore")
    return Ref(kind, "" if kind == "ClusterSecretStore" else namespace, str(named["name"]), GROUP)


def _unreadable(external: Body, world: World) -> Iterator[tuple[str, tuple[Ref, ...]]]:
    """Why the store cannot be read, in the operator's words, and the store that is missing."""
    for _, ref in _stores(external):
        store = world.get(ref)
        if store is None:
            message = f'could not get {ref.kind} "{ref.name}", {ref.kind.lower()}s.{GROUP} "{ref.name}" not found'
            yield message, (ref,)
        elif not conditions.is_true(store, "Ready"):
            yield f'{ref.kind} "{ref.name}" is not ready', ()
        elif not _allows(store, namespace_of(external), world):
            where = f'is not allowed from namespace "{namespace_of(external)}": denied by spec.condition'
            yield f'using cluster store "{ref.name}" {where}', ()


def _allows(store: Body, namespace: str, world: World) -> bool:
    allowed = [entry for _, entry in entries(store, "spec", "conditions")]
    if not allowed or store.get("kind") != "ClusterSecretStore":
        return True
    labels = labels_of(world.get(Ref("Namespace", "", namespace)) or {})
    return any(
        namespace in listed(entry, "namespaces")
        or (entry.get("namespaceSelector") is not None and fits(labels, entry["namespaceSelector"]))
        for entry in allowed
    )


def _namespaces(cluster_wide: Body, world: World) -> list[str]:
    spec = cluster_wide.get("spec") or {}
    selectors = [*listed(spec, "namespaceSelectors"), *filter(None, [spec.get("namespaceSelector")])]
    found = {
        name_of(body)
        for body in world.all("Namespace")
        if any(fits(labels_of(body), selector) for selector in selectors)
    }
    named = {str(name) for name in listed(spec, "namespaces") if world.get(Ref("Namespace", "", str(name)))}
    return sorted(found | named)


def _other_owner(external: Body, found: Body | None) -> str:
    owner = controller_of(found) if found is not None else None
    if owner is None or owner.get("kind") != "ExternalSecret" or owner.get("name") == name_of(external):
        return ""
    return str(owner.get("name"))


def _secret(external: Body) -> Body:
    template = dig(external, "spec", "target", "template") or {}
    keys = [str(entry.get("secretKey")) for _, entry in entries(external, "spec", "data")]
    any_key = bool(listed(external, "spec", "dataFrom"))
    if template.get("data") or listed(template, "templateFrom"):
        merged = template.get("mergePolicy") == "Merge"
        keys = [*(keys if merged else ()), *(template.get("data") or {})]
        any_key = (any_key and merged) or bool(listed(template, "templateFrom"))
    made = secret(external, _target(external), keys, type_=str(template.get("type") or ""), any_key=any_key)
    about = template.get("metadata") or {}
    labels = about.get("labels") or (labels_of(external) if not template else {})
    if _policy(external) == "Owner":
        owner = f"{namespace_of(external)}/{name_of(external)}"
        labels = {**labels, CREATED_BY: hashlib.sha3_224(owner.encode()).hexdigest()}
    meta = {**made["metadata"], "labels": {**labels, **MANAGED}}
    annotations = {**(about.get("annotations") or {}), **annotations_of(made)}
    return {**made, "metadata": {**meta, "annotations": annotations} if annotations else meta}


def _target(external: Body) -> str:
    return str(dig(external, "spec", "target", "name") or name_of(external))


def _policy(external: Body) -> str:
    return str(dig(external, "spec", "target", "creationPolicy") or "Owner")


KINDS = (
    Kind("SecretStore", GROUP, actor=ACTOR, needs=store_needs, behave=behave_store, ready=is_ready),
    Kind("ClusterSecretStore", GROUP, actor=ACTOR, needs=store_needs, behave=behave_store, ready=is_ready),
    Kind("ExternalSecret", GROUP, actor=ACTOR, needs=needs, produces=produces, behave=behave, ready=is_ready),
    Kind(
        "ClusterExternalSecret",
        GROUP,
        actor=ACTOR,
        produces=cluster_produces,
        behave=behave_cluster,
        ready=is_ready,
    ),
    Kind("PushSecret", GROUP, actor=ACTOR, needs=push_needs, behave=behave_push, ready=is_ready),
)
