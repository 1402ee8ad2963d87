"""How Helm marks the objects of a release: a label and two annotations."""

from __future__ import annotations

from seatrial.model.resource import Body, annotations_of, labels_of, with_metadata

MANAGED_BY = ("app.kubernetes.io/managed-by", "Helm")
RELEASE_NAME = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"


def owned_by(body: Body, name: str, namespace: str) -> Body:
    """An object with the marks of a release, as Helm applies it."""
    labels = {**labels_of(body), MANAGED_BY[0]: MANAGED_BY[1]}
    annotations = {**annotations_of(body), RELEASE_NAME: name, RELEASE_NAMESPACE: namespace}
    return with_metadata(body, labels=labels, annotations=annotations)
