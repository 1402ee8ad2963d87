"""Responses with the metadata of objects only, as garbage collectors and `seatrial snapshot` request them."""

from __future__ import annotations

from seatrial.model.resource import Body

API_VERSION = "meta.k8s.io/v1"


def wants_partial(accept: str) -> bool:
    return "as=PartialObjectMetadata" in accept and "g=meta.k8s.io" in accept and "v=v1" in accept


def as_partial(response: Body) -> Body:
    """A list or a single object without everything but its metadata."""
    meta = response.get("metadata") or {}
    if (items := response.get("items")) is None:
        return {"kind": "PartialObjectMetadata", "apiVersion": API_VERSION, "metadata": meta}
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": API_VERSION,
        "metadata": meta,
        "items": [as_partial(item) for item in items],
    }
