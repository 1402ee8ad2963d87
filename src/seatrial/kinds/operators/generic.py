"""Kinds without a module of their own: their operator's behaviour comes from operators.toml or from a trial file.

While it runs, the operator sets its finalizer, creates what the table lists, and removes the finalizer on deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from seatrial.kinds import Acts, Create, Emit, Kind, Need, Update, World
from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating, namespace_of, without_finalizer
from seatrial.kinds.operators import (
    argocd,
    builds,
    cert_manager,
    external_secrets,
    generated_crds,
    kserve,
    openshift,
    prometheus,
    sealed_secret,
)
from seatrial.kinds.operators.patterns import Named, matches, parse
from seatrial.kinds.operators.reconcile import keep_finalizer, secret
from seatrial.kinds.operators.table import (
    Number,
    OperatorEntry,
    OperatorKind,
    is_available,
    is_cluster_scoped,
    release_of,
    role_for,
    table,
)
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.model.resource import Body, Ref, dig, name_of

OWN_FILES = (
    argocd,
    builds,
    cert_manager,
    external_secrets,
    generated_crds,
    kserve,
    openshift,
    prometheus,
    sealed_secret,
)
DESCRIBED_IN = ("kube-system", "seatrial-operator-")
"""Where a trial's operators are stored: the namespace, and the prefix of the ConfigMap names."""
NEWEST: Number = (999,)


class DescribedOperator(Struct, frozen=True):
    """An operator as a trial describes it."""

    name: str
    kinds: tuple[str, ...]
    """`Lock.canal.example`"""
    deployment: str = ""
    """`namespace/name` of the Deployment that must be available; without it, the operator always runs."""
    finalizer: str = ""
    makes: tuple[str, ...] = ()
    """Patterns: `Secret {spec.target.name}`."""
    removes: tuple[str, ...] = ()
    """Finalizers of others that it removes from a deleted object."""
    owns: bool = True
    """Whether what it makes is deleted with the custom resource."""


class KindBehaviour(Struct, frozen=True):
    """The behaviour of one kind."""

    operator: str
    group: str
    kind: str
    release: Callable[[World], Number | None]
    finalizer: str = ""
    makes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    owns: bool = True


def description(operator: DescribedOperator) -> Body:
    """The ConfigMap that describes an operator to the cluster."""
    namespace, prefix = DESCRIBED_IN
    meta = {"name": prefix + operator.name, "namespace": namespace}
    data = {"operator": msgspec.json.encode(operator).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def is_description(ref: Ref) -> bool:
    namespace, prefix = DESCRIBED_IN
    return ref.kind == "ConfigMap" and ref.namespace == namespace and ref.name.startswith(prefix)


def described_kinds(body: Body) -> Iterator[Kind]:
    """The kinds of an operator that a trial describes."""
    described = msgspec.json.decode(str(dig(body, "data", "operator")), type=DescribedOperator)

    def release(world: World) -> Number | None:
        if not described.deployment:
            return NEWEST
        namespace, _, name = described.deployment.rpartition("/")
        found = world.get(Ref("Deployment", namespace or "default", name, "apps"))
        return NEWEST if found is not None and is_available(found) else None

    for name in described.kinds:
        kind, _, group = name.partition(".")
        yield _kind(
            KindBehaviour(
                described.name,
                group,
                kind,
                release,
                described.finalizer,
                described.makes,
                removes=described.removes,
                owns=described.owns,
            )
        )


def described_deployments(body: Body) -> Iterator[tuple[Ref, str]]:
    """The Deployment of an operator that a trial describes, and the operator's name; nothing for other objects."""
    if is_description(Ref("ConfigMap", namespace_of(body), name_of(body))):
        described = msgspec.json.decode(str(dig(body, "data", "operator")), type=DescribedOperator)
        namespace, _, name = described.deployment.rpartition("/")
        yield Ref("Deployment", namespace or "default", name, "apps"), described.name


def _of_table(operator: OperatorEntry, kind: OperatorKind) -> KindBehaviour:
    def release(world: World) -> Number | None:
        return release_of(world, operator.name, role_for(operator, kind.group))

    return KindBehaviour(operator.name, kind.group, kind.kind, release, "", kind.makes, kind.needs)


def _kind(behaviour: KindBehaviour) -> Kind:
    def needs(body: Body) -> Iterator[Need]:
        for text in behaviour.needs:
            pattern = parse(text)
            for named in matches(pattern, body):
                yield Need(_ref(named), pattern.stage, named.field, optional=pattern.optional)

    def produces(body: Body) -> Iterator[Ref]:
        return (_ref(named) for text in behaviour.makes for named in matches(parse(text), body))

    def behave(body: Body, world: World) -> Acts:
        release = behaviour.release(world)
        held = [finalizer for finalizer in finalizers_of(body) if finalizer in behaviour.removes]
        if release is not None and is_terminating(body) and held:
            yield Update(without_finalizer(body, held[0]))  # It runs again for the next one.
            return
        if release is None or not (yield from keep_finalizer(body, release, behaviour.finalizer)):
            return
        for ref in produces(body):
            if world.get(ref) is None and (made := _made(body, ref)):
                refusal = yield Create(made, owner=body if behaviour.owns else None)
                if refusal is not None:
                    yield Emit(body, "CreateFailed", refusal.message, refusal=refusal)

    return Kind(
        behaviour.kind, behaviour.group, actor=behaviour.operator, needs=needs, produces=produces, behave=behave
    )


def _ref(named: Named) -> Ref:
    namespace = "" if is_cluster_scoped(named.group, named.kind) else named.namespace
    return Ref(named.kind, namespace, named.name, named.group)


def _made(owner: Body, ref: Ref) -> Body | None:
    """The object that an operator creates, as others see it; None for kinds that are not modelled."""
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
    """Every kind of the table with more than names, and without a module here."""
    done = {(kind.group, kind.kind) for module in OWN_FILES for kind in module.KINDS}
    for operator in table().values():
        for kind in operator.kinds:
            key = (kind.group, kind.kind)
            if key not in done and (kind.finalizer or kind.makes or kind.needs):
                done.add(key)
                yield _kind(_of_table(operator, kind))


KINDS = tuple(_kinds())
