"""Migration of kubectl from client-side to server-side apply, through the annotation that kubectl writes.

Only for a manager named `kubectl`. Knows nothing of managedFields entries.
"""

from __future__ import annotations

import json

from seatrial.cluster.fields.fieldset import fields_of, shared_paths, without
from seatrial.cluster.fields.merging import changes
from seatrial.cluster.fields.shape import Shape
from seatrial.model.resource import Body, annotations_of, metadata

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER = "kubectl"

# Go escapes these.
ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def unconflicted_paths(live: Body, manager: str, shape: Shape) -> frozenset[str]:
    """The paths whose live value is what kubectl applied before: they never conflict for kubectl."""
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


def with_annotation(body: Body, applied: Body, manager: str) -> Body:
    """The body with its annotation updated, if it has one."""
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
