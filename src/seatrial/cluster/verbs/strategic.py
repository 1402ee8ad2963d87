"""Strategic merge patches, after apimachinery's `util/strategicpatch`. Knows schemas, not kinds.

A schema defines the key by which list items merge. Directives in the patch (`$patch`, `$retainKeys`,
`$setElementOrder/...`, `$deleteFromPrimitiveList/...`) express what merging cannot.
"""

from __future__ import annotations

from typing import Any

from seatrial.cluster.discovery.schema import Schema
from seatrial.cluster.refusal import Refused, bad_request, unsupported_media
from seatrial.model.resource import Body
from seatrial.text.gotext import cannot_decode, plain, type_name

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
ORDER = "$setElementOrder"
DELETE_FROM_PRIMITIVE_LIST = "$deleteFromPrimitiveList"
DIRECTIVES = (DIRECTIVE, RETAIN_KEYS, ORDER, DELETE_FROM_PRIMITIVE_LIST)

ACCEPTED_FOR_CUSTOM_RESOURCES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)


def strategic_patch(live: Body, patch: Any, schema: Schema | None) -> Body:
    """The body merged with the patch; refused for custom resources, which have no merge keys."""
    if schema is None or not schema.defs:
        raise unsupported_media(ACCEPTED_FOR_CUSTOM_RESOURCES)
    if patch is None:
        return live
    if not isinstance(patch, dict):
        raise bad_request(cannot_decode(patch, "map[string]interface {}"))
    return _merged_map(live, patch, schema)


def _merged_map(live: Body, patch: Body, schema: Schema | None) -> Body:
    if DIRECTIVE in patch:
        return _directed_map(patch)
    result = _retained(live, patch)
    done = {RETAIN_KEYS}
    for key in patch:
        if key.startswith(ORDER):
            field = _directive_field(key, ORDER, "invalid patch format of setElementOrder list")
            _set_ordered(result, patch, field, patch[key], schema)
            done |= {key, field}
    for key, value in patch.items():
        if key in done:
            continue
        if key.startswith(DELETE_FROM_PRIMITIVE_LIST):
            field = _directive_field(key, DELETE_FROM_PRIMITIVE_LIST, "invalid patch format of primitive list")
            if isinstance(result.get(field), list):
                result[field] = [item for item in result[field] if item not in (value or ())]
        elif value is None:
            result.pop(key, None)
        else:
            _set_merged(result, key, value, schema)
    return result


def _directed_map(patch: Body) -> Body:
    match patch[DIRECTIVE]:
        case "replace":
            whole: Body = _whole(patch)
            return whole
        case "delete":
            return {}
        case directive:
            raise _failed(f"unknown patch type: {plain(directive)} in map: {plain(patch)}")


def _retained(live: Body, patch: Body) -> Body:
    """What `$retainKeys` keeps of the live mapping; all of it without the directive."""
    if RETAIN_KEYS not in patch:
        return dict(live)
    keys = patch[RETAIN_KEYS]
    given = {key for key, value in patch.items() if value is not None and not key.startswith("$")}
    if not isinstance(keys, list) or any(key not in keys for key in given):
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in live.items() if key in keys}


def _directive_field(key: str, prefix: str, fault: str) -> str:
    directive, slash, field = key.partition("/")
    if directive != prefix or not slash:
        raise bad_request(fault)
    return field


def _set_merged(result: Body, key: str, value: Any, schema: Schema | None) -> None:
    """Merge one value of the patch into `result`."""
    before = result.get(key)
    child = schema.child(key) if schema else None
    if isinstance(before, dict) and isinstance(value, dict):
        result[key] = _whole(value) if _strategy(child) == "replace" else _merged_map(before, value, child)
    elif isinstance(before, list) and isinstance(value, list):
        result[key] = _merged_list(before, value, child)
    elif isinstance(value, dict) and DIRECTIVE in value:
        result.pop(key, None)
    else:
        result[key] = _plain(value)


def _set_ordered(result: Body, patch: Body, field: str, order: Any, schema: Schema | None) -> None:
    """Merge a list of the patch and put its items into the requested order."""
    before, given = result.get(field), patch.get(field)
    child = schema.child(field) if schema else None
    key = child.merge_key if child else ""
    if not isinstance(order, list):
        raise _failed(f"expected a []interface {{}}, but received a {type_name(order)}")
    if not key and any(isinstance(item, dict) for item in order):
        raise _failed("This request caused apiserver to panic. Look in the logs for details.")
    _check_order(given or [], order, key)
    if before is None and given is None:
        return
    if not before and not given:
        raise _failed("no elements in any of the given slices")
    if given is None:
        merged = before
    elif before is None:
        merged = _plain(given)
    else:
        merged = _merged_list(before, given, child)
        before = _overwritten(before, given, key)
    result[field] = _in_order(merged or [], order, before or [], key)


