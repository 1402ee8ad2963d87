"""`kubectl apply --prune --applyset=NAME`: a parent that remembers what belongs to it, and pruning by its label.

Upstream: `pkg/cmd/apply/applyset.go` and `applyset_pruner.go` of kubernetes/kubectl. Parents are Secrets or ConfigMaps;
custom ones are not modelled.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from msgspec import Struct

from seatrial.engines.script import Command, Part
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import (
    Body,
    annotations_of,
    group_of,
    labels_of,
    listed,
    metadata,
    name_of,
    uid_of,
    with_metadata,
)

PREFIX = "applyset.kubernetes.io"
MANAGER = "kubectl-applyset"
TOOLING = "kubectl/v1.34.0"
PARENTS = {"": "Secret", "secret": "Secret", "secrets": "Secret", "configmap": "ConfigMap", "configmaps": "ConfigMap"}
VERSIONS = ("v1", "v1beta1", "v1alpha1", "v2")
"""In which a kind is looked for that only the parent still knows of."""

Kinds = dict[str, tuple[str, str]]
"""`Deployment.apps` by apiVersion and kind."""


class Parent(Struct, frozen=True):
    """The object that an apply set is known by."""

    kind: str
    name: str
    namespace: str
    tooling: str = TOOLING
    manager: str = MANAGER

    @property
    def id(self) -> str:
        whole = f"{self.name}.{self.namespace}.{self.kind}."
        digest = base64.urlsafe_b64encode(hashlib.sha256(whole.encode()).digest()).decode().rstrip("=")
        return f"applyset-{digest}-v1"

    def marked(self, body: Body) -> Body:
        """An object as a member."""
        return with_metadata(body, labels={**labels_of(body), f"{PREFIX}/part-of": self.id})


def parent_of(said: str, namespace: str) -> Parent:
    """`NAME`, `secrets/NAME` or `configmaps/NAME`."""
    kind, _, name = said.rpartition("/")
    if kind.lower() not in PARENTS:
        raise CannotContinue(f"step apply: --applyset={said}: only Secrets and ConfigMaps can be rehearsed as parents")
    return Parent(PARENTS[kind.lower()], name, namespace)


def begin(parent: Parent, members: Sequence[Body]) -> Part[Kinds]:
    """Write down what the set will hold beside what it held, before anything is applied; all kinds of both."""
    live = yield Command("get", "v1", parent.kind, parent.namespace, parent.name)
    kinds = _kinds(members)
    for named in filter(None, str(annotations_of(live.body).get(f"{PREFIX}/contains-group-kinds") or "").split(",")):
        if named not in kinds:
            found = yield from _served(named)
            kinds |= {named: found} if found else {}
    elsewhere = str(annotations_of(live.body).get(f"{PREFIX}/additional-namespaces") or "").split(",")
    yield _written(parent, kinds, {*elsewhere, *_namespaces(members, parent)})
    return kinds


def finish(parent: Parent, members: Sequence[Body], kinds: Kinds) -> Part[None]:
    """Delete the members that were not applied now, in no order, and write down what is left."""
    kept = {uid_of(body) for body in members}
    live = yield Command("get", "v1", parent.kind, parent.namespace, parent.name)
    elsewhere = str(annotations_of(live.body).get(f"{PREFIX}/additional-namespaces") or "").split(",")
    for api_version, kind in kinds.values():
        scope = yield Command("discover", api_version, kind)
        for namespace in (
            sorted({parent.namespace, *filter(None, elsewhere)}) if scope.body.get("namespaced") else ("",)
        ):
            found = yield Command("list", api_version, kind, namespace)
            for body in listed(found.body, "items"):
                if labels_of(body).get(f"{PREFIX}/part-of") == parent.id and uid_of(body) not in kept:
                    yield Command("delete", api_version, kind, namespace, name_of(body), propagation="Background")
    yield _written(parent, _kinds(members), _namespaces(members, parent))


def _written(parent: Parent, kinds: Kinds, namespaces: Iterable[str]) -> Command:
    annotations = {
        f"{PREFIX}/additional-namespaces": ",".join(sorted(filter(None, namespaces))),
        f"{PREFIX}/contains-group-kinds": ",".join(sorted(kinds)),
        f"{PREFIX}/tooling": parent.tooling,
    }
    meta = {"name": parent.name, "namespace": parent.namespace, "annotations": annotations}
    body: Body = {"apiVersion": "v1", "kind": parent.kind, "metadata": {**meta, "labels": {f"{PREFIX}/id": parent.id}}}
    return Command("apply", "v1", parent.kind, parent.namespace, parent.name, body, parent.manager)


def _kinds(members: Iterable[Body]) -> Kinds:
    pairs = ((str(body.get("apiVersion")), str(body.get("kind"))) for body in members)
    return {f"{kind}.{group}" if (group := group_of(version)) else kind: (version, kind) for version, kind in pairs}


def _namespaces(members: Iterable[Body], parent: Parent) -> set[str]:
    """Those beside the parent's own."""
    return {str(metadata(body).get("namespace") or "") for body in members} - {parent.namespace}


def _served(named: str) -> Part[tuple[str, str] | None]:
    kind, _, group = named.partition(".")
    for version in VERSIONS:
        api_version = f"{group}/{version}" if group else version
        if (yield Command("discover", api_version, kind)).code != 404:
            return api_version, kind
    return None
