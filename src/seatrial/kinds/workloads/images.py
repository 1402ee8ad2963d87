"""Names of images, and whether one can be had: each can, but for those that a build in the cluster still has to make.

The words are those of CRI-O, as on OpenShift; the internal registry serves what image streams have tags for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.kinds import World
from seatrial.kinds.core.entries import entries
from seatrial.model.resource import Body, Ref, dig

IMAGES = "image.openshift.io"
REGISTRY = re.compile(
    r"image-registry\.openshift-image-registry\.svc(?:\.cluster\.local)?:5000/([^/]+)/([^/:@]+)(?::(.+))?"
)
WORKLOADS = ("DaemonSet", "Deployment", "StatefulSet")
"""Kinds that keep containers running for as long as they exist."""
_HASHED = re.compile(r"-[0-9a-f]{32}$")
"""What ko puts behind the name of a program."""


def pull_failure(image: str, namespace: str, world: World) -> str:
    """What the container runtime says of an image that is not there; empty where it is."""
    tag = stream_tag(image)
    if tag is None:
        stream = world.get(Ref("ImageStream", namespace, image_name(image), IMAGES)) if "/" not in image else None
        if not dig(stream, "spec", "lookupPolicy", "local"):
            return ""
        tag = Ref("ImageStreamTag", namespace, f"{image_name(image)}:{image_tag(image) or 'latest'}", IMAGES)
    if not world.served("ImageStreamTag", IMAGES) or world.get(tag) is not None:
        return ""
    name, _, version = tag.name.partition(":")
    unknown = "manifest unknown" if world.get(Ref("ImageStream", tag.namespace, name, IMAGES)) else "name unknown"
    where = image.rpartition(":")[0] if image.rpartition(":")[2] == version else image
    return f"rpc error: code = Unknown desc = reading manifest {version} in {where}: {unknown}"


def stream_tag(image: str) -> Ref | None:
    """The tag of an image stream that an image in the internal registry of OpenShift is."""
    found = REGISTRY.fullmatch(image)
    return Ref("ImageStreamTag", found[1], f"{found[2]}:{found[3] or 'latest'}", IMAGES) if found else None


def image_path(image: str) -> tuple[str, ...]:
    """The parts of a name without registry, tag and digest; `cmd` says nothing."""
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
    """The names of the images that a workload keeps running; nothing for any other kind."""
    if body.get("kind") in WORKLOADS:
        for _, container in entries(body, "spec", "template", "spec", "containers"):
            yield image_name(str(container.get("image") or ""))
