"""What an engine that embeds Helm adds to the objects of a chart after rendering them."""

from __future__ import annotations

from msgspec import Struct

from seatrial.model.resource import Body, annotations_of, labels_of, with_metadata


class PostRendered(Struct, frozen=True):
    """Labels and annotations that win over those of the chart."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    hooks: bool = True
    """Whether hooks get them too."""


def with_additions(body: Body, adds: PostRendered) -> Body:
    """An object of a chart after post-rendering."""
    changed: Body = {"labels": {**labels_of(body), **adds.labels}} if adds.labels else {}
    if adds.annotations:
        changed["annotations"] = {**annotations_of(body), **adds.annotations}
    return with_metadata(body, **changed)
