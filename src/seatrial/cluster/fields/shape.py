"""A schema as server-side apply reads it: which mappings and lists merge, and by which keys. Knows no owners.

The reading follows kube-openapi's `schemaconv`. Published schemas say less than the API server knows; what they leave
out is in the tables below, taken from its generated OpenAPI of Kubernetes 1.34.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from seatrial.cluster.discovery.schema import Schema, as_schema
from seatrial.model.resource import Body

ListType = Literal["atomic", "set", "map"]

# The places below a list and below a free mapping, beside the names of fields.
ITEMS = "[]"
EXTRA = "{}"

# Keys of associative lists that the API server fills in: ports of containers and of services.
KEY_DEFAULTS = {"protocol": "TCP"}

# Fields that are structs in Go, not pointers: an object that does not set them has them all the same, empty.
ALWAYS_THERE = frozenset(
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

# The metadata of custom resources, whose own schemas say no more of it than that it is an object.
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
    """Whether fields of a mapping are owned one by one."""
    list_type: ListType = "atomic"
    keys: tuple[tuple[str, Any], ...] = ()
    """The keys of an associative list, by name, each with its default."""
    declared: frozenset[str] = frozenset()
    """Fields that the schema names, unlike keys of a free mapping."""
    implied: frozenset[str] = frozenset()
    """Fields that are there, empty, even where nobody set them."""
    closed: bool = False
    """Whether only declared fields are welcome."""
    type: str = ""
    """map, list, numeric, string, boolean or scalar; empty where anything is welcome."""


class Below(dict[str, Shape]):
    """The shapes one step down, worked out when first asked for: most of a schema is never used."""

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
"""Where no schema speaks: mappings are granular, lists atomic."""


@lru_cache(maxsize=4096)
def shape_of(schema: Schema | None) -> Shape:
    """The shape of a whole object; without a schema all but its metadata is deduced."""
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
        implied=declared & (required | ALWAYS_THERE) if schema.defs else frozenset(),
        closed=not open_to_all,
        type=_type(schema),
    )


def _list_type(schema: Schema) -> tuple[ListType, tuple[tuple[str, Any], ...]]:
    """The declared list type; where there is none, a list that strategic patches merge is associative."""
    declared = schema.node.get("x-kubernetes-list-type")
    if declared == "set" or (declared is None and "merge" in schema.patch_strategies and not schema.merge_key):
        return "set", ()
    if declared == "map" or (declared is None and "merge" in schema.patch_strategies):
        names = schema.map_keys or (schema.merge_key,)
        return "map", tuple((name, _default(schema, name)) for name in sorted(names))
    return "atomic", ()


def _default(schema: Schema, name: str) -> Any:
    """What the key of an item is where the item does not say; a required field of Go's is never missing, but zero."""
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
