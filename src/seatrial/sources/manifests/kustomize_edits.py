"""Edits of an Argo CD Application to a kustomization before it is built, as `kustomize edit` would write them.

Upstream: `Build` in util/kustomize/kustomize.go of Argo CD 3.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seatrial.model.resource import Body

SET = ("namePrefix", "nameSuffix", "namespace")
ADDED = ("commonLabels", "commonAnnotations")
APPENDED = ("patches", "components")

Edit = Callable[[Body], Body]


def edits_of(source: Body) -> Edit | None:
    """The edit to the kustomization; None if it is built unchanged."""
    asked = source.get("kustomize") or {}
    wanted = {
        key: value for key, value in asked.items() if value and key in (*SET, *ADDED, *APPENDED, "images", "replicas")
    }
    return (lambda kustomization: _edited(kustomization, wanted)) if wanted else None


def _edited(kustomization: Body, wanted: Body) -> Body:
    changed = dict(kustomization)
    for key, value in wanted.items():
        if key in SET:
            changed[key] = value
        elif key in ADDED:
            changed[key] = {**(changed.get(key) or {}), **value}
        elif key in APPENDED:
            changed[key] = [*(changed.get(key) or ()), *value]
        else:
            entries = (
                [_image(str(entry)) for entry in value] if key == "images" else [_replica(entry) for entry in value]
            )
            names = {entry["name"] for entry in entries}
            others = [entry for entry in changed.get(key) or () if entry.get("name") not in names]
            changed[key] = [*others, *entries]
    return changed


def _image(text: str) -> Body:
    """An image override: `name=new:tag`, `name:tag` or `name@digest`."""
    old, _, new = text.rpartition("=")
    name, _, digest = new.partition("@")
    tag = ""
    if ":" in name.rpartition("/")[2]:
        name, _, tag = name.rpartition(":")
    entry: Body = {"name": old or name}
    given: dict[str, Any] = {"newName": name if old and name != "*" else "", "newTag": tag, "digest": digest}
    return entry | {key: value for key, value in given.items() if value}


def _replica(entry: Body) -> Body:
    return {"name": entry.get("name"), "count": int(entry.get("count") or 0)}
