"""Patches as clients reckon them: what to send so that a live object says what is wanted now, and no longer what was.

Strategic three-way patches are those of `util/strategicpatch` of apimachinery, for which clients have the Go types;
`MERGED_BY` holds what their tags say. Merge patches are for kinds whose types no client has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.model.resource import Body

MERGED_BY: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "ports": ("containerPort", "port"),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
    "webhooks": ("name",),
}
"""The field that identifies the items of a list; all other lists are replaced as a whole."""
ONE_OF = frozenset(("strategy", "updateStrategy", "volumes"))
"""Where a field that is wanted excludes those beside it (`retainKeys`)."""


def strategic(before: Body, wanted: Body, live: Body) -> Body:
    """What differs from the live object, and nulls for what was said before and is not wanted; empty where nothing."""
    return _joined(_changed(live, wanted), _dropped(before, wanted))


def merge(before: Body, wanted: Body) -> Body:
    """What differs from what was said before, whatever the live object says: RFC 7386."""
    changes: Body = {key: None for key in before if key not in wanted}
    for key, value in wanted.items():
        old = before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge(old, value):
                changes[key] = inner
        elif key not in before or old != value:
            changes[key] = value
    return changes


def merge_live(before: Body, wanted: Body, live: Body) -> Body:
    """What differs from the live object, and nulls for what was said before and is not wanted: `jsonmergepatch`."""
    changes: Body = {key: None for key in before if key not in wanted}
    for key, value in wanted.items():
        old, said = live.get(key), before.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := merge_live(said if isinstance(said, dict) else {}, value, old):
                changes[key] = inner
        elif value is not None and old != value:
            changes[key] = value
    return changes


def _changed(live: Body, wanted: Body) -> Body:
    changes: Body = {}
    for key, value in wanted.items():
        old = live.get(key)
        if key in live and old == value:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            inner = _changed(old, value)
            if inner:
                changes[key] = {**inner, "$retainKeys": sorted(value)} if key in ONE_OF else inner
        elif (by := _key_of(key, value)) and isinstance(old, list):
            changes.update(_changed_items(key, by, old, value))
        else:
            changes[key] = value
    return changes


def _changed_items(field: str, by: str, live: list[Any], wanted: list[Any]) -> Iterator[tuple[str, Any]]:
    items = []
    for item, old in _pairs(by, wanted, live):
        inner = item if old is None else _changed(old, item)
        if inner:
            retain = {"$retainKeys": sorted(item)} if field in ONE_OF else {}
            items.append({**inner, by: item[by], **retain})
    if items:
        yield field, items
        yield f"$setElementOrder/{field}", [{by: item[by]} for item in wanted]


def _dropped(before: Body, wanted: Body) -> Body:
    gone: Body = {key: None for key, value in before.items() if key not in wanted and value is not None}
    for key, old in before.items():
        value = wanted.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if inner := _dropped(old, value):
                gone[key] = inner
        elif isinstance(value, list) and (items := list(_dropped_items(_key_of(key, old), old, value))):
            gone[key] = items
    return gone


def _dropped_items(by: str, before: list[Any], wanted: list[Any]) -> Iterator[Body]:
    if not by:
        return
    for item, kept in _pairs(by, before, wanted):
        if kept is None:
            yield {"$patch": "delete", by: item[by]}
        elif inner := _dropped(item, kept):
            yield {**inner, by: item[by]}


def _pairs(by: str, items: list[Any], others: list[Any]) -> Iterator[tuple[Body, Body | None]]:
    """Each item, and the other that it is held against: the last ones first, where several have one key.

    Go sorts both lists by the key, and calls equal ones smaller, which turns them around. A port that is open for TCP
    and for UDP is such a key, so one that is added or dropped there is mistaken for the other.
    """
    known: dict[Any, list[Body]] = {}
    for other in others:
        if isinstance(other, dict):
            known.setdefault(other.get(by), []).append(other)
    for key in dict.fromkeys(item[by] for item in items):
        left = known.get(key, [])
        for item in reversed([item for item in items if item[by] == key]):
            yield item, left.pop() if left else None


def _key_of(field: str, items: Any) -> str:
    """The field that tells these items apart; empty where the list is replaced whole."""
    if not isinstance(items, list) or not items:
        return ""
    return next((by for by in MERGED_BY.get(field, ()) if all(isinstance(i, dict) and by in i for i in items)), "")


def _joined(changes: Body, gone: Body) -> Body:
    """Both patches as one."""
    joined = dict(changes)
    for key, value in gone.items():
        other = changes.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            joined[key] = _joined(other, value)
        elif isinstance(value, list) and isinstance(other, list):
            joined[key] = _joined_items(key, other, value)
        elif key not in changes:
            joined[key] = value
    return joined


def _joined_items(field: str, changes: list[Any], gone: list[Any]) -> list[Any]:
    by = _key_of(field, gone)
    removed = {item[by]: item for item in gone}
    both = [_joined(item, removed.pop(item.get(by), {})) for item in changes]
    return [*both, *removed.values()]
