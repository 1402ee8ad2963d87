"""Images: whether a pod runs one, and whether a build of OpenShift has pushed it. Sends nothing."""

from __future__ import annotations

from seatrial.kinds.workloads.images import IMAGES, stream_tag
from seatrial.kinds.workloads.pods import is_ready
from seatrial.live import words
from seatrial.live.seen import Seen
from seatrial.live.usable import USABLE, Verdict, lacks
from seatrial.model.resource import Body, Ref, dig, listed, metadata, name_of, ref_of

BUILD_GROUP = "build.openshift.io"
BUILD_LABEL = "buildconfig"


def image_usable(image: str, namespace: str, seen: Seen) -> Verdict:
    """A ready pod of the namespace runs this image; one of OpenShift's registry has been pushed by its newest build."""
    if tag := stream_tag(image):
        return tag_usable(tag, seen)
    pods = [pod for pod in seen.all("Pod", namespace) if _runs(pod, image)]
    if not pods:
        return lacks(f"no pod in namespace {namespace} runs image {image}")
    if any(is_ready(pod) for pod in pods):
        return USABLE
    return lacks(f"no ready pod runs image {image}: {words.state(pods[0])}", ref_of(pods[0]))


def tag_usable(tag: Ref, seen: Seen) -> Verdict:
    """An image stream has the tag, and every BuildConfig that pushes to it has finished its newest build."""
    name, _, version = tag.name.partition(":")
    stream = Ref("ImageStream", tag.namespace, name, IMAGES)
    body = seen.get(stream)
    if body is None:
        return lacks(f"{stream} does not exist", stream)
    for config in seen.all("BuildConfig", tag.namespace, BUILD_GROUP):
        to = dig(config, "spec", "output", "to") or {}
        pushes = (to.get("kind"), to.get("name")) == ("ImageStreamTag", f"{name}:{version or 'latest'}")
        if pushes and (says := build_fault(ref_of(config), seen)):
            return lacks(says, ref_of(config))
    if not _image_of(body, version or "latest"):
        return lacks(f"{stream} has no image for the tag {version or 'latest'}", stream)
    return USABLE


def build_fault(config: Ref, seen: Seen) -> str:
    """Why the image of a BuildConfig is not that of its newest build; empty if it is.

    That a tag exists does not say of which build it is.
    """
    builds = seen.select("Build", config.namespace, {BUILD_LABEL: config.name}, BUILD_GROUP)
    if not builds:
        return f"{config} has no build yet"
    newest = max(builds, key=lambda build: str(metadata(build).get("creationTimestamp") or ""))
    phase = str(dig(newest, "status", "phase") or "New")
    if phase != "Complete":
        return f"{config}: its newest build {name_of(newest)} is {phase}"
    pushed, to = str(dig(newest, "status", "output", "to", "imageDigest") or ""), dig(newest, "spec", "output", "to")
    if not pushed or dig(to, "kind") != "ImageStreamTag":
        return ""
    name, _, tag = str(dig(to, "name")).partition(":")
    stream = Ref("ImageStream", str(dig(to, "namespace") or config.namespace), name, IMAGES)
    body = seen.get(stream)
    held = _image_of(body or {}, tag or "latest")
    return "" if held == pushed else f"{stream}: its tag {tag} is not the image of the newest build {name_of(newest)}"


def _image_of(stream: Body, tag: str) -> str:
    """The digest that a tag of an image stream has now."""
    found = next((one for one in listed(stream, "status", "tags") if one.get("tag") == tag), None)
    return str(dig(next(iter(listed(found, "items")), {}), "image") or "")


def _runs(pod: Body, image: str) -> bool:
    _, at, digest = image.partition("@")
    wanted = full_name(image)
    for container in listed(pod, "spec", "containers"):
        if full_name(str(container.get("image") or "")) == wanted:
            return True
    found = (str(dig(status, "imageID") or "") for status in listed(pod, "status", "containerStatuses"))
    return bool(at) and any(one.endswith(f"@{digest}") for one in found)


def full_name(image: str) -> str:
    """With the registry and the tag that the container runtime adds: `nginx` is `docker.io/library/nginx:latest`."""
    name, at, digest = image.partition("@")
    first, slash, _ = name.partition("/")
    if not slash:
        name = f"docker.io/library/{name}"
    elif "." not in first and ":" not in first and first != "localhost":
        name = f"docker.io/{name}"
    if at:
        folder, slash, last = name.rpartition("/")
        return f"{folder}{slash}{last.partition(':')[0]}@{digest}"
    return name if ":" in name.rpartition("/")[2] else f"{name}:latest"
