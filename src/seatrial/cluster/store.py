"""Objects by kind, their resourceVersions, and a log of changes. Knows neither kinds nor clients."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Hashable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Literal, TypeVar

from msgspec import Struct

from seatrial.model.resource import Body, Ref

LOG_MAX = 20_000
"""Changes that a watch may still request. Older ones are `410 Gone`, as after etcd's compaction."""

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""Start of the cluster's clock. It advances by one millisecond per write, never by waiting."""

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
KindKey = tuple[str, str]
"""(group, kind)"""
Key = TypeVar("Key", bound=Hashable)


class StoreChange(Struct, frozen=True, gc=False):
    version: int
    type: ChangeType
    kind: KindKey
    body: Body
    before: Body | None


class Store:
    """Replaces etcd: put, remove, look up, and log the order."""

    def __init__(self) -> None:
        self.version = 1
        self.log: deque[StoreChange] = deque(maxlen=LOG_MAX)
        self._kinds: dict[KindKey, dict[tuple[str, str], Body]] = {}
        self._namespaces: dict[str, dict[Ref, Body]] = {}
        self._dependents: dict[str, dict[Ref, Body]] = {}
        self._labelled: dict[tuple[KindKey, str, str, str], dict[Ref, Body]] = {}
        self._uids: dict[str, Ref] = {}
        self._generations: dict[Ref, int] = {}

    def now(self) -> str:
        return _time(self.version // 1000)

    def get(self, ref: Ref) -> Body | None:
        return self._kinds.get((ref.group, ref.kind), {}).get((ref.namespace, ref.name))

    def of_kind(self, kind: KindKey, namespace: str = "") -> list[Body]:
        """Every object of a kind, in etcd's order: by namespace, then name."""
        found = self._kinds.get(kind, {})
        keys = (key for key in found if key[0] == namespace) if namespace else found
        return [found[key] for key in sorted(keys)]

    def refs(self, *kinds: KindKey) -> list[Ref]:
        """Every object of these kinds."""
        found = ((group, kind, key) for group, kind in kinds for key in sorted(self._kinds.get((group, kind), {})))
        return [Ref(kind, namespace, name, group) for group, kind, (namespace, name) in found]

    def of_kind_at(self, kind: KindKey, namespace: str, version: int) -> list[Body]:
        """Every object of a kind as it was at `version`, which must still be in the log."""
        if version >= self.version:
            return self.of_kind(kind, namespace)
        found = dict(self._kinds.get(kind, {}))
        for change in reversed(list(self.since(version) or ())):
            if change.kind == kind:
                meta = change.body["metadata"]
                key = (meta.get("namespace", ""), meta["name"])
                found.pop(key, None)
                if change.before is not None:
                    found[key] = change.before
        return [found[key] for key in sorted(found) if namespace in ("", key[0])]

    def count(self, kind: KindKey) -> int:
        return len(self._kinds.get(kind, ()))

    def content(self, namespace: str) -> list[tuple[Ref, Body]]:
        return sorted(self._namespaces.get(namespace, {}).items(), key=lambda pair: pair[0])

    def dependents(self, uid: str) -> list[tuple[Ref, Body]]:
        """Objects that have this uid among their owners."""
        return sorted(self._dependents.get(uid, {}).items(), key=lambda pair: pair[0])

    def labelled(self, kind: KindKey, namespace: str, label: str, value: str) -> list[tuple[Ref, Body]]:
        found = self._labelled.get((kind, namespace, label, value), {})
        return sorted(found.items(), key=lambda pair: pair[0])

    def by_uid(self, uid: str) -> Ref | None:
        return self._uids.get(uid)

    def __iter__(self) -> Iterator[tuple[Ref, Body]]:
        for (group, kind), found in sorted(self._kinds.items()):
            for namespace, name in sorted(found):
                yield Ref(kind, namespace, name, group), found[namespace, name]

    def existed(self, ref: Ref) -> bool:
        """Whether an object of this name ever existed."""
        return ref in self._generations

    def new_uid(self, ref: Ref) -> str:
        """A uid that depends only on the object's name and how often it was recreated, not on the order of writes."""
        generation = self._generations[ref] = self._generations.get(ref, 0) + 1
        seed = f"{ref.group}/{ref.kind}/{ref.namespace}/{ref.name}#{generation}"
        text = hashlib.md5(seed.encode(), usedforsecurity=False).hexdigest()
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"

    def put(self, ref: Ref, body: Body) -> Body:
        """Store `body` with a new resourceVersion. Its metadata is copied, not changed."""
        self.version += 1
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        before = self.get(ref)
        if before is not None:
            self._unindex(ref, before)
        kind = (ref.group, ref.kind)
        self._kinds.setdefault(kind, {})[ref.namespace, ref.name] = stored
        self._index(ref, stored)
        self.log.append(StoreChange(self.version, "ADDED" if before is None else "MODIFIED", kind, stored, before))
        return stored

    def remove(self, ref: Ref) -> Body:
        """Remove an object. The result has the resourceVersion of its removal, as watchers see it."""
        self.version += 1
        kind = (ref.group, ref.kind)
        before = self._kinds[kind].pop((ref.namespace, ref.name))
        self._unindex(ref, before)
        last = {**before, "metadata": {**before["metadata"], "resourceVersion": str(self.version)}}
        self.log.append(StoreChange(self.version, "DELETED", kind, last, before))
        return last

    def since(self, version: int) -> Iterator[StoreChange] | None:
        """The changes after `version`, or None if the log does not reach back that far."""
        if self.log and version < self.log[0].version - 1:
            return None
        # Every version is one change, so the requested changes are counted from the end.
        return reversed(list(islice(reversed(self.log), max(0, self.version - version))))

    def _index(self, ref: Ref, body: Body) -> None:
        meta = body["metadata"]
        self._uids[meta["uid"]] = ref
        if ref.namespace:
            self._namespaces.setdefault(ref.namespace, {})[ref] = body
        for owner in meta.get("ownerReferences") or ():
            self._dependents.setdefault(owner.get("uid", ""), {})[ref] = body
        for label in (meta.get("labels") or {}).items():
            self._labelled.setdefault(((ref.group, ref.kind), ref.namespace, *label), {})[ref] = body

    def _unindex(self, ref: Ref, body: Body) -> None:
        meta = body["metadata"]
        self._uids.pop(meta["uid"], None)
        if ref.namespace:
            self._namespaces[ref.namespace].pop(ref, None)
        for owner in meta.get("ownerReferences") or ():
            _drop(self._dependents, owner.get("uid", ""), ref)
        for label in (meta.get("labels") or {}).items():
            _drop(self._labelled, ((ref.group, ref.kind), ref.namespace, *label), ref)


def _drop(index: dict[Key, dict[Ref, Body]], key: Key, ref: Ref) -> None:
    """Nothing is kept of a key that has no object any more: a served cluster sees many."""
    found = index.get(key, {})
    found.pop(ref, None)
    if not found:
        index.pop(key, None)


@lru_cache(maxsize=8)
def _time(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
