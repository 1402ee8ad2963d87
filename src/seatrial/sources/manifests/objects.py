"""From YAML documents to the objects of a release. Knows nothing of the origin of the documents."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.helm import hooks
from seatrial.kinds.operators.generated_crds import crds_of
from seatrial.kinds.operators.table import is_cluster_scoped
from seatrial.kinds.tables.shapes import misfits, shaped
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Path, Place, dig, group_of, ref_of
from seatrial.sources.places import Locate, origin, place_of
from seatrial.text.yamlfile import Document

Where = Callable[[Document, int], Place]
"""The place of a character of a document's file, in a file of the user's."""


class Found(Struct, frozen=True):
    """One object, before it is known whether its kind is namespaced."""

    body: Body
    document: Document
    path: Path
    file: str
    where: Where


def objects_in(document: Document, file: str, where: Where) -> Iterator[Found]:
    """The object of a document, or the items of a list: for Kubernetes, anything with `items` is a list.

    As in `unstructuredJSONScheme.decode` of apimachinery, items without kind and apiVersion inherit those of the list.
    """
    if document.body is not None:
        yield from _flattened(Found(document.body, document, (), file, where))


def resources(found: Iterable[Found], namespace: str, scopes: dict[tuple[str, str], bool]) -> Iterator[Resource]:
    """Objects with their refs. One without a namespace gets that of the release, unless its kind is cluster-scoped."""
    for one in found:
        group, kind = group_of(str(one.body["apiVersion"])), str(one.body["kind"])
        clustered = scopes.get((group, kind), is_cluster_scoped(group, kind))
        ref = ref_of(one.body, namespaced=not clustered, namespace=namespace)
        yield Resource(ref, one.body, origin(one.file, _locator(one)), _overridden(one))


def refuse_misfits(found: Iterable[Resource], groups: Container[str]) -> None:
    """Refuse objects of an engine's own groups with a value of the wrong type: no engine acts on such an object."""
    for one in found:
        if one.ref.group in groups and (wrong := misfits(one.body)):
            place = place_of(one.place(*wrong[0].path))
            why = (
                "the API server refuses it"
                if wrong[0].is_refused
                else "the CRD accepts it, but its controller cannot read it"
            )
            raise CannotContinue(f"{place}: read {one.ref}: {wrong[0]}; {why}")


def _overridden(one: Found) -> tuple[tuple[str, str], ...]:
    # The nodes of a document are only composed for the few that can have such a pair.
    if one.document.contains(hooks.HOOK) < 2:
        return ()
    written = one.document.overridden(*one.path, "metadata", "annotations")
    return tuple(pair for pair in written if pair[0].startswith(hooks.HOOK))


def defined_scopes(found: Iterable[Found]) -> dict[tuple[str, str], bool]:
    """Custom kinds that these objects define, directly or through an operator, and whether they are cluster-scoped."""
    bodies = (body for one in found for body in (one.body, *crds_of(one.body)))
    specs = [body.get("spec") for body in bodies if body["kind"] == "CustomResourceDefinition"]
    return {(str(dig(s, "group")), str(dig(s, "names", "kind"))): dig(s, "scope") == "Cluster" for s in specs}


def _flattened(found: Found) -> Iterator[Found]:
    body: object = found.body
    if not isinstance(body, dict):
        value = "a list" if isinstance(body, list) else "a single value"
        raise CannotContinue(f"{_locator(found)(())}: not a Kubernetes object: {value}, not a mapping")
    if "items" in body:
        if not isinstance(body["items"] or [], list):
            raise CannotContinue(f"{_locator(found)(('items',))}: not a Kubernetes object: items is not a list")
        for index, item in enumerate(body["items"] or ()):
            yield from _flattened(replace(found, body=_inheriting(item, body), path=(*found.path, "items", index)))
        return
    for field, called in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not isinstance(body.get(field), str) or not body[field]:
            raise CannotContinue(f"{_locator(found)(())}: not a Kubernetes object: Object '{called}' is missing")
    fitted = shaped(body)
    yield found if fitted is body else replace(found, body=fitted)


def _inheriting(item: Any, around: Body) -> Any:
    if not isinstance(item, dict) or item.get("kind") or item.get("apiVersion"):
        return item
    return {"apiVersion": around.get("apiVersion"), "kind": str(around.get("kind")).removesuffix("List"), **item}


def _locator(one: Found) -> Locate:
    return lambda path: one.where(one.document, one.document.offset(*one.path, *path))
