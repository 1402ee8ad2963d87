"""Secrets that well-known programs in containers create: certificates and initial passwords.

Which programs these are is in images.toml. Each leaves an existing Secret as it is. Other programs create nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise

from msgspec import Struct

from seatrial.kinds import Acts, Create, World
from seatrial.kinds.access.authorizer import Access, decide, service_account
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.scripts.commands import commands_run, may_have_rights
from seatrial.kinds.scripts.expansion import UNKNOWN
from seatrial.kinds.scripts.known_images import Flags, KnownImage, known_images, secrets_of
from seatrial.kinds.workloads.pod_template import Path, containers_of
from seatrial.model.resource import Body, Ref, dig, listed


class MadeSecret(Struct, frozen=True):
    """A Secret that a container creates."""

    ref: Ref
    keys: tuple[str, ...]
    field: Path
    """The container, relative to the pod's spec."""


def secrets_made(spec: Body, namespace: str) -> Iterator[MadeSecret]:
    """The Secrets that the containers of a pod with this spec create."""
    if not any(_may_run_one(container) for _, container in containers_of(spec)):
        return
    for place, command in commands_run(spec, namespace):
        image = str(dig(spec, *place, "image") or "")
        for one in _makers():
            called = one.runs(image) or any(word.rpartition("/")[2] in one.images for word in command.words[:1])
            if called and all(word in command.words for word in one.words):
                flags = {**_flags(command.words), **_variables(dig(spec, *place))}
                for name, keys in secrets_of(one, flags):
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
    return any(name in text for one in _makers() for name in one.images)


@cache
def _makers() -> tuple[KnownImage, ...]:
    return tuple(one for one in known_images() if one.secrets)


def _variables(container: object) -> Flags:
    """The environment of a container, each name with a `$`."""
    return {f"${one.get('name')}": str(one["value"]) for one in listed(container, "env") if one.get("value")}


def _flags(words: tuple[str, ...]) -> Flags:
    """`--name=value`, `-name value` and `--name` alone, all with two dashes."""
    found: Flags = {}
    for word, following in pairwise((*words, "")):
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            value = value if equals else "" if following.startswith("-") else following
            found[f"--{name.lstrip('-')}"] = value
    return found
