"""The API's OpenAPI v3 documents: operations with their parameters, and schemas.

Helm and kubectl read from it whether the server validates fields; `kubectl explain` reads the schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Raw

from seatrial.cluster.discovery.schema import Schema, definition_name, definitions
from seatrial.cluster.discovery.served import Discovery
from seatrial.kinds.tables.catalogue import SUBRESOURCES, ServedKind, subresource_kind
from seatrial.model.resource import Body

ROOT = "/openapi/v3"

_WRITING = ("dryRun", "fieldManager", "fieldValidation")
_DELETING = ("dryRun", "gracePeriodSeconds", "propagationPolicy")
_LISTING = ("continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "watch")

# HTTP method, action and query parameters of each verb; those of a collection first.
_ON_COLLECTION: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "list": ("get", "list", _LISTING),
    "create": ("post", "post", _WRITING),
    "deletecollection": ("delete", "deletecollection", (*_DELETING, *_LISTING)),
}
_ON_OBJECT: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "get": ("get", "get", ()),
    "create": ("post", "post", _WRITING),
    "update": ("put", "put", _WRITING),
    "patch": ("patch", "patch", (*_WRITING, "force")),
    "delete": ("delete", "delete", _DELETING),
}
_TYPES = {"gracePeriodSeconds": "integer", "limit": "integer", "watch": "boolean", "force": "boolean"}

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class OpenAPI:
    """The documents of everything served, each built on first request and again when its kinds change."""

    def __init__(
        self, discovery: Discovery, custom: Callable[[ServedKind], Schema | None], *, with_schemas: bool = True
    ) -> None:
        """`custom` returns the schema of a kind defined by a CRD.

        Without schemas the documents contain only what Helm needs: one operation per kind. Helm reads the whole
        document again for each object it applies.
        """
        self._discovery = discovery
        self._custom = custom
        self._with_schemas = with_schemas
        self._documents: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._digests: dict[ServedKind, tuple[Schema, str]] = {}
        self._index: tuple[object, bytes] = None, b""

    def index(self) -> bytes:
        """The path of each document. The hash in the URL lets clients cache it."""
        now = self._discovery.changes, *map(self._digest, self._discovery.kinds())
        if self._index[0] != now:
            self._index = now, self._built_index()
        return self._index[1]

    def _built_index(self) -> bytes:
        paths = {}
        for group, version in self._discovery.group_versions():
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            url = f"{ROOT}/{path}?hash={self._hash(group, version)}"
            paths[path] = {"serverRelativeURL": url}
        return msgspec.json.encode({"paths": paths})

    def document(self, path: str) -> bytes | None:
        """The response to a GET of `/openapi/v3/...`; None if nothing is served there."""
        match path.removeprefix(ROOT).strip("/").split("/"):
            case ["api", version]:
                return self._of_version("", version)
            case ["apis", group, version]:
                return self._of_version(group, version)
            case [""]:
                return self.index()
        return None

    def _of_version(self, group: str, version: str) -> bytes | None:
        kinds = self._discovery.in_version(group, version)
        if not kinds:
            return None
        now = self._hash(group, version)
        built, text = self._documents.get((group, version), ("", b""))
        if built != now:
            text = msgspec.json.encode(self._built(kinds))
            self._documents[group, version] = now, text
        return text

    def _hash(self, group: str, version: str) -> str:
        kinds = self._discovery.in_version(group, version)
        customs = [self._digest(kind) for kind in kinds]
        if any(customs):
            return _hash_of((self._discovery.kube_version, self._with_schemas, kinds, customs))
        return _hash_of_kinds(self._discovery.kube_version, self._with_schemas, kinds)

    def _digest(self, kind: ServedKind) -> str:
        """The hash of a CRD's schema, computed once: clients ask for the index again and again.

        Empty where the documents have no schemas: then they are the same for any.
        """
        schema = self._custom(kind) if self._with_schemas else None
        if schema is None:
            return ""
        known, digest = self._digests.get(kind, (None, ""))
        if known is not schema:
            digest = _hash_of(schema.node)
            self._digests[kind] = schema, digest
        return digest

    def _built(self, kinds: Iterable[ServedKind]) -> Body:
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": f"v{self._discovery.kube_version}.0"},
            "paths": dict(path for kind in kinds for path in (_paths(kind) if self._with_schemas else _patches(kind))),
            "components": {"schemas": self._schemas(kinds) if self._with_schemas else {}},
        }

    def _schemas(self, kinds: Iterable[ServedKind]) -> dict[str, Raw | Body]:
        kube_version = self._discovery.kube_version
        found: dict[str, Raw | Body] = {}
        wanted: list[str] = []
        for kind in kinds:
            name = definition_name(kube_version, kind.group, kind.version, kind.kind)
            if name is not None:
                wanted.append(name)
                continue
            schema = self._custom(kind)
            found.update(_custom_schemas(kind, {} if schema is None else schema.node))
            wanted.append(_OBJECT_META)
        found.update(_reachable(kube_version, wanted))
        return found


@lru_cache(maxsize=1024)
def _hash_of_kinds(kube_version: str, with_schemas: bool, kinds: tuple[ServedKind, ...]) -> str:
    """The same in every cluster with these kinds; Helm asks for all of them again and again."""
    return _hash_of((kube_version, with_schemas, kinds, ["" for _ in kinds]))


def _hash_of(content: object) -> str:
    return sha256(msgspec.json.encode(content)).hexdigest()[:32].upper()


def _patches(kind: ServedKind) -> Iterator[tuple[str, Body]]:
    """The one operation that Helm looks for: whether a PATCH of this kind accepts fieldValidation."""
    if "patch" in kind.verbs:
        own = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        yield f"{root}/{kind.plural}/{{name}}", _operations(("patch",), _ON_OBJECT, own)


def _paths(kind: ServedKind) -> Iterator[tuple[str, Body]]:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    own = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    places = [_parameter("namespace", "path")] if kind.namespaced else []
    if kind.namespaced and "list" in kind.verbs:
        yield f"{root}/{kind.plural}", _operations(("list",), _ON_COLLECTION, own)
    yield collection, {**_operations(kind.verbs, _ON_COLLECTION, own), "parameters": places}
    places = [_parameter("name", "path"), *places]
    on_object = _operations(tuple(verb for verb in kind.verbs if verb != "create"), _ON_OBJECT, own)
    if on_object:
        yield f"{collection}/{{name}}", {**on_object, "parameters": places}
    for name in kind.subresources:
        sub = SUBRESOURCES[name]
        gvk = {
            "group": sub.group or kind.group,
            "version": sub.version or kind.version,
            "kind": subresource_kind(kind, name),
        }
        operations = _operations(sub.verbs, _ON_OBJECT, gvk)
        yield f"{collection}/{{name}}/{name}", {**operations, "parameters": places}


def _operations(
    verbs: Iterable[str], methods: dict[str, tuple[str, str, tuple[str, ...]]], gvk: dict[str, str]
) -> Body:
    found: Body = {}
    for method, action, parameters in (methods[verb] for verb in verbs if verb in methods):
        found[method] = {
            "parameters": [_parameter(name, "query") for name in parameters],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
        }
    return found


def _parameter(name: str, place: str) -> Body:
    found: Body = {"name": name, "in": place, "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}
    if place == "path":
        found["required"] = True
    return found


def _custom_schemas(kind: ServedKind, schema: Body) -> Iterator[tuple[str, Body]]:
    """A CRD's schema and that of its list, with the fields that every object has."""
    prefix = ".".join(reversed(kind.group.split("."))) + f".{kind.version}."
    meta = {"allOf": [{"$ref": f"#/components/schemas/{_OBJECT_META}"}]}
    typed = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
    gvk = {"group": kind.group, "version": kind.version}
    own = {**(schema.get("properties") or {}), **typed, "metadata": meta}
    yield (
        prefix + kind.kind,
        {
            **schema,
            "type": "object",
            "properties": own,
            "x-kubernetes-group-version-kind": [{**gvk, "kind": kind.kind}],
        },
    )
    items = {"type": "array", "items": {"$ref": f"#/components/schemas/{prefix}{kind.kind}"}}
    yield (
        prefix + kind.list_kind,
        {
            "type": "object",
            "properties": {**typed, "items": items, "metadata": {"type": "object"}},
            "x-kubernetes-group-version-kind": [{**gvk, "kind": kind.list_kind}],
        },
    )


