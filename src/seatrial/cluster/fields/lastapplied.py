"""How the API server helps kubectl from client-side to server-side apply, by the annotation that kubectl leaves.

Only an applier of the name `kubectl` is helped. Knows nothing of entries in managedFields.
"""

from __future__ import annotations

import json

from seatrial.cluster.fields.fieldset import fields_of, shared_paths, without
from seatrial.cluster.fields.merging import changes
from seatrial.cluster.fields.shape import Shape
from seatrial.model.resource import Body, annotations_of, metadata

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"

# Go writes these as escapes.
ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def explained(live: Body, manager: str, shape: Shape) -> frozenset[str]:
    """The paths whose live value is what kubectl itself applied before: no conflict for it, whoever owns them."""
    text = annotations_of(live).get(ANNOTATION) if manager == MANAGER else None
    try:
        last = json.loads(text or "null")
    except ValueError:
        return frozenset()
    if not isinstance(last, dict) or last.get("apiVersion") != live.get("apiVersion"):
        return frozenset()
    fields = fields_of(last, shape, containers=False)
    for differing in changes(last, live, shape):
        fields = without(fields, differing)
    return frozenset(shared_paths(fields, fields))


def noted(body: Body, applied: Body, manager: str) -> Body:
    """The body with its annotation brought up to date, where it has one."""
    annotations = annotations_of(body)
    if manager != MANAGER or not annotations.get(ANNOTATION):
        return body
    text = _text_of(applied)
    if text == annotations[ANNOTATION]:
        return body
    return {**body, "metadata": {**metadata(body), "annotations": {**annotations, ANNOTATION: text}}}


def _text_of(applied: Body) -> str:
    meta = metadata(applied)
    if "annotations" in meta:
        kept = {key: value for key, value in annotations_of(applied).items() if key != ANNOTATION}
        applied = {**applied, "metadata": {**meta, "annotations": kept}}
    text = json.dumps(applied, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.translate(ESCAPES) + "\n"
