"""Secrets that well-known programs in containers create: certificates and initial passwords.

From images/kube-webhook-certgen of ingress-nginx 1.14, cmd/argocd/commands/admin of Argo CD 3.2,
control-plane/subcommand of consul-k8s 1.7 and cmd of cilium/certgen 0.2. Each leaves an existing Secret as it is. Other
programs create nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from msgspec import Struct

from seatrial.kinds import Acts, Create, World
from seatrial.kinds.access.authorizer import Access, decide, service_account
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.scripts.commands import commands_run, may_have_rights
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.workloads.images import image_name
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model.resource import Body, Ref, dig

CERTIFICATE = ("ca.crt", "tls.crt", "tls.key")
HUBBLE = {
    "--hubble-server-cert-generate": "hubble-server-certs",
    "--hubble-relay-client-cert-generate": "hubble-relay-client-certs",
    "--hubble-relay-server-cert-generate": "hubble-relay-server-certs",
    "--hubble-metrics-server-cert-generate": "hubble-metrics-server-certs",
}


class MadeSecret(Struct, frozen=True):
    """A Secret that a container creates."""

    ref: Ref
    keys: tuple[str, ...]
    field: Path
    """The container, relative to the pod's spec."""


Flags = dict[str, str]


def secrets_made(spec: Body, namespace: str) -> Iterator[MadeSecret]:
    """The Secrets that the containers of a pod with this spec create."""
    if not any(_may_run_one(container) for _, container in containers_of(spec)):
        return
    for place, command in commands_run(spec, namespace):
        image = image_name(str(dig(spec, *place, "image") or ""))
        for program, subcommand, makes in PROGRAMS:
            called = image == program or any(word.rpartition("/")[2] == program for word in command.words[:1])
            if called and all(word in command.words for word in subcommand):
                flags = _flags(command.words)
                for name, keys in makes(flags):
                    home = flags.get("--namespace") or flags.get("--cilium-namespace") or namespace
                    if name and UNKNOWN not in f"{name}{home}":
                        yield MadeSecret(Ref("Secret", home, name), keys, place)


def make_secrets(pod: Body, world: World, containers: str, index: int | None = None) -> Acts:
    """What the programs in a pod's `containers` or `initContainers` create, as far as their ServiceAccount may."""
    spec, namespace = pod.get("spec") or {}, namespace_of(pod)
    account = str(spec.get("serviceAccountName") or "default")
    for made in secrets_made(spec, namespace):
        if made.field[0] != containers or index not in (None, made.field[1]) or world.get(made.ref) is not None:
            continue
        access = Access("create", "", "secrets", made.ref.namespace)
        user = service_account(namespace, account)
        trusted = may_have_rights(world.get(Ref("ServiceAccount", namespace, account)), world)
        if trusted or decide(user, access, world).allowed:
            meta = {"name": made.ref.name, "namespace": made.ref.namespace}
            data = dict.fromkeys(made.keys, "")
            yield Create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}, by=account)


def template_products(*path: str) -> Callable[[Body], Iterator[Ref]]:
    """What the pods of a workload create, whose template is at this path."""

    def produces(body: Body) -> Iterator[Ref]:
        spec = dig(body, *path, "spec")
        if isinstance(spec, dict):
            yield from (made.ref for made in secrets_made(spec, namespace_of(body)))

    return produces


def _may_run_one(container: Body) -> bool:
    """Whether a program is named at all: most containers need not be read."""
    text = f"{container.get('image')} {container.get('command')} {container.get('args')}"
    return any(program in text for program, _, _ in PROGRAMS)


def _webhook_certificate(flags: Flags) -> Iterator[tuple[str, tuple[str, ...]]]:
    keys = (flags.get("--cert-name", "cert"), flags.get("--key-name", "key"), "ca")
    yield flags.get("--secret-name", ""), keys


def _redis_password(flags: Flags) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield "argocd-redis", ("auth",)


def _gossip_key(flags: Flags) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield flags.get("--secret-name", ""), (flags.get("--secret-key", "key"),)


def _consul_certificates(flags: Flags) -> Iterator[tuple[str, tuple[str, ...]]]:
    prefix = flags.get("--name-prefix", "")
    yield f"{prefix}-ca-cert", ("tls.crt",)
    yield f"{prefix}-ca-key", ("tls.key",)
    yield f"{prefix}-server-cert", ("tls.crt", "tls.key")


def _hubble_certificates(flags: Flags) -> Iterator[tuple[str, tuple[str, ...]]]:
    for flag, name in HUBBLE.items():
        if flags.get(flag, "false") in ("", "true"):
            yield name, CERTIFICATE


def _flags(words: tuple[str, ...]) -> Flags:
    """`--name=value`, `-name value` and `--name` alone, all with two dashes."""
    found: Flags = {}
    for word, following in pairwise((*words, "")):
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            value = value if equals else "" if following.startswith("-") else following
            found[f"--{name.lstrip('-')}"] = value
    return found


PROGRAMS: tuple[tuple[str, tuple[str, ...], Callable[[Flags], Iterator[tuple[str, tuple[str, ...]]]]], ...] = (
    ("kube-webhook-certgen", ("create",), _webhook_certificate),
    ("argocd", ("admin", "redis-initial-password"), _redis_password),
    ("consul-k8s-control-plane", ("gossip-encryption-autogenerate",), _gossip_key),
    ("consul-k8s-control-plane", ("tls-init",), _consul_certificates),
    ("cilium-certgen", (), _hubble_certificates),
    ("certgen", (), _hubble_certificates),
)
"""A program or the image that runs it, the words of its command line, and the Secrets that it creates."""
