"""Kinds without a module of their own: their operator's behaviour comes from operators.toml or from a trial file.

While it runs, the operator sets its finalizer, creates what the table lists, and removes the finalizer on deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from seatrial.kinds import Acts, Create, Emit, Kind, Need, Update, World
from seatrial.kinds.core.objectmeta import finalizers_of, is_terminating, without_finalizer
from seatrial.kinds.operators import (
    argocd,
    builds,
    cert_manager,
    external_secrets,
    generated_crds,
    kserve,
    olm,
    openshift,
    prometheus,
    sealed_secret,
)
from seatrial.kinds.operators.generated_crds import CRD_GROUP
from seatrial.kinds.operators.manifests import crd_of
from seatrial.kinds.operators.patterns import MatchedObject, matches, parse
from seatrial.kinds.operators.reconcile import apply, keep_finalizer, secret
from seatrial.kinds.operators.table import (
    Number,
    OperatorEntry,
    OperatorKind,
    Version,
    is_available,
    is_cluster_scoped,
    plural_for,
    release_of,
    role_for,
    table,
)
from seatrial.kinds.tables.catalogue import CATALOGUE
from seatrial.kinds.workloads.kubelet import ANY_KEY
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, dig, name_of
from seatrial.model.trial import Operator

OWN_FILES = (
    argocd,
    builds,
    cert_manager,
    external_secrets,
    generated_crds,
    kserve,
    olm,
    openshift,
    prometheus,
    sealed_secret,
)
DESCRIBED_IN = ("kube-system", "seatrial-operator-")
"""Where a trial's operators are stored: the namespace, and the prefix of the ConfigMap names."""
NEWEST: Number = (999,)
ANY_VERSION = ("v1alpha1", "v1beta1", "v1")
"""Versions served for a described kind, whose real version is unknown."""


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
    generates: Body | None = None
    """The CRD that the operator creates for every object of this kind."""


def description(operator: Operator) -> Body:
    """The ConfigMap that describes an operator to the cluster."""
    namespace, prefix = DESCRIBED_IN
    meta = {"name": prefix + operator.name, "namespace": namespace}
    data = {"operator": msgspec.json.encode(operator).decode()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def is_description(ref: Ref) -> bool:
    namespace, prefix = DESCRIBED_IN
    return ref.kind == "ConfigMap" and ref.namespace == namespace and ref.name.startswith(prefix)


def operator_in(body: Body) -> Operator:
    """The operator that a ConfigMap describes."""
    return msgspec.json.decode(str(dig(body, "data", "operator")), type=Operator)


def described_kinds(described: Operator) -> Iterator[Kind]:
    """The kinds of an operator that a trial describes."""

    def release(world: World) -> Number | None:
        if not described.deployment:
            return NEWEST
        found = world.get(deployment_of(described))
        return NEWEST if found is not None and is_available(found) else None

    for name in described.all_kinds:
        kind, _, group = name.partition(".")
        generated = described.generates.get(name, "")
        yield _kind(
            KindBehaviour(
                described.name,
                group,
                kind,
                release,
                described.finalizer,
                tuple(_patterns(described)),
                removes=described.removes,
                owns=described.owns,
                generates=described_crd(described, generated) if generated else None,
            )
        )


def described_crd(operator: Operator, name: str) -> Body:
    """The CRD of a kind of a described operator, in all versions that it serves."""
    kind, _, group = name.partition(".")
    if not group:
        raise CannotContinue(f"assume.operators: {operator.name}: {name!r} is not of the form Kind.group")
    versions = operator.versions or ANY_VERSION
    served = tuple(Version(version) for version in versions)
    namespaced = name not in operator.cluster_scoped
    return crd_of(
        OperatorKind(group, kind, plural_for(group, kind), namespaced, (), ("status",), served), versions, versions[-1]
    )


def deployment_of(operator: Operator) -> Ref:
    """The Deployment of a described operator."""
    namespace, _, name = operator.deployment.rpartition("/")
    return Ref("Deployment", namespace or "default", name, "apps")


def _patterns(operator: Operator) -> Iterator[str]:
    """`secret: spec.target.name` as a pattern of the objects that an operator creates."""
    known = {entry.kind.lower(): entry for entry in CATALOGUE.values()}
    for kind, path in operator.produces.items():
        entry = known.get(kind.lower())
        if entry is None:
            raise CannotContinue(f"assume.operators: {operator.name}: produces: {kind!r} is not a kind of Kubernetes")
        yield f"{entry.kind}{'.' if entry.group else ''}{entry.group} {{{path}}}"


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

    def products(body: Body) -> Iterator[Ref]:
        return (_ref(named) for text in behaviour.makes for named in matches(parse(text), body))

    def produces(body: Body) -> Iterator[Ref]:
        yield from products(body)
        if behaviour.generates is not None:
            yield Ref("CustomResourceDefinition", "", name_of(behaviour.generates), CRD_GROUP)

    def behave(body: Body, world: World) -> Acts:
        release = behaviour.release(world)
        held = [finalizer for finalizer in finalizers_of(body) if finalizer in behaviour.removes]
        if release is not None and is_terminating(body) and held:
            yield Update(without_finalizer(body, held[0]))  # It runs again for the next one.
            return
        if release is None or not (yield from keep_finalizer(body, release, behaviour.finalizer)):
            return
        if behaviour.generates is not None:
            yield from apply(behaviour.generates, world, owner=body if behaviour.owns else None)
        for ref in products(body):
            if world.get(ref) is None and (made := _made(body, ref)):
                refusal = yield Create(made, owner=body if behaviour.owns else None)
                if refusal is not None:
                    yield Emit(body, "CreateFailed", refusal.message, refusal=refusal)

    return Kind(
        behaviour.kind, behaviour.group, actor=behaviour.operator, needs=needs, produces=produces, behave=behave
    )


def _ref(named: MatchedObject) -> Ref:
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
