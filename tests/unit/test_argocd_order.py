"""In which order Argo CD runs the tasks of a sync."""

from __future__ import annotations

from seatrial.engines.argocd.app import App, Marks, Settings, SyncOptions, marks_of
from seatrial.engines.argocd.tasks import ArgocdTask, build, with_namespace
from seatrial.engines.script import DescribedObject
from seatrial.model.resource import Body, Ref, ref_of

APP = App("shop", "store")
SETTINGS = Settings((3, 5))
CLUSTER_SCOPED = ("Namespace", "ClusterRole", "CustomResourceDefinition", "PriorityClass")


def test_kinds_come_in_their_order_and_unknown_ones_last_by_name() -> None:
    bodies = [_body("Deployment", "web"), _body("Widget", "a"), _body("PriorityClass", "b"), _body("Secret", "z")]
    assert _order(bodies) == ["Secret/z", "Deployment/web", "Widget/a", "PriorityClass/b"]


def test_phases_come_before_waves_and_waves_before_kinds() -> None:
    hook = {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "9"}
    bodies = [
        _body("Job", "migrate", annotations=hook),
        _body("ConfigMap", "late", wave=1),
        _body("Job", "early", wave=-1),
    ]
    assert _places(bodies) == ["PreSync 9 Job/migrate", "Sync -1 Job/early", "Sync 1 ConfigMap/late"]


def test_a_namespace_moves_before_its_content() -> None:
    bodies = [_body("Secret", "early", wave=-7), _body("Namespace", "store", wave=-1), _body("Job", "late", wave=3)]
    assert _places(bodies) == ["Sync -7 Namespace/store", "Sync -7 Secret/early", "Sync 3 Job/late"]


def test_a_cluster_scoped_object_moves_the_destination_namespace() -> None:
    bodies = [_body("ClusterRole", "reader", wave=-5), _body("Namespace", "store")]
    assert _places(bodies) == ["Sync -5 Namespace/store", "Sync -5 ClusterRole/reader"]


def test_a_namespace_becomes_part_of_the_phase_of_a_hook_in_it() -> None:
    bodies = [_body("Namespace", "store"), _body("Job", "migrate", annotations={"argocd.argoproj.io/hook": "PreSync"})]
    assert _places(bodies) == ["PreSync 0 Namespace/store", "PreSync 0 Job/migrate"]


def test_a_crd_moves_before_its_first_custom_resource() -> None:
    spec = {"group": "example.com", "names": {"kind": "Widget"}}
    definition = {**_body("CustomResourceDefinition", "widgets.example.com", wave=5), "spec": spec}
    definition["apiVersion"] = "apiextensions.k8s.io/v1"
    widget = {**_body("Widget", "w", wave=-1), "apiVersion": "example.com/v1"}
    order = ["Sync -1 CustomResourceDefinition/widgets.example.com", "Sync -1 Widget/w"]
    assert _places([definition, widget]) == order


def test_prunes_run_in_reverse_wave_order_since_2_11() -> None:
    live = [_body("ConfigMap", "a"), _body("ConfigMap", "b", wave=2), _body("ConfigMap", "c", wave=5)]
    assert _places([], live) == ["Sync 0 ConfigMap/c", "Sync 2 ConfigMap/b", "Sync 5 ConfigMap/a"]
    assert _places([], live, Settings((2, 10))) == [
        "Sync 0 ConfigMap/a",
        "Sync 2 ConfigMap/b",
        "Sync 5 ConfigMap/c",
    ]


def test_prune_last_comes_after_the_last_wave() -> None:
    options = {"argocd.argoproj.io/sync-options": "PruneLast=true"}
    live = [_body("ConfigMap", "old", annotations=options)]
    assert _places([_body("ConfigMap", "new", wave=3)], live) == ["Sync 3 ConfigMap/new", "Sync 4 ConfigMap/old"]


def test_live_hooks_are_never_pruned() -> None:
    assert _places([], [_body("Job", "migrate", annotations={"helm.sh/hook": "pre-install"})]) == []


def test_a_hook_without_a_name_is_named_after_revision_phase_and_time() -> None:
    body = _body("Job", "", annotations={"argocd.argoproj.io/hook": "PreSync"})
    body["metadata"]["generateName"] = "migrate-"
    app = App("shop", "store", revision="0123456789abcdef")
    (task,) = build(app, SETTINGS, SyncOptions(started=1750000000), [_target(body)], {})
    assert task.ref.name == "migrate-0123456-presync-1750000000"


def test_create_namespace_comes_first_unless_a_manifest_contains_it() -> None:
    asked = SyncOptions(options=("CreateNamespace=true",))
    config = [_target(_body("ConfigMap", "a"))]
    assert _shown(build(APP, SETTINGS, asked, config, {})) == ["PreSync 0 Namespace/store", "Sync 0 ConfigMap/a"]
    own = [*config, _target(_body("Namespace", "store"))]
    assert _shown(build(APP, SETTINGS, asked, own, {})) == ["Sync 0 Namespace/store", "Sync 0 ConfigMap/a"]
    assert _shown(build(APP, SETTINGS, asked, config, {}, _body("Namespace", "store"))) == ["Sync 0 ConfigMap/a"]


def test_a_selective_sync_runs_no_hooks() -> None:
    hook = _target(_body("Job", "migrate", annotations={"argocd.argoproj.io/hook": "PreSync"}))
    config, other = _target(_body("ConfigMap", "a")), _target(_body("ConfigMap", "b"))
    tasks = build(APP, SETTINGS, SyncOptions(selected=(config[0].ref,)), [hook, config, other], {})
    assert _shown(tasks) == ["Sync 0 ConfigMap/a"]


def _order(bodies: list[Body]) -> list[str]:
    return [place.split()[-1] for place in _places(bodies)]


def _places(bodies: list[Body], live: list[Body] | None = None, settings: Settings = SETTINGS) -> list[str]:
    there: dict[Ref, Body | None] = {_target(body)[0].ref: body for body in live or []}
    return _shown(build(APP, settings, SyncOptions(), [_target(body) for body in bodies], there))


def _shown(tasks: list[ArgocdTask]) -> list[str]:
    return [f"{task.phase} {task.wave} {task.ref.kind}/{task.ref.name}" for task in tasks]


def _target(body: Body) -> tuple[DescribedObject, Marks]:
    ref = ref_of(body, namespaced=body["kind"] not in CLUSTER_SCOPED, namespace="store")
    target = with_namespace(DescribedObject(ref, body), APP)
    return target, marks_of(target)


def _body(kind: str, name: str, *, wave: int = 0, annotations: dict[str, str] | None = None) -> Body:
    written = annotations or {"argocd.argoproj.io/sync-wave": str(wave)}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "annotations": dict(written)}}
