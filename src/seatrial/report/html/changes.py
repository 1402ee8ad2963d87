"""Which fields a request changed, by their paths. Shows values only of fields that cannot hold a secret."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from seatrial.graph.drawing import path
from seatrial.helm import hooks
from seatrial.model.resource import Path, changed_paths, dig
from seatrial.model.timeline import Event

CHANGES_MAX = 8
VALUE_MAX = 120
KEPT_BY_THE_SERVER = (
    ("status",),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
    ("metadata", "generation"),
    ("metadata", "creationTimestamp"),
    ("metadata", "uid"),
    ("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"),
)
SHOWN = ("image", "replicas", "storage", "storageClassName", "clusterIP", "serviceAccountName", "deletionTimestamp")
SHOWN_ANNOTATIONS = (hooks.HOOK, hooks.WEIGHT, hooks.DELETE_POLICY, hooks.RESOURCE_POLICY)
"""Fields whose values are shown."""


def changes_of(event: Event) -> Iterator[str]:
    """`spec.replicas: 1 → 2`, `spec.template.spec.containers[0].env[2].value`; nothing for a Secret."""
    before, after = event.before, event.after
    # What a controller keeps up to date is not what people look for, and most of a timeline.
    if event.effect != "changed" or event.cause is not None or event.object.kind == "Secret" or not before or not after:
        return
    paths = (at for at in changed_paths(before, after) if not any(at[: len(own)] == own for own in KEPT_BY_THE_SERVER))
    found = list(islice(paths, CHANGES_MAX + 1))
    for at in found[:CHANGES_MAX]:
        yield _change(at, dig(before, *at), dig(after, *at))
    if len(found) > CHANGES_MAX:
        yield "and more"


def _change(at: Path, before: object, after: object) -> str:
    if (
        at[-1:]
        and at[-1] in (*SHOWN, *SHOWN_ANNOTATIONS)
        and not any(isinstance(value, dict | list) for value in (before, after))
    ):
        return f"{path(at)}: {_value(before)} → {_value(after)}"
    word = " (new)" if before is None else " (removed)" if after is None else ""
    return f"{path(at)}{word}"


def _value(value: object) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]} ..."