def _check_order(given: list[Any], order: list[Any], key: str) -> None:
    """Every item of the patch must be in the order list, in the same order."""
    if not order or not given:
        return
    kept = iter(_identity(item, key) for item in order)
    if all(_identity(item, key) in kept for item in given if not _is_directive(item)):
        return
    raise _failed(f"The order in patch list:\n{plain(given)}\n doesn't match {ORDER} list:\n{plain(order)}\n")


def _merged_list(live: list[Any], patch: list[Any], schema: Schema | None) -> list[Any]:
    if schema is None or _strategy(schema) != "merge":
        return [_whole(item) for item in patch]
    if not live and not patch:
        return live
    types = {type(item) for item in (*live, *patch)}
    if len(types) > 1:
        raise _failed(f"list element types are not identical: {plain([live, patch])}")
    if types == {dict}:
        return _merged_items(live, patch, schema.merge_key, schema.items())
    return _in_order(list(dict.fromkeys((*live, *patch))), patch, live, "")


def _merged_items(live: list[Any], patch: list[Any], key: str, schema: Schema | None) -> list[Any]:
    """Merge two lists of mappings by their merge key."""
    kept, given = _directed_items(live, patch, key)
    result = list(kept)
    for item in given:
        identity = _identity(item, key)
        place = next((i for i, known in enumerate(result) if known.get(key) == identity), None)
        if place is None:
            result.append(_whole(item))
        else:
            result[place] = _merged_map(result[place], item, schema)
    return _in_order(result, given, kept, key)


def _directed_items(live: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """What remains of the live list, and the items of the patch that are not directives."""
    given = [item for item in patch if not _is_directive(item)]
    replaced = False
    for item in patch:
        match item.get(DIRECTIVE) if _is_directive(item) else None:
            case None:
                continue
            case "delete":
                removed = _identity(item, key)
                live = [known for known in live if known.get(key) != removed]
            case "replace":
                replaced = True
            case "merge":
                raise _failed("merging lists cannot yet be specified in the patch")
            case directive:
                raise _failed(f"unknown patch type: {plain(directive)} in map: {plain(item)}")
    return (_whole(given), []) if replaced else (live, given)


def _overwritten(live: list[Any], patch: list[Any], key: str) -> list[Any]:
    """The live list when its order is applied: Go has put new items into the places of deleted ones."""
    if not key:
        return live
    kept, given = _directed_items(live, patch, key)
    known = [item.get(key) for item in kept]
    added = [item for item in given if _identity(item, key) not in known]
    return kept + added[: max(0, len(live) - len(kept))]


def _in_order(items: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Items named in `order` in that order; the others at their live position, as far as possible."""
    wanted = {_key_of(item, key): place for place, item in reversed(list(enumerate(order)))}
    before = {_key_of(item, key): place for place, item in reversed(list(enumerate(live)))}
    named = [item for item in items if _key_of(item, key) in wanted]
    others = [item for item in items if _key_of(item, key) not in wanted]
    named.sort(key=lambda item: wanted[_key_of(item, key)])
    result: list[Any] = []
    for item in named:
        place = before.get(_key_of(item, key), -1)
        while others and before.get(_key_of(others[0], key), place) < place:
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _key_of(item: Any, key: str) -> Any:
    """The key of an item. Values that Go cannot use as a key are printed."""
    found = item.get(key) if key else item
    return plain(found) if isinstance(found, dict | list) else found


def _identity(item: Any, key: str) -> Any:
    if not key:
        return item
    if not isinstance(item, dict) or key not in item:
        raise _failed(f"map: {plain(item)} does not contain declared merge key: {key}")
    return item[key]


def _strategy(schema: Schema | None) -> str:
    strategies = schema.patch_strategies if schema else ()
    return next((strategy for strategy in strategies if strategy != "retainKeys"), "")


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and DIRECTIVE in item


def _plain(value: Any) -> Any:
    """A value of the patch without a live counterpart. Mappings with their own `$patch` are dropped."""
    match value:
        case dict():
            return _whole({key: _plain(item) for key, item in value.items() if not _is_directive(item)})
        case list():
            return [_plain(item) for item in value if not _is_directive(item)]
        case _:
            return value


def _whole(value: Any) -> Any:
    """A value of the patch that is used as a whole. Decoding drops nulls and directives."""
    match value:
        case dict():
            kept = ((key, item) for key, item in value.items() if item is not None and not key.startswith(DIRECTIVES))
            return {key: _whole(item) for key, item in kept}
        case list():
            return [_whole(item) for item in value]
        case _:
            return value


def _failed(message: str) -> Refused:
    """The API server's reply to an error without a status."""
    return Refused(500, "", message)
