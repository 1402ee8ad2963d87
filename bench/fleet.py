"""How long Argo CD's model takes for an app of apps: 50 children with 2,000 objects in 20 waves."""

from __future__ import annotations

from collections.abc import Iterator

from bench import Figure, processor_seconds
from seatrial.cluster.cluster import Cluster
from seatrial.engines.argocd.app import API_VERSION, App, Settings
from seatrial.engines.argocd.fleet import Applications, ArgocdMemory, sync_fleet
from seatrial.engines.script import DescribedObject, play
from seatrial.kinds.operators.manifests import crd_of
from seatrial.kinds.operators.table import OperatorKind
from seatrial.model.resource import Body, Ref, ref_of
from seatrial.model.timeline import Schedule
from seatrial.play.in_process import InProcess
from seatrial.play.prerequisites import assume

CHILDREN = 50
OBJECTS = 2_000
WAVES = 20
SCHEDULES: tuple[Schedule, ...] = ("eager", "lazy")


def figures() -> Iterator[Figure]:
    for schedule in SCHEDULES:
        took = processor_seconds(lambda schedule=schedule: _sync(schedule))  # type: ignore[misc]
        yield Figure(f"{OBJECTS:,} objects, {CHILDREN} children, {WAVES} waves, {schedule}", f"{took:.2f} s")


def _sync(schedule: Schedule) -> None:
    cluster = Cluster(schedule=schedule)
    kind = OperatorKind("argoproj.io", "Application", "applications", True, (), ("status",), ())
    names = ("argocd", *(f"team-{number}" for number in range(CHILDREN)))
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    assume(cluster, (crd_of(kind, ("v1alpha1",), "v1alpha1"), *namespaces))
    children = [_child(number) for number in range(CHILDREN)]
    root = App("root", "argocd", tuple(_application(app) for app in children))
    fleet = Applications((root,), {app.ref: app for app in children})
    ended = play(sync_fleet(fleet, Settings((3, 5)), ArgocdMemory(), started=0), InProcess(cluster, "argocd"))
    assert ended.outcome == "ok", ended.error
    assert sum(len(operation.tasks) for operation in ended.operations) == OBJECTS + CHILDREN


def _child(number: int) -> App:
    home = f"team-{number}"
    targets = tuple(_target(home, index) for index in range(OBJECTS // CHILDREN))
    return App(f"app-{number}", home, targets, automated=True, prune=True, revision=str(number))


def _target(home: str, index: int) -> DescribedObject:
    wave = {"argocd.argoproj.io/sync-wave": str(index % WAVES)}
    meta = {"name": f"object-{index}", "namespace": home, "annotations": wave}
    body: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"index": str(index)}}
    if index % 4 == 0:
        container = {"name": "app", "image": "registry.example/app:1"}
        template = {"metadata": {"labels": {"app": meta["name"]}}, "spec": {"containers": [container]}}
        spec = {"selector": {"matchLabels": {"app": meta["name"]}}, "template": template}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    return DescribedObject(ref_of(body), body)


def _application(app: App) -> DescribedObject:
    meta = {"name": app.name, "namespace": app.namespace, "annotations": {}}
    body: Body = {"apiVersion": API_VERSION, "kind": "Application", "metadata": meta, "spec": {}}
    return DescribedObject(Ref("Application", app.namespace, app.name, "argoproj.io"), body)
