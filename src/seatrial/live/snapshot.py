"""Takes a snapshot: what of a real cluster matters to a rehearsal. Reads only; what it may not read is named.

Lists are read page by page, and of each page only what is kept stays in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from seatrial.graph import needs_of
from seatrial.kinds.operators.table import workload_of
from seatrial.kinds.scripts.commands import ANY_RIGHT
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.live import backends, keeping, releases, secrets
from seatrial.live.client import Client
from seatrial.live.placing import NODES, has_pods
from seatrial.live.transport import RefusedRequest
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Body, Origin, Ref, dig, listed, metadata, name_of, ref_of
from seatrial.model.snapshot import Snapshot
from seatrial.plan.plan import Plan

WHOLE = (
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("", "Namespace"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("apiregistration.k8s.io", "APIService"),
    ("storage.k8s.io", "StorageClass"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("node.k8s.io", "RuntimeClass"),
    ("networking.k8s.io", "IngressClass"),
    ("", "ResourceQuota"),
    ("", "LimitRange"),
)
"""Kinds of which every object is kept."""
WORKLOADS = (("apps", "Deployment"), ("apps", "StatefulSet"), ("apps", "DaemonSet"))
ARGOCD_SETTINGS = ("argocd-cm", "argocd-cmd-params-cm")
ARGOCD_LABEL = "app.kubernetes.io/part-of=argocd"
ARGOCD_PROJECT = ("argoproj.io", "AppProject")
FLUX = (".fluxcd.io",)
RBAC = "rbac.authorization.k8s.io"
ROUNDS_MAX = 4
"""Objects that were found may name others."""
NAMED_MAX = 20_000

Planned = Callable[[Snapshot], Iterable[Release]]
"""The releases whose objects are looked for, planned for a cluster like this one."""
T = TypeVar("T")


def take(
    client: Client, planned: Planned | None = None, progress: Callable[[str], None] = lambda doing: None
) -> Snapshot:
    """A snapshot of the cluster; with `planned`, also of every object that these releases name."""
    taking = _Taking(client, progress)
    taking.list_whole()
    taking.list_settings()
    taking.find_backends()
    if planned is None:
        taking.list_nodes()
        taking.list_volumes()
        taking.read_releases(releases.stored(client))
        return taking.snapshot()
    # What a chart renders depends on what is served; what it names depends on what it renders.
    named = list(planned(taking.snapshot()))
    for name, namespace in dict.fromkeys((release.name, release.namespace) for release in named if release.name):
        taking.read_releases(releases.stored(client, namespace, name))
    if (so_far := taking.snapshot()).releases:
        named = list(planned(so_far))
    taking.look_for(named)
    if has_pods(named):
        taking.list_nodes()
    if _claims(named):
        taking.list_volumes()
    return taking.snapshot()


def releases_of(plans: Iterable[Plan]) -> list[Release]:
    """Every release of these plans, also the deployed one, each once."""
    found = (release for plan in plans for release in (plan.case.before, *plan.case.releases) if release is not None)
    return list({id(release): release for release in found}.values())


class _Taking:
    """State over time: what was found so far."""

    def __init__(self, client: Client, progress: Callable[[str], None]) -> None:
        self._client = client
        self._progress = progress
        self._served = client.served()
        self._found: dict[Ref, Body] = {}
        self._whole: list[str] = []
        self._operators = False
        self._named: dict[Ref, None] = {}
        self._unreachable: list[Ref] = []
        self._releases: list[Body] = []

    def snapshot(self) -> Snapshot:
        uids = {str(metadata(body).get("uid")) for body in self._found.values()}
        return Snapshot(
            kubernetes=self._client.version,
            context=self._client.transport.target.context,
            served=tuple(f"{kind.api_version}/{kind.kind}" for kind in self._served.kinds),
            objects=tuple(keeping.without_lost_owners(self._found[ref], uids) for ref in sorted(self._found)),
            whole=tuple(self._whole),
            operators=self._operators,
            named=tuple(sorted(self._named)),
            unreachable=tuple(self._unreachable),
            releases=tuple(self._releases),
            denied=self._client.denials,
        )

    def list_whole(self) -> None:
        for group, name in WHOLE:
            kind = self._served.find(group, name)
            if kind is None:
                self._whole.append(_called(group, name))  # Not served: there is none.
                continue
            self._progress(f"list {kind.plural}")
            if self._keep_all(kind):
                self._whole.append(_called(group, name))
            elif kind.namespaced:
                self._keep_all(kind, self._client.namespace)

    def list_nodes(self) -> None:
        """Nodes by labels and taints: what decides where pods go."""
        self._progress("list nodes")
        kind = self._served.find("", NODES)
        if kind is not None and self._keep_all(kind):
            self._whole.append(NODES)

    def list_volumes(self) -> None:
        """PersistentVolumes that a claim may still be bound to. Those of claims that were found are looked up."""
        self._progress("list persistentvolumes")
        kind = self._served.find("", "PersistentVolume")
        for body in _readable(self._client.list(kind)) if kind else ():
            if dig(body, "status", "phase") in (None, "Pending", "Available"):
                self._keep(body)

    def list_settings(self) -> None:
        """How Argo CD is set up, and the objects of Flux."""
        for kind in self._served.preferred():
            if kind.group.endswith(FLUX) or (kind.group, kind.kind) == ARGOCD_PROJECT:
                self._progress(f"list {kind.plural}")
                self._keep_all(kind)
        config_map = self._served.find("", "ConfigMap")
        if config_map is not None and self._served.find("argoproj.io", "Application") is not None:
            found = _readable(self._client.list(config_map, labels=ARGOCD_LABEL))
            for body in found:
                if name_of(body) in ARGOCD_SETTINGS:
                    self._keep(body)

    def find_backends(self) -> None:
        """The Services that the API server calls and the workloads behind them, and those of known operators."""
        called = sorted({ref for body in self._found.values() for ref in backends.called_by(body)})
        self._unreachable = list(backends.unreachable(self._client, called))
        self.look_up(called)
        answering = [self._found[ref] for ref in called if ref in self._found and ref not in self._unreachable]
        complete = True
        for group, name in WORKLOADS:
            kind = self._served.find(group, name)
            self._progress(f"list {name}s")
            complete = kind is not None and self._keep_running(kind, answering) and complete
        self._operators = complete

    def look_for(self, named: list[Release]) -> None:
        """Every object that releases contain or need, and what those objects need in turn."""
        resources = [r for release in named for r in (*release.resources, *release.crds)]
        wanted = {resource.ref for resource in resources} | {ref for r in resources for ref in _needed(r)}
        for _ in range(ROUNDS_MAX):
            new = [ref for ref in sorted(wanted) if ref not in self._named]
            if not new or len(self._named) > NAMED_MAX:
                break
            wanted = {ref for body in self.look_up(new) for ref in _needed(_resource(body))}
        self._find_rights({release.namespace for release in named} | {ref.namespace for ref in self._named})

    def look_up(self, refs: Iterable[Ref]) -> list[Body]:
        """Read objects by name."""
        found = []
        for ref in refs:
            kind = self._served.find(ref.group, ref.kind)
            if kind is None or not ref.name:
                continue
            self._progress(f"read {ref}")
            try:
                body = self._read(kind, ref)
            except RefusedRequest as refused:
                if refused.code == 403:
                    continue
                raise
            self._named[ref] = None
            if body is not None:
                self._keep(body)
                found.append(body)
        return found

    def read_releases(self, found: Iterable[releases.Stored]) -> None:
        self._progress("read Helm releases")
        self._releases.extend(releases.decoded(self._client, releases.newest(_readable(found))))

    def _read(self, kind: ServedKind, ref: Ref) -> Body | None:
        if (kind.group, kind.kind) == ("", "Secret"):
            return secrets.secret(self._client, kind, ref.namespace, ref.name)
        return self._client.get(kind, ref.namespace if kind.namespaced else "", ref.name)

    def _find_rights(self, namespaces: set[str]) -> None:
        """The roles of ServiceAccounts that were found. Where they may not be read, all rights are assumed."""
        accounts = {ref for ref in self._found if ref.kind == "ServiceAccount" and not ref.group}
        accounts |= {Ref("ServiceAccount", name, "default") for name in namespaces if name}
        for name, homes in (("ClusterRoleBinding", [""]), ("RoleBinding", sorted(namespaces - {""}))):
            kind = self._served.find(RBAC, name)
            for home in homes if kind is not None else ():
                assert kind is not None
                try:
                    bindings = [body for body in self._client.list(kind, home) if _binds(body, accounts)]
                except RefusedRequest as refused:
                    if refused.code != 403:
                        raise
                    self._assume_rights()
                    return
                for body in bindings:
                    self._keep(body)
                self.look_up(_role_of(body) for body in bindings)

    def _assume_rights(self) -> None:
        for ref, body in self._found.items():
            if ref.kind == "ServiceAccount" and not ref.group:
                meta = metadata(body)
                annotations = {**(meta.get("annotations") or {}), ANY_RIGHT: "assumed"}
                self._found[ref] = {**body, "metadata": {**meta, "annotations": annotations}}

    def _keep_all(self, kind: ServedKind, namespace: str = "") -> bool:
        """Keep every object of a kind. Returns whether that was allowed."""
        try:
            for body in self._client.list(kind, namespace):
                if kind.kind != "APIService" or dig(body, "spec", "service"):  # The others are the API server's own.
                    self._keep(body)
        except RefusedRequest as refused:
            return _is_gone(refused)
        return True

    def _keep_running(self, kind: ServedKind, services: list[Body]) -> bool:
        """Keep stand-ins of running workloads of operators and behind Services. Returns whether that was allowed."""
        try:
            for body in self._client.list(kind):
                wanted = workload_of(body) is not None or backends.is_behind(body, services)
                if wanted and keeping.is_running(body):
                    self._found.setdefault(ref_of(body), keeping.stand_in(body))
        except RefusedRequest as refused:
            return _is_gone(refused)
        return True

    def _keep(self, body: Body) -> None:
        self._found[ref_of(body)] = keeping.kept(body)


def _readable(items: Iterable[T]) -> Iterator[T]:
    """Items up to where reading them is forbidden, which `Client.denials` keeps."""
    try:
        yield from items
    except RefusedRequest as refused:
        if refused.code not in (403, 404):
            raise


def _is_gone(refused: RefusedRequest) -> bool:
    """Whether the kind is not served any more; False if reading it is forbidden."""
    if refused.code not in (403, 404):
        raise refused
    return refused.code == 404


def _claims(named: list[Release]) -> bool:
    """Whether releases ask for volumes."""
    return any(
        one.ref.kind == "PersistentVolumeClaim" or listed(one.body, "spec", "volumeClaimTemplates")
        for release in named
        for one in release.resources
    )


def _needed(resource: Resource) -> Iterator[Ref]:
    return (need.object for need in needs_of(resource) if not need.guess)


def _binds(binding: Body, accounts: set[Ref]) -> bool:
    """Whether a binding gives rights to one of these ServiceAccounts, by name or by group."""
    home = str(metadata(binding).get("namespace") or "")
    groups = {"system:serviceaccounts", *(f"system:serviceaccounts:{ref.namespace}" for ref in accounts)}
    for subject in listed(binding, "subjects"):
        name = str(subject.get("name"))
        if subject.get("kind") == "ServiceAccount":
            if Ref("ServiceAccount", str(subject.get("namespace") or home), name) in accounts:
                return True
        elif subject.get("kind") == "Group" and name in groups:
            return True
    return False


def _role_of(binding: Body) -> Ref:
    kind = str(dig(binding, "roleRef", "kind"))
    home = "" if kind == "ClusterRole" else str(metadata(binding).get("namespace") or "")
    return Ref(kind, home, str(dig(binding, "roleRef", "name")), RBAC)


def _resource(body: Body) -> Resource:
    return Resource(ref_of(body), body, Origin("the cluster"))


def _called(group: str, kind: str) -> str:
    return f"{kind}.{group}" if group else kind
