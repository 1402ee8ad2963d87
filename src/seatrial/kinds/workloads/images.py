"""Image names, and whether an image can be pulled: always, except images that a build in the cluster must push first.

Error texts are CRI-O's, as on OpenShift. The internal registry serves the tags of image streams.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.kinds import World
from seatrial.kinds.core.entries import entries
from seatrial.model import lazy_re
from seatrial.model.resource import Body, Ref, dig

IMAGES = "image.openshift.io"
REGISTRY = lazy_re.compile(
    r"image-registry\.openshift-image-registry\.svc(?:\.cluster\.local)?:5000/([^/]+)/([^/:@]+)(?::(.+))?"
)
PLATFORM_NAMESPACE = "openshift"
"""Where OpenShift has its own image streams."""
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
"""Kinds that keep containers running."""
_HASHED = lazy_re.compile(r"-[0-9a-f]{32}$")
"""The suffix that ko appends to a program's name."""


def pull_failure(image: str, namespace: str, world: World) -> tuple[str, Ref] | None:
    """The container runtime's error for an image that cannot be pulled, and the missing tag; None if it can."""
    tag = stream_tag(image)
    if tag is None:
        stream = world.get(Ref("ImageStream", namespace, image_name(image), IMAGES)) if "/" not in image else None
        if not dig(stream, "spec", "lookupPolicy", "local"):
            return None
        tag = Ref("ImageStreamTag", namespace, f"{image_name(image)}:{image_tag(image) or 'latest'}", IMAGES)
    if not world.served("ImageStreamTag", IMAGES) or has_tag(tag, world):
        return None
    name, _, version = tag.name.partition(":")
    unknown = "manifest unknown" if world.get(Ref("ImageStream", tag.namespace, name, IMAGES)) else "name unknown"
    where = image.rpartition(":")[0] if image.rpartition(":")[2] == version else image
    return f"rpc error: code = Unknown desc = reading manifest {version} in {where}: {unknown}", tag


def has_tag(tag: Ref, world: World) -> bool:
    """Whether an image stream tag exists. OpenShift ships those of namespace `openshift` (cli, tools, ...)."""
    stream = Ref("ImageStream", tag.namespace, tag.name.partition(":")[0], IMAGES)
    shipped = tag.namespace == PLATFORM_NAMESPACE and world.get(stream) is None
    return shipped or world.get(tag) is not None


def stream_tag(image: str) -> Ref | None:
    """The image stream tag of an image in OpenShift's internal registry."""
    found = REGISTRY.fullmatch(image)
    return Ref("ImageStreamTag", found[1], f"{found[2]}:{found[3] or 'latest'}", IMAGES) if found else None


def image_path(image: str) -> tuple[str, ...]:
    """The parts of a name without registry, tag and digest. The part `cmd` is dropped."""
    bare = image.partition("@")[0]
    *folders, name = bare.split("/")
    parts = (*folders, _HASHED.sub("", name.partition(":")[0]))
    has_registry = len(parts) > 1 and ("." in parts[0] or ":" in parts[0] or parts[0] == "localhost")
    return tuple(part for part in (parts[1:] if has_registry else parts) if part != "cmd")


def image_name(image: str) -> str:
    return image_path(image)[-1]


def image_tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]


def running_images(body: Body) -> Iterator[str]:
    """The names of the images that a workload runs; empty for other kinds."""
    if body.get("kind") in WORKLOADS:
        for _, container in entries(body, "spec", "template", "spec", "containers"):
            yield image_name(str(container.get("image") or ""))
