"""Comparing and merging two states of an object, field by field, after structured-merge-diff. Knows no managers.

Values are shared between input and output. A result that equals the live value *is* the live value.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Any

from seatrial.cluster.fields.fieldset import MEMBER, Fields, element, is_member, node_of
from seatrial.cluster.fields.shape import ITEMS, Shape
from seatrial.model.resource import Body

_EMPTY: dict[type, Any] = {dict: {}, list: []}


def changes(old: Body, new: Body, shape: Shape) -> tuple[Fields, Fields]:
    """The fields that are new or changed, and the fields that are removed."""
    return _map_changes(old, new, shape)


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """The live value merged with the applied one. Merging never removes anything."""
    if live is applied:
        return live
    if type(applied) is dict and type(live) is dict and shape.granular:
        return _merged_map(live, applied, shape)
    if type(applied) is list and type(live) is list and shape.list_type != "atomic":
        return _merged_list(live, applied, shape)
    if applied is None and live and _is_granular(live, shape):
        return live
    return live if live == applied and type(live) is type(applied) else applied


def pruned(value: Any, last: Fields, owned: Fields, shape: Shape) -> Any:
    """The value without the fields that were applied last time and that no manager owns any more."""
    if type(value) is dict and shape.granular:
        return _pruned_map(value, last, owned, shape)
    if type(value) is list and shape.list_type != "atomic":
        return _pruned_list(value, last, owned, shape)
    return value


def _map_changes(old: Body, new: Body, shape: Shape) -> tuple[Fields, Fields]:
    changed: Fields = {}
    removed: Fields = {}
    below = shape.below
    for key, value in new.items():
        if key in old:
            before = old[key]
            if before is not value and before != value:
                _record(changed, removed, "f:" + key, before, value, below[key])
        elif key in shape.implied and _is_granular(value, below[key]):
            if value:
                _record(changed, removed, "f:" + key, None, value, below[key])
        else:
            changed["f:" + key] = node_of(value, below[key])
    for key in old:
        if key not in new:
            removed["f:" + key] = MEMBER
    return changed, removed


def _record(changed: Fields, removed: Fields, name: str, before: Any, after: Any, shape: Shape) -> None:
    """Record how an existing field changed."""
    kind = type(after) if before is None else type(before)
    old: Any = _EMPTY.get(kind) if before is None else before
    new: Any = _EMPTY.get(kind) if after is None else after
    if type(new) is not kind or not _is_granular(old, shape) or not (old or new):
        changed[name] = node_of(after, shape)
        return
    compare = _map_changes if kind is dict else _list_changes
    more_changed, more_removed = compare(old, new, shape)
    if more_changed:
        changed[name] = more_changed
    if more_removed:
        removed[name] = more_removed


def _list_changes(old: list[Any], new: list[Any], shape: Shape) -> tuple[Fields, Fields]:
    before, after = _indexed(old, shape), _indexed(new, shape)
    changed: Fields = {}
    removed: Fields = {}
    items = shape.below[ITEMS]
    for name, item in after.items():
        known = before.get(name)
        if name not in before or (type(known) is tuple and type(item) is not tuple):
            changed[name] = MEMBER if type(item) is tuple else node_of(item, items)
        elif known is not item and known != item:
            _record(changed, removed, name, known, item, items)
    for name in before:
        if name not in after:
            removed[name] = MEMBER
    return changed, removed


def _indexed(values: list[Any], shape: Shape) -> dict[str, Any]:
    """Items by name. Items of one name become a tuple, which merges with nothing."""
    found: dict[str, Any] = {}
    for item in values:
        name = element(item, shape)
        if name in found:
            known = found[name]
            found[name] = (*known, item) if type(known) is tuple else (known, item)
        else:
            found[name] = item
    return found


def _is_granular(value: Any, shape: Shape) -> bool:
    """Whether the parts of a value are owned separately."""
    if type(value) is dict:
        return shape.granular
    return type(value) is list and shape.list_type != "atomic"


def _merged_map(live: Body, applied: Body, shape: Shape) -> Body:
    result = live
    for key, value in applied.items():
        if key in live:
            before = live[key]
            if type(value) is str and value == before:
                continue
            after = merged(before, value, shape.below[key])
            if after is before:
                continue
        else:
            after = value
        if result is live:
            result = dict(live)
        result[key] = after
    return result


def _merged_list(live: list[Any], applied: list[Any], shape: Shape) -> list[Any]:
    before = _indexed(live, shape)
    after = {element(item, shape): item for item in applied}
    items = shape.below[ITEMS]
    result: list[Any] = []
    for place in _interleaved([element(item, shape) for item in live], list(after)):
        if isinstance(place, int):
            result.append(live[place])
            continue
        known = before.get(place)
        alone = known is None or type(known) is tuple
        result.append(after[place] if alone else merged(known, after[place], items))
    return live if _same_items(result, live) else result


def _interleaved(live: list[str], applied: list[str]) -> Iterator[int | str]:
    """The order of a merged list: applied items by name, in their order; others by index, at their position."""
    wanted, known = set(applied), set(live)
    shared = iter([name for name in applied if name in known])
    next_shared = next(shared, None)
    done: set[str] = set()
    left = right = 0
    while left < len(live) or right < len(applied):
        if left < len(live) and live[left] not in wanted:
            yield left
            left += 1
            continue
        if left < len(live) and right < len(applied) and next_shared not in (None, live[left]):
            # An item that moves; it comes later.
            left += 1
            continue
        if left < len(live) and live[left] in done:
            left += 1
        if right < len(applied):
            name = applied[right]
            yield name
            done.add(name)
            right += 1
            if left < len(live) and live[left] == name:
                left += 1
            if name == next_shared:
                next_shared = next(shared, None)


def _same_items(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))


def _pruned_map(value: Body, last: Fields, owned: Fields, shape: Shape) -> Body:
    result = value
    for name, was in last.items():
        key = name[2:]
        if name[0] != "f" or key not in value:
            continue
        declared = key in shape.declared
        now = owned.get(name)
        removed = (declared or is_member(was)) and (now is None or not (declared or is_member(now)))
        if not removed and (was == now or type(value[key]) is str):
            continue
        rest = None if removed else pruned(value[key], was, now or {}, shape.below[key])
        if rest is value[key]:
            continue
        if result is value:
            result = dict(value)
        if removed:
            del result[key]
        else:
            result[key] = rest
    return result


def _pruned_list(value: list[Any], last: Fields, owned: Fields, shape: Shape) -> list[Any]:
    items = shape.below[ITEMS]
    result: list[Any] = []
    for item in value:
        name = element(item, shape)
        was, now = last.get(name), owned.get(name)
        if was is None:
            result.append(item)
        elif not is_member(was) or (now is not None and is_member(now)):
            result.append(pruned(item, was, now or {}, items))
    return value if _same_items(result, value) else result
