"""A schema as server-side apply reads it: which mappings and lists merge, and by which keys. Knows no managers.

Follows kube-openapi's `schemaconv`. The published schemas lack some information. It is in the tables below, from the
generated OpenAPI of Kubernetes 1.34.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from seatrial.cluster.discovery.schema import Schema, as_schema
from seatrial.model.resource import Body

ListType = Literal["atomic", "set", "map"]

# The keys of list items and of free-form mapping values, next to field names.
ITEMS = "[]"
EXTRA = "{}"

# Keys of associative lists that the API server defaults: ports of containers and Services.
KEY_DEFAULTS = {"protocol": "TCP"}

# Fields that are structs in Go, not pointers: every object has them, possibly empty.
ALWAYS_PRESENT = frozenset(
    ("metadata", "spec", "status", "template", "strategy", "updateStrategy", "resources", "loadBalancer")
)

RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"

ZEROS = {"string": "", "numeric": 0}

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_TIME = {"type": "string", "format": "date-time"}
_NUMBER = {"type": "integer"}
_TRUTH = {"type": "boolean"}

# The metadata of custom resources. Their own schemas only say that it is an object.
OBJECT_META = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _TEXT),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _NUMBER),
        **dict.fromkeys(("labels", "annotations"), _TEXTS),
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "managedFields": {"type": "array", "items": {"type": "object"}},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _TEXT),
                    **dict.fromkeys(("controller", "blockOwnerDeletion"), _TRUTH),
                },
            },
        },
    },
}


class Shape(Struct, frozen=True, eq=False):
    """How the value at one place of an object merges."""

    below: Below
    granular: bool = True
    """Whether the fields of a mapping are owned separately."""
    list_type: ListType = "atomic"
    keys: tuple[tuple[str, Any], ...] = ()
    """The keys of an associative list, by name, each with its default."""
    declared: frozenset[str] = frozenset()
    """Fields that the schema declares, unlike keys of a free-form mapping."""
    implied: frozenset[str] = frozenset()
    """Fields that always exist, even if empty."""
    closed: bool = False
    """Whether only declared fields are allowed."""
    type: str = ""
    """map, list, numeric, string, boolean or scalar; empty if any type is allowed."""


class Below(dict[str, Shape]):
    """The shapes one level down, computed on demand: most of a schema is never used."""

    __slots__ = ("preserves", "schema")

    def __init__(self, schema: Schema | None, preserves: bool) -> None:
        super().__init__()
        self.schema = schema
        self.preserves = preserves

    def __missing__(self, key: str) -> Shape:
        schema = self.schema
        if key not in (ITEMS, EXTRA) and (schema is None or key not in schema.node.get("properties", ())):
            return self[EXTRA]
        found = None if schema is None else schema.items() if key == ITEMS else schema.child(key)
        shape = self[key] = DEDUCED if found is None else _read(found, self.preserves)
        return shape


DEDUCED = Shape(Below(None, True))
"""Without a schema: mappings are granular, lists atomic."""


@lru_cache(maxsize=4096)
def shape_of(schema: Schema | None) -> Shape:
    """The shape of a whole object. Without a schema everything but its metadata is deduced."""
    if schema is not None and schema.defs:
        return _read(schema, False)
    own: Body = schema.node if schema else {"x-kubernetes-preserve-unknown-fields": True}
    identity = {"apiVersion": _TEXT, "kind": _TEXT, "metadata": OBJECT_META}
    return _read(as_schema({**own, "properties": {**own.get("properties", {}), **identity}}), False)


def _read(schema: Schema, preserves: bool) -> Shape:
    node = schema.node
    if node is schema.defs.get(RAW_EXTENSION):
        return Shape(Below(None, True), granular=False)
    preserves = preserves or bool(node.get("x-kubernetes-preserve-unknown-fields"))
    declared = frozenset(node.get("properties") or ())
    extra = node.get("additionalProperties")
    open_to_all = extra is True or isinstance(extra, dict) or (extra is None and (preserves or not declared))
    list_type, keys = _list_type(schema)
    required = frozenset(node.get("required") or ())
    return Shape(
        Below(schema, preserves),
        granular=not schema.atomic_map,
        list_type=list_type,
        keys=keys,
        declared=declared,
        implied=declared & (required | ALWAYS_PRESENT) if schema.defs else frozenset(),
        closed=not open_to_all,
        type=_type(schema),
    )


def _list_type(schema: Schema) -> tuple[ListType, tuple[tuple[str, Any], ...]]:
    """The declared list type. Without one, a list that strategic patches merge is associative."""
    declared = schema.node.get("x-kubernetes-list-type")
    if declared == "set" or (declared is None and "merge" in schema.patch_strategies and not schema.merge_key):
        return "set", ()
    if declared == "map" or (declared is None and "merge" in schema.patch_strategies):
        names = schema.map_keys or (schema.merge_key,)
        return "map", tuple((name, _default(schema, name)) for name in sorted(names))
    return "atomic", ()


def _default(schema: Schema, name: str) -> Any:
    """The value of a list key if the item omits it. A required Go field is never missing, but zero."""
    items = schema.items()
    field = items.child(name) if items else None
    if items is None or field is None or not schema.defs:
        return field.node.get("default") if field else None
    if name in (items.node.get("required") or ()):
        return ZEROS.get(_type(field))
    return KEY_DEFAULTS.get(name)


TYPES = {
    "object": "map",
    "array": "list",
    "integer": "numeric",
    "number": "numeric",
    "boolean": "boolean",
    "string": "string",
}


def _type(schema: Schema) -> str:
    node = schema.node
    declared = node.get("type")
    names = [name for name in declared if name != "null"] if isinstance(declared, list) else [declared]
    if node is schema.defs.get(QUANTITY) or (names == ["string"] and node.get("format") not in (None, "byte")):
        return "scalar"
    return TYPES.get(str(names[0]), "")