def _reachable(kube_version: str, names: Iterable[str]) -> Iterator[tuple[str, Raw]]:
    """These definitions and everything they refer to."""
    waiting = list(dict.fromkeys(names))
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        text, references = _component(kube_version, name)
        yield name, text
        waiting.extend(references - seen)
        seen |= references


@cache
def _component(kube_version: str, name: str) -> tuple[Raw, frozenset[str]]:
    references: set[str] = set()
    node = _as_openapi(definitions(kube_version)[name], references)
    return Raw(msgspec.json.encode(node)), frozenset(references)


def _as_openapi(node: Any, references: set[str]) -> Any:
    """A published definition as the API server shows it: one type each, and references under components."""
    if isinstance(node, list):
        return [_as_openapi(item, references) for item in node]
    if not isinstance(node, dict):
        return node
    found = {key: _as_openapi(value, references) for key, value in node.items()}
    match node.get("type"):
        case [str(kind), "null"]:
            found["type"] = kind
    match found:
        # The schema of JSON schemas has a property `$ref` that is not a string.
        case {"$ref": str(pointer), **beside}:
            name = pointer.rpartition("/")[2]
            references.add(name)
            reference = {"$ref": f"#/components/schemas/{name}"}
            return {**beside, "allOf": [reference]} if beside else reference
    return found
