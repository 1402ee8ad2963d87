"""Kubernetes objects and their names. Knows nothing of files or clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

Body = dict[str, Any]
"""A Kubernetes object. Bodies are never changed in place once they were passed on."""

Path = tuple[str | int, ...]
"""The path of a field in a body: `("spec", "ports", 0)`."""
Sure = Literal["exact", "near", "file"]
WRITTEN = "seatrial.dev/written"
"""The annotation with the object as it is written, if a value of it does not fit."""


class Ref(Struct, frozen=True, omit_defaults=True, order=True, gc=False):
    """The identity of an object, across API versions. `namespace` is empty for cluster-scoped objects."""

    kind: str
    namespace: str
    name: str
    group: str = ""

    def __str__(self) -> str:
        if self.namespace:
            return f"{self.kind}/{self.namespace}/{self.name}"
        return f"{self.kind}/{self.name}"


class Place(Struct, frozen=True, omit_defaults=True, order=True):
    """A line in a user's file, and how certain it is."""

    file: str
    line: int
    sure: Sure = "exact"

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Origin(Struct, frozen=True, omit_defaults=True, weakref=True):
    """Which reading of which file an object came from. Only `sources` knows the lines of its fields."""

    file: str
    """The template or manifest, as the user would type it."""
    number: int = 0
    """Distinguishes readings of one file; 0 if only the file is known."""


class Pointer(Struct, frozen=True):
    """A field of an object, independent of its file: rules name it instead of a line."""

    origin: Origin
    path: Path = ()
    place: Place | None = None
    """The line, where a rule knows nothing but that."""


def line(place: Place) -> Pointer:
    """A pointer to what is known by its line alone."""
    return Pointer(Origin(place.file), place=place)


Resolve = Callable[[Pointer], Place]
"""Finds the line of a pointer."""


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def version_of(api_version: str) -> str:
    return api_version.rpartition("/")[2]


def metadata(body: Body) -> Body:
    """The metadata mapping, or an empty one."""
    found = body.get("metadata")
    return found if isinstance(found, dict) else {}


def name_of(body: Body) -> str:
    return str(metadata(body).get("name") or "")


def labels_of(body: Body) -> dict[str, str]:
    return metadata(body).get("labels") or {}


def annotations_of(body: Body) -> dict[str, str]:
    return metadata(body).get("annotations") or {}


def with_metadata(body: Body, **fields: Any) -> Body:
    """The body with these metadata fields set."""
    return {**body, "metadata": {**metadata(body), **fields}}


def written(body: Any) -> Body | None:
    """What is written of an object with a value that does not fit; None for all others."""
    if not isinstance(body, dict) or not (annotations := annotations_of(body)) or not isinstance(annotations, dict):
        return None
    raw = annotations.get(WRITTEN)
    return msgspec.json.decode(raw, type=dict[str, Any]) if isinstance(raw, str) else None


def without_mark(body: Body) -> Body:
    """The object as its readers see it, without what is written."""
    kept = {key: value for key, value in annotations_of(body).items() if key != WRITTEN}
    return with_metadata(body, annotations=kept) if len(kept) != len(annotations_of(body)) else body


def uid_of(body: Body) -> str:
    return str(metadata(body).get("uid") or "")


def ref_of(body: Body, *, namespaced: bool = True, namespace: str = "") -> Ref:
    """The ref of `body`; `namespace` is the default for namespaced objects."""
    own = str(metadata(body).get("namespace") or namespace) if namespaced else ""
    return Ref(str(body.get("kind") or ""), own, name_of(body), group_of(str(body.get("apiVersion") or "")))


def dig(body: Any, *path: str | int) -> Any:
    """The value at `path`, or None if a part of it is missing."""
    for key in path:  # Called so often that `match` would show, and so would a look at the type of the key.
        if isinstance(body, dict):
            body = body.get(key)
        elif isinstance(body, list) and isinstance(key, int) and -len(body) <= key < len(body):
            body = body[key]
        else:
            return None
    return body


def listed(body: Any, *path: str | int) -> list[Any]:
    """The list at `path`, or an empty one."""
    found = dig(body, *path)
    return found if isinstance(found, list) else []


def changed_paths(before: object, after: object, at: Path = ()) -> Iterator[Path]:
    """The paths at which two values differ."""
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from changed_paths(before.get(key), after.get(key), (*at, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from changed_paths(*pair, (*at, index))
    else:
        yield at
