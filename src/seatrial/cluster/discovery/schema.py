"""The published schemas of Kubernetes. Loads only the requested version, once."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from seatrial.model.resource import Body

_PUBLISHED = "kubernetes-json-schema"


class Schema(Struct, frozen=True, eq=False):
    """One node of a schema. `node` is JSON Schema as in OpenAPI, `defs` are the targets of its `$ref`s.

    Compared by identity, because results computed from a schema are cached by it.
    """

    node: Body
    defs: Body

    def child(self, key: str) -> Schema | None:
        """The schema of a field, or None if the schema does not have it."""
        properties = self.node.get("properties")
        found = properties.get(key) if properties else None
        if found is None:
            found = self.node.get("additionalProperties")
        return resolved(found, self.defs) if isinstance(found, dict) else None

    def items(self) -> Schema | None:
        found = self.node.get("items")
        return resolved(found, self.defs) if isinstance(found, dict) else None

    @property
    def list_type(self) -> str:
        return str(self.node.get("x-kubernetes-list-type") or "atomic")

    @property
    def map_keys(self) -> tuple[str, ...]:
        return tuple(self.node.get("x-kubernetes-list-map-keys") or ())

    @property
    def atomic_map(self) -> bool:
        return self.node.get("x-kubernetes-map-type") == "atomic"

    @property
    def merge_key(self) -> str:
        """The key of a strategic merge patch, empty if lists are replaced."""
        return str(self.node.get("x-kubernetes-patch-merge-key") or "")

    @property
    def patch_strategies(self) -> tuple[str, ...]:
        return tuple(filter(None, str(self.node.get("x-kubernetes-patch-strategy") or "").split(",")))


def resolved(node: Body, defs: Body) -> Schema:
    """Follow a `$ref`. The keys next to it (list types, patch strategies) still apply."""
    pointer = node.get("$ref")
    if pointer is None:
        return Schema(node, defs)
    target = defs.get(str(pointer).rpartition("/")[2], {})
    extensions = {key: value for key, value in node.items() if key.startswith("x-kubernetes-") or key == "default"}
    return Schema({**target, **extensions} if extensions else target, defs)


def _published() -> Path:
    """The folder of the schemas. Importing their package would import a validator as well."""
    spec = find_spec("kubernetes_validate")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).with_name(_PUBLISHED)


@cache
def definitions(kube_version: str) -> Body:
    """Every published definition of one Kubernetes minor version (`1.34`), by its full name."""
    folder = _published()
    text = folder.joinpath(f"v{kube_version}.0-local", "_definitions.json").read_bytes()
    return cast(Body, msgspec.json.decode(text)["$defs"])


@cache
def _by_kind(kube_version: str) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for name, node in definitions(kube_version).items():
        for gvk in node.get("x-kubernetes-group-version-kind") or ():
            found.setdefault((gvk["group"], gvk["version"], gvk["kind"]), name)
    return found


def definition_name(kube_version: str, group: str, version: str, kind: str) -> str | None:
    """The name of the definition of a built-in kind: `io.k8s.api.apps.v1.Deployment`."""
    return _by_kind(kube_version).get((group, version, kind))


@cache
def builtin_schema(kube_version: str, group: str, version: str, kind: str) -> Schema | None:
    """The schema of a built-in kind."""
    name = definition_name(kube_version, group, version, kind)
    if name is None:
        return None
    defs = definitions(kube_version)
    return Schema(defs[name], defs)


def published_kinds(kube_version: str) -> frozenset[tuple[str, str, str]]:
    """(group, version, kind) of everything in the published schemas of this version."""
    return frozenset(_by_kind(kube_version))


@cache
def published_versions() -> tuple[str, ...]:
    """The Kubernetes minors with published schemas, oldest first."""
    folder = _published()
    names = {entry.name for entry in folder.iterdir()}
    minors = {name.removeprefix("v").split(".0-")[0] for name in names if name.endswith("-local")}
    return tuple(sorted(minors, key=lambda minor: tuple(int(part) for part in minor.split("."))))


def as_schema(node: Any) -> Schema:
    """A standalone schema, such as a CRD's."""
    return Schema(node if isinstance(node, dict) else {}, {})
