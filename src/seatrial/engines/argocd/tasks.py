"""The tasks of one sync and their order: phase, wave, kind, name; prunes in reverse; namespaces and CRDs first.

Upstream: `getSyncTasks` in gitops-engine/pkg/sync/sync_context.go and sync_tasks.go beside it, Argo CD 3.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import App, Marks, Settings, SyncOptions
from seatrial.engines.argocd.tracking import CRD, speaks_of_itself
from seatrial.engines.script import DescribedObject
from seatrial.helm.argocd_hooks import (
    FINALIZER,
    PHASES,
    SYNC_OPTIONS,
    delete_policies,
    has_option,
    is_hook,
    phases_of,
    wave_of,
)
from seatrial.model.resource import Body, Ref, dig, group_of, metadata, name_of, with_metadata

KIND_ORDER = (
    *("Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodSecurityPolicy", "PodDisruptionBudget"),
    *("ServiceAccount", "Secret", "SecretList", "ConfigMap", "StorageClass", "PersistentVolume"),
    *("PersistentVolumeClaim", "CustomResourceDefinition", "ClusterRole", "ClusterRoleList", "ClusterRoleBinding"),
    *("ClusterRoleBindingList", "Role", "RoleList", "RoleBinding", "RoleBindingList", "Service", "DaemonSet", "Pod"),
    *("ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob"),
    *("IngressClass", "Ingress", "APIService"),
)
"""By kind, in any group; all other kinds come after these, by name."""
RANKS = {kind: rank for rank, kind in enumerate(KIND_ORDER)}


class ArgocdTask(Struct, frozen=True):
    """One object in one phase: to be applied, or to be pruned if it has no target."""

    ref: Ref
    phase: str
    wave: int
    target: Body | None
    live: Body | None = None
    skip_dry_run: bool = False
    is_hook: bool = False

    @property
    def body(self) -> Body:
        found = self.target if self.target is not None else self.live
        assert found is not None
        return found

    @property
    def is_prune(self) -> bool:
        return self.target is None

    @property
    def key(self) -> tuple[Ref, str]:
        return self.ref, self.phase

    @property
    def place(self) -> tuple[str, int]:
        return self.phase, self.wave

    def goes(self, policy: str) -> bool:
        """Whether the hook has this delete policy."""
        return self.is_hook and policy in delete_policies(self.body)

    def __str__(self) -> str:
        """As Argo CD's messages name it; the core group is empty."""
        return f"{self.ref.group}/{self.ref.kind}/{self.ref.name}"


def build(
    app: App,
    settings: Settings,
    asked: SyncOptions,
    targets: list[tuple[DescribedObject, Marks]],
    live: Mapping[Ref, Body | None],
    home: Body | None = None,
) -> list[ArgocdTask]:
    """The tasks of a sync, in the order in which they run; `home` is the live namespace of the destination."""
    tasks = list(_of_resources(asked, targets, live, settings))
    if not (asked.skips_hooks or asked.selected):
        tasks += _of_hooks(app, asked, targets, live, settings)
    namespace = _of_namespace(app, asked, targets, home)
    if namespace is not None:
        tasks.append(namespace)
    if versions.has(settings.version, "prunes in reversed waves and waits for what it pruned"):
        tasks = _prunes_reversed(tasks)
    return _in_order(_prunes_last(tasks, asked))


def is_multi_step(tasks: list[ArgocdTask]) -> bool:
    return bool(tasks) and tasks[0].place != tasks[-1].place


def _of_resources(
    asked: SyncOptions,
    targets: Iterable[tuple[DescribedObject, Marks]],
    live: Mapping[Ref, Body | None],
    settings: Settings,
) -> Iterator[ArgocdTask]:
    left = {ref: body for ref, body in live.items() if body is not None}
    for target, marks in targets:
        if marks.ignored or marks.hook:
            continue
        left.pop(target.ref, None)
        if _is_selected(target.ref, asked):
            for phase in marks.phases:
                yield ArgocdTask(target.ref, phase, marks.wave, target.body, live.get(target.ref), is_hook=False)
    for ref, body in left.items():
        # A live hook is never pruned, and one whose mark was copied from elsewhere is not ours.
        if _is_selected(ref, asked) and not is_hook(body) and speaks_of_itself(body, settings):
            yield from (ArgocdTask(ref, phase, wave_of(body), None, body) for phase in phases_of(body))


def _is_selected(ref: Ref, asked: SyncOptions) -> bool:
    return not asked.selected or ref in asked.selected


def _of_hooks(
    app: App,
    asked: SyncOptions,
    targets: Iterable[tuple[DescribedObject, Marks]],
    live: Mapping[Ref, Body | None],
    settings: Settings,
) -> Iterator[ArgocdTask]:
    for target, marks in targets:
        if not marks.hook or marks.ignored:
            continue
        for phase in marks.phases:
            body = _named(target.body, app, asked, phase)
            if versions.has(settings.version, "hook finalizer"):
                body = _with_finalizer(body)
            ref = replace(target.ref, name=name_of(body))
            yield ArgocdTask(ref, phase, marks.wave, body, live.get(ref), is_hook=True)


