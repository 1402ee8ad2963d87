"""Kinds that have no file of their own: what the table of operators, or a trial, says that their operator does.

It sets its finalizer, makes what it is said to make, and lets go of what is deleted: all while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from seatrial.kinds import Acts, Create, Kind, Need, Say, World
from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.operators import (
    argocd,
    builds,
    cert_manager,
    external_secrets,
    generated,
    kserve,
    openshift,
    prometheus,
    sealed_secret,
)
from seatrial.kinds.operators.patterns import Named, matches, parse
from seatrial.kinds.operators.shared import hold, secret
from seatrial.kinds.operators.table import (
    Number,
    Operator,
    OperatorKind,
    is_available,
    is_cluster_scoped,
    release_of,
    role_for,
    table,
)
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.model.resource import Body, Ref, dig, name_of

OWN_FILES = (argocd, builds, cert_manager, external_secrets, generated, kserve, openshift, prometheus, sealed_secret)
DESCRIBED_IN = ("kube-system", "seatrial-operator-")
"""Where a described operator is told of: the namespace, and what the names of its ConfigMaps begin with."""
NEWEST: Number = (999,)


class Described(Struct, frozen=True):
    """An operator as a trial describes it."""

    name: str
    kinds: tuple[str, ...]
    """`Lock.canal.example`"""
    deployment: str = ""
    """`namespace/name` of what has to be available; without it, the operator always runs."""
    finalizer: str = ""
    makes: tuple[str, ...] = ()
    """Patterns: `Secret {spec.target.name}`."""


class Told(Struct, frozen=True):
    """What is said of one kind."""

    operator: str
    group: str
    kind: str
    release: Callable[[World], Number | None]
    finalizer: str = ""
    makes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def description(described: Described) -> Body:
    """The object by which a cluster learns of an operator that is described."""
    namespace, prefix = DESCRIBED_IN
    meta = {"name": prefix + described.name, "namespace": namespace}
    data = {"operator": msgspec.json.encode(described).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def is_description(ref: Ref) -> bool:
    namespace, prefix = DESCRIBED_IN
    return ref.kind == "ConfigMap" and ref.namespace == namespace and ref.name.startswith(prefix)


def described_kinds(body: Body) -> Iterator[Kind]:
    """The kinds of an operator that a trial describes, as they behave."""
    told = msgspec.json.decode(str(dig(body, "data", "operator")), type=Described)

    def release(world: World) -> Number | None:
        if not told.deployment:
            return NEWEST
        namespace, _, name = told.deployment.rpartition("/")
        found = world.get(Ref("Deployment", namespace or "default", name, "apps"))
        return NEWEST if found is not None and is_available(found) else None

    for name in told.kinds:
        kind, _, group = name.partition(".")
        yield _kind(Told(told.name, group, kind, release, told.finalizer, told.makes))


def described_deployments(body: Body) -> Iterator[tuple[Ref, str]]:
    """What has to run of an operator that a trial describes, and the operator's name; nothing of any other object."""
    if is_description(Ref("ConfigMap", namespace_of(body), name_of(body))):
        told = msgspec.json.decode(str(dig(body, "data", "operator")), type=Described)
        namespace, _, name = told.deployment.rpartition("/")
        yield Ref("Deployment", namespace or "default", name, "apps"), told.name


def _of_table(operator: Operator, kind: OperatorKind) -> Told:
    def release(world: World) -> Number | None:
        return release_of(world, operator.name, role_for(operator, kind.group))

    return Told(operator.name, kind.group, kind.kind, release, "", kind.makes, kind.needs)


def _kind(told: Told) -> Kind:
    def needs(body: Body) -> Iterator[Need]:
        for text in told.needs:
            pattern = parse(text)
            for named in matches(pattern, body):
                yield Need(_ref(named), pattern.stage, named.field, optional=pattern.optional)

    def produces(body: Body) -> Iterator[Ref]:
        return (_ref(named) for text in told.makes for named in matches(parse(text), body))

    def behave(body: Body, world: World) -> Acts:
        release = told.release(world)
        if release is None or not (yield from hold(body, release, told.finalizer)):
            return
        for ref in produces(body):
            if world.get(ref) is None and (made := _made(body, ref)):
                refusal = yield Create(made, owner=body)
                if refusal is not None:
                    yield Say(body, "CreateFailed", refusal)

    return Kind(told.kind, told.group, actor=told.operator, needs=needs, produces=produces, behave=behave)


def _ref(named: Named) -> Ref:
    namespace = "" if is_cluster_scoped(named.group, named.kind) else named.namespace
    return Ref(named.kind, namespace, named.name, named.group)


def _made(owner: Body, ref: Ref) -> Body | None:
    """What an operator makes, as far as others see it; None for kinds of which nothing else can be said."""
    meta: Body = {"name": ref.name, "namespace": ref.namespace}
    match ref.kind:
        case "Secret":
            return secret(owner, ref.name, [], any_key=True)
        case "ConfigMap":
            about = {**meta, "annotations": {ANY_KEY: "true"}}
            return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {}}
        case "Service":
            ports = [{"name": "port", "port": 80}]
            return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}}
    return None


def _kinds() -> Iterator[Kind]:
    """Every kind of the table of which more is known than its names, and that no file here is about."""
    told = {(kind.group, kind.kind) for module in OWN_FILES for kind in module.KINDS}
    for operator in table().values():
        for kind in operator.kinds:
            key = (kind.group, kind.kind)
            if key not in told and (kind.finalizer or kind.makes or kind.needs):
                told.add(key)
                yield _kind(_of_table(operator, kind))


KINDS = tuple(_kinds())
