"""Consistency checks of a store: its indexes against its objects."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.store import Store
from seatrial.model.resource import Body, Ref, group_of


def complaints(store: Store) -> list[str]:
    """The inconsistencies, as text."""
    return [*_objects(store), *_indexes(store), *_versions(store)]


def _objects(store: Store) -> Iterator[str]:
    for ref, body in store:
        meta = body["metadata"]
        named = Ref(body["kind"], meta.get("namespace", ""), meta["name"], group_of(body["apiVersion"]))
        if named != ref:
            yield f"{ref} calls itself {named}"
        if store.get(ref) is not body:
            yield f"{ref} is not found under its name"


def _indexes(store: Store) -> Iterator[str]:
    objects = dict(store)
    uids = {body["metadata"]["uid"]: ref for ref, body in objects.items()}
    if store._uids != uids:
        yield f"uids: {_difference(store._uids, uids)}"
    namespaces: dict[str, dict[Ref, Body]] = {}
    dependents: dict[str, dict[Ref, Body]] = {}
    labelled: dict[tuple[tuple[str, str], str, str, str], dict[Ref, Body]] = {}
    for ref, body in objects.items():
        meta = body["metadata"]
        if ref.namespace:
            namespaces.setdefault(ref.namespace, {})[ref] = body
        for owner in meta.get("ownerReferences") or ():
            dependents.setdefault(owner["uid"], {})[ref] = body
        for label, value in (meta.get("labels") or {}).items():
            labelled.setdefault(((ref.group, ref.kind), ref.namespace, label, value), {})[ref] = body
    for name, kept, wanted in (
        ("namespaces", store._namespaces, namespaces),
        ("dependents", store._dependents, dependents),
        ("labels", store._labelled, labelled),
    ):
        filled = {key: found for key, found in kept.items() if found}
        if filled != wanted:
            yield f"{name}: {_difference(filled, wanted)}"


def _versions(store: Store) -> Iterator[str]:
    versions = [change.version for change in store.log]
    if versions != sorted(set(versions)):
        yield "the versions of the log do not rise"
    of_objects = [int(body["metadata"]["resourceVersion"]) for _, body in store]
    if len(set(of_objects)) != len(of_objects):
        yield "two objects have the same version"
    if any(version > store.version for version in (*of_objects, *versions)):
        yield "something is newer than the store"


def _difference(kept: object, wanted: object) -> str:
    if isinstance(kept, dict) and isinstance(wanted, dict):
        keys = [key for key in {*kept, *wanted} if kept.get(key) != wanted.get(key)]
        return f"{sorted(map(str, keys))[:3]}"
    return "not the same"
