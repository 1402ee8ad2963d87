"""Targets of `seatrial wait`, as the user names them, and which check each has. Sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.workloads.images import IMAGES
from seatrial.live.built import image_usable, tag_usable
from seatrial.live.delivered import (
    HELM_GROUP,
    KUSTOMIZE_GROUP,
    application_usable,
    flux_usable,
    release_usable,
)
from seatrial.live.seen import IsServed, Seen
from seatrial.live.usable import CRD, Verdict, crd_usable, lacks, object_usable, secret_usable, webhook_usable
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, group_of, version_of

ARGOCD_NAMESPACE = "argocd"
FLUX_NAMESPACE = "flux-system"
NAMED = ("webhook", "crd", "secret", "image", "imagestreamtag", "pvc", "release", "app", "kustomization", "helmrelease")

Look = Callable[[Seen], Verdict]
FindKind = Callable[[str], ServedKind | None]


class Target(Struct, frozen=True):
    """A thing to wait for, and how to see whether it is usable."""

    text: str
    look: Look


def parse(text: str, namespace: str, find_kind: FindKind, *, given: str = "") -> Target:
    """`KIND/NAME`, or one of the words that mean more than an object. `given` is the user's own -n, if any."""
    kind, slash, name = text.partition("/")
    if not slash or not kind or not name:
        raise CannotContinue(f"wait {text}: not a target; name it as KIND/NAME, such as deployment/web or webhook/NAME")
    kind = kind.lower()
    if "/" in name and kind != "image":
        namespace, _, name = name.partition("/")
        given = namespace
    return Target(text, _look(text, kind, name, namespace, given, find_kind))


def manifest_targets(bodies: Iterable[tuple[Ref, Body]]) -> list[Target]:
    """Every object of some manifests, in the version that its manifest names."""
    return [Target(str(ref), _in_version(ref, body)) for ref, body in bodies]


def _look(text: str, kind: str, name: str, namespace: str, given: str, find_kind: FindKind) -> Look:
    base, _, extra = name.partition(":")
    match kind:
        case "webhook":
            return lambda seen: webhook_usable(name, seen)
        case "crd" | "crds" | "customresourcedefinition":
            return lambda seen: crd_usable(Ref(CRD.kind, "", base, CRD.group), seen, extra)
        case "secret" | "secrets":
            keys = tuple(filter(None, extra.split(",")))
            return lambda seen: secret_usable(Ref("Secret", namespace, base), seen, keys)
        case "image":
            return lambda seen: image_usable(name, namespace, seen)
        case "imagestreamtag" | "istag":
            return lambda seen: tag_usable(Ref("ImageStreamTag", namespace, name, IMAGES), seen)
        case "release":
            return lambda seen: release_usable(namespace, name, seen)
        case "app" | "application" | "applications":
            return lambda seen: application_usable(given or ARGOCD_NAMESPACE, name, seen)
        case "kustomization" | "ks":
            return lambda seen: flux_usable(Ref("Kustomization", given or FLUX_NAMESPACE, name, KUSTOMIZE_GROUP), seen)
        case "helmrelease" | "hr":
            return lambda seen: flux_usable(Ref("HelmRelease", given or FLUX_NAMESPACE, name, HELM_GROUP), seen)
    served = find_kind(kind)
    if served is None:
        raise CannotContinue(f"wait {text}: the cluster serves no kind {kind}, and it is none of {', '.join(NAMED)}")
    ref = Ref(served.kind, namespace if served.namespaced else "", name, served.group)
    return lambda seen: object_usable(ref, seen)


def _in_version(ref: Ref, body: Body) -> Look:
    api_version = str(body.get("apiVersion") or "")

    def look(seen: Seen) -> Verdict:
        answer = seen.answer(IsServed(group_of(api_version), version_of(api_version), ref.kind))
        if answer is None or answer:
            return lacks(f"{ref}: {answer or 'its kind is being looked up'}", ref)
        return object_usable(ref, seen)

    return look
