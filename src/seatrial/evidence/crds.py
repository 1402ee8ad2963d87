"""What a CRD allows: its versions and their fields, and how two CRDs differ. Knows no step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.model.resource import Body, dig, listed

ALWAYS = ("apiVersion", "kind", "metadata")
"""Fields that every object has, whether its schema lists them or not."""


def gains(new: Body, old: Body | None) -> Iterator[str]:
    """What a CRD has that another lacks: the kind itself, versions, fields."""
    kind = dig(new, "spec", "names", "kind")
    if old is None:
        yield f"the kind {kind}"
        return
    found = [*_versions_beyond(new, old), *_fields_beyond(new, old)]
    yield from (f"{kind} {what}" for what in found)
    if not found:
        yield f"what {kind} allows, defaults or drops"


def losses(was: Body, now: Body) -> list[str]:
    """What a CRD served before a change and no longer serves."""
    kind = dig(was, "spec", "names", "kind")
    return [f"{kind} {what}" for what in (*_versions_beyond(was, now), *_fields_beyond(was, now))]


def is_alike(one: Body, other: Body) -> bool:
    """Whether two CRDs mean the same for objects. Descriptions and printer columns mean nothing."""
    mine, theirs = (definition.get("spec") or {} for definition in (one, other))
    return mine.get("scope") == theirs.get("scope") and _is_same(_plain_versions(mine), _plain_versions(theirs))


def _plain_versions(spec: Body) -> list[Body]:
    return [
        {key: v for key, v in version.items() if key != "additionalPrinterColumns"}
        for version in listed(spec, "versions")
    ]


def _is_same(one: Any, other: Any) -> bool:
    # Large schemas are equal most of the time, and Python compares equal trees fastest.
    if one == other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        keys = _without_words(one)
        return keys == _without_words(other) and all(_is_same(one[key], other[key]) for key in keys)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return False


def _without_words(node: Body) -> set[str]:
    return {key for key, value in node.items() if not (key == "description" and isinstance(value, str))}


def _versions_beyond(new: Body, old: Body) -> list[str]:
    there = _versions(old)
    return [
        f"in version {name}"
        for name, version in _versions(new).items()
        if name not in there or (version.get("served") and not there[name].get("served"))
    ]


def _fields_beyond(new: Body, old: Body) -> Iterator[str]:
    there = _versions(old)
    for name, version in _versions(new).items():
        if name in there and (there[name].get("served") or not version.get("served")):
            here, before = (set(_fields(dig(v, "schema", "openAPIV3Schema"))) for v in (version, there[name]))
            known = (field for field in sorted(here - before) if field.partition(".")[0] not in ALWAYS)
            yield from (f"{field} ({name})" for field in known)


def _versions(definition: Body) -> dict[str, Body]:
    return {str(version.get("name")): version for version in listed(definition, "spec", "versions")}


def _fields(schema: Any, at: str = "") -> Iterator[str]:
    """The fields of a schema, as `spec.width`."""
    for name, field in (dig(schema, "properties") or {}).items():
        path = f"{at}.{name}" if at else str(name)
        yield path
        yield from _fields(field, path)
    for part in ("items", "additionalProperties"):
        if isinstance(dig(schema, part), dict):
            yield from _fields(schema[part], f"{at}[]")
