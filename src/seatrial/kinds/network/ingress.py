"""Ingress, IngressClass and NetworkPolicy."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from seatrial.kinds import Acts, Kind, Need, Status, World
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.immutable import NEWEST, immutable_field
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.network import addresses
from seatrial.kinds.operators.cert_manager import shim, shim_produces
from seatrial.model.resource import Body, Ref, annotations_of, dig, listed

CLASS_ANNOTATION = "kubernetes.io/ingress.class"
NETWORKING = "networking.k8s.io"


def needs(ingress: Body) -> Iterator[Need]:
    namespace = namespace_of(ingress)
    if name := dig(ingress, "spec", "ingressClassName"):
        yield Need(Ref("IngressClass", "", str(name), NETWORKING), "serve", ("spec", "ingressClassName"))
    for index, tls in entries(ingress, "spec", "tls"):
        if name := tls.get("secretName"):
            # The controller serves its own certificate until the Secret exists.
            yield Need(Ref("Secret", namespace, str(name)), "serve", ("spec", "tls", index, "secretName"))
    yield from _backend(dig(ingress, "spec", "defaultBackend"), namespace, ("spec", "defaultBackend"))
    for rule, body in entries(ingress, "spec", "rules"):
        for path, found in entries(body, "http", "paths"):
            field = ("spec", "rules", rule, "http", "paths", path, "backend")
            yield from _backend(found.get("backend"), namespace, field)


def behave(ingress: Body, world: World) -> Acts:
    """The controller sets an address, unless the IngressClass does not exist. cert-manager adds certificates."""
    yield from shim(ingress, world)
    name = dig(ingress, "spec", "ingressClassName")
    if is_terminating(ingress) or (name and world.get(Ref("IngressClass", "", str(name), NETWORKING)) is None):
        return
    has_address = bool(listed(ingress, "status", "loadBalancer", "ingress"))
    if not has_address and addresses.are_given(addresses.INGRESSES, world):
        number = zlib.crc32((annotations_of(ingress).get(CLASS_ANNOTATION) or str(name or "")).encode())
        yield Status(ingress, {"loadBalancer": {"ingress": [{"ip": f"203.0.113.{1 + number % 254}"}]}})


def default(ingress: Body) -> Body:
    return {**ingress, "status": {"loadBalancer": {}, **(ingress.get("status") or {})}}


def default_policy(policy: Body) -> Body:
    spec = policy.get("spec") or {}
    types = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return {**policy, "spec": {"policyTypes": types, **spec}}


def immutable_class(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from immutable_field(old, new, "spec.controller", minor)


def ready(ingress: Body) -> bool:
    return bool(listed(ingress, "status", "loadBalancer", "ingress"))


def _backend(backend: Body | None, namespace: str, at: tuple[str | int, ...]) -> Iterator[Need]:
    if name := dig(backend, "service", "name"):
        yield Need(Ref("Service", namespace, str(name)), "serve", (*at, "service", "name"))
    resource = dig(backend, "resource") or {}
    if name := resource.get("name"):
        ref = Ref(str(resource.get("kind")), namespace, str(name), str(resource.get("apiGroup") or ""))
        yield Need(ref, "serve", (*at, "resource", "name"))


KINDS = (
    Kind(
        "Ingress",
        NETWORKING,
        actor="ingress-controller",
        needs=needs,
        produces=shim_produces,
        behave=behave,
        default=default,
        ready=ready,
    ),
    Kind("IngressClass", NETWORKING, immutable=immutable_class),
    Kind("NetworkPolicy", NETWORKING, default=default_policy),
)