def _named(body: Body, app: App, asked: SyncOptions, phase: str) -> Body:
    if name_of(body):
        return body
    revision = app.revision[:7] if len(app.revision) >= 8 else app.revision
    meta = metadata(body)
    name = f"{meta.get('generateName', '')}{revision}-{phase}-{asked.started}".lower()
    return {**body, "metadata": {**meta, "name": name}}


def _with_finalizer(body: Body) -> Body:
    meta = metadata(body)
    finalizers = list(meta.get("finalizers") or ())
    if FINALIZER in finalizers:
        return body
    return {**body, "metadata": {**meta, "finalizers": [*finalizers, FINALIZER]}}


def _of_namespace(
    app: App, asked: SyncOptions, targets: Iterable[tuple[DescribedObject, Marks]], home: Body | None
) -> ArgocdTask | None:
    """`CreateNamespace=true`: before all other tasks, unless a manifest creates the namespace."""
    ref = Ref("Namespace", "", app.destination)
    if "CreateNamespace=true" not in asked.options or not app.destination:
        return None
    if any(target.ref == ref and not marks.hook for target, marks in targets):
        return None
    if home is not None and app.namespace_metadata is None:
        return None
    meta: Body = {"name": app.destination}
    if app.namespace_metadata is not None:
        # Labels and annotations of others stay, for this is applied on the server's side: controller/sync_namespace.go.
        annotations = {**(app.namespace_metadata.get("annotations") or {}), SYNC_OPTIONS: "ServerSideApply=true"}
        meta |= {"labels": app.namespace_metadata.get("labels") or {}, "annotations": annotations}
    # Made of a Go struct, which has its empty fields as well: `autoCreateNamespace` in sync_context.go.
    body: Body = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "spec": {}, "status": {}}
    return ArgocdTask(ref, "PreSync", 0, body, home)


def _prunes_reversed(tasks: list[ArgocdTask]) -> list[ArgocdTask]:
    """Prunes run in reverse wave order: first and last wave swap, second and last but one, and so on."""
    waves = sorted({task.wave for task in tasks if task.is_prune})
    swapped = dict(zip(waves, reversed(waves), strict=True))
    return [replace(task, wave=swapped[task.wave]) if task.is_prune else task for task in tasks]


def _prunes_last(tasks: list[ArgocdTask], asked: SyncOptions) -> list[ArgocdTask]:
    last = max([0, *(task.wave for task in tasks if task.phase == "Sync")]) + 1
    everything = "PruneLast=true" in asked.options
    return [
        replace(task, wave=last) if task.is_prune and (everything or has_option(task.live, "PruneLast=true")) else task
        for task in tasks
    ]


def _in_order(tasks: list[ArgocdTask]) -> list[ArgocdTask]:
    ordered = sorted(tasks, key=_rank)
    ordered = _adjusted(ordered, _namespace_made, _namespace_used)
    return _adjusted(ordered, _kind_defined, _kind_used)


def _rank(task: ArgocdTask) -> tuple[Any, ...]:
    # Argo CD's sort is not stable: what is alike in all of these comes in any order there, and by namespace here.
    name = name_of(task.body)
    rank = RANKS.get(task.ref.kind, len(RANKS))
    return PHASES.index(task.phase), task.wave, rank, name, task.ref.group, task.ref.namespace


def _adjusted(
    tasks: list[ArgocdTask], makes: Callable[[ArgocdTask], str], uses: Callable[[ArgocdTask], str]
) -> list[ArgocdTask]:
    """A task that others need moves before the first of them, into its phase and wave: `adjustDeps`."""
    ordered: list[ArgocdTask] = []
    first: dict[str, int] = {}
    for task in tasks:
        made = makes(task) if task.target is not None else ""
        used = uses(task) if task.target is not None else ""
        if made and made in first:
            index = first[made]
            before = ordered[index]
            ordered.insert(index, replace(task, phase=before.phase, wave=before.wave))
            first = {key: place + 1 if place >= index else place for key, place in first.items()}
            continue
        ordered.append(task)
        if not made and used:
            first.setdefault(used, len(ordered) - 1)
    return ordered


def _namespace_made(task: ArgocdTask) -> str:
    return task.ref.name if task.ref.kind == "Namespace" and not task.ref.group else ""


def _namespace_used(task: ArgocdTask) -> str:
    """Cluster-scoped targets have the destination's namespace here, because Argo CD adds it to all that have none."""
    return str(metadata(task.body).get("namespace") or "")


def _kind_defined(task: ArgocdTask) -> str:
    return defined_kind(task.body)


def _kind_used(task: ArgocdTask) -> str:
    return f"{task.ref.group}/{task.ref.kind}"


def defined_kind(body: Body) -> str:
    """`group/Kind` of a CRD; empty for any other object."""
    if body.get("kind") != CRD or group_of(str(body.get("apiVersion", ""))) != "apiextensions.k8s.io":
        return ""
    group, kind = dig(body, "spec", "group"), dig(body, "spec", "names", "kind")
    return f"{group}/{kind}" if group and kind else ""


def with_namespace(target: DescribedObject, app: App) -> DescribedObject:
    """Objects without a namespace get that of the destination, even cluster-scoped ones."""
    if metadata(target.body).get("namespace") or not app.destination:
        return target
    return DescribedObject(target.ref, with_metadata(target.body, namespace=app.destination))
