"""What helm-controller adds to the objects of a chart, and under which name it writes them. Helm is the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.check import run
from seatrial.engines.act import HelmAct
from seatrial.engines.flux.postrendering import additions, rendered_error
from seatrial.engines.postrendered import PostRendered
from seatrial.model.options import CheckOptions
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Origin, labels_of, metadata, ref_of
from seatrial.play.embedded_helm import post_rendered, writes_of

ORIGIN = {"helm.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/namespace": "team"}
RELEASE: Body = {"kind": "HelmRelease", "metadata": {"name": "shop", "namespace": "team"}}
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "crds/w.yaml": (
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n"
        "spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets},\n"
        "  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
    ),
    "templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, labels: {tier: web}}\n",
    "templates/hook.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n"
    ),
}


def test_objects_crds_and_hooks_of_a_chart_have_the_labels_and_the_manager(tmp_path: Path) -> None:
    for name, text in CHART.items():
        (tmp_path / "shop" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / name).write_text(text)
    given = CheckOptions((str(tmp_path / "shop"),), engines=("flux",), release_name="shop", namespace="team")
    rehearsal = run(given, "ordinary").rehearsal
    made = {e.object.name: e.after for e in rehearsal.timeline if e.effect == "created" and e.step == 0 and e.after}
    for name in ("config", "hook", "widgets.example.com"):
        assert ORIGIN.items() <= labels_of(made[name]).items()
        assert [entry["manager"] for entry in metadata(made[name])["managedFields"]] == ["helm-controller"]
    assert labels_of(made["config"])["tier"] == "web"
    assert not ORIGIN.items() <= labels_of(made["sh.helm.release.v1.shop.v1"]).items()


def test_an_upgrade_is_applied_as_the_install_was_unless_it_says_otherwise(tmp_path: Path) -> None:
    release = (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop, namespace: team}\n"
        "spec:\n  interval: 10m\n  install: {serverSideApply: false}\n  values: {size: %s}\n"
        "  chart: {spec: {chart: ./shop, sourceRef: {kind: GitRepository, name: platform}}}\n"
    )
    files = {
        "a/shop.yaml": release % 1,
        "b/shop.yaml": release % 2,
        "shop/Chart.yaml": CHART["Chart.yaml"],
        "shop/templates/a.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config}\ndata: {size: {{ .Values.size | quote }}}\n"
        ),
        "trial.yaml": "engine: flux\nsteps: [{sync: a}, {sync: b}]\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    given = CheckOptions((str(tmp_path / "trial.yaml"),), charts=(f"shop={tmp_path / 'shop'}",))
    rehearsal = run(given, "ordinary").rehearsal
    wrote = [(e.step, e.verb) for e in rehearsal.timeline if e.object.name == "config" and e.actor == "helm"]
    assert [step.outcome for step in rehearsal.steps] == ["ok", "ok"]
    assert (0, "create") in wrote
    assert (1, "patch") in wrote


def test_common_metadata_does_not_win_over_the_origin() -> None:
    common = {"labels": {"team": "a", "helm.toolkit.fluxcd.io/name": "other"}, "annotations": {"note": "b"}}
    adds = additions({**RELEASE, "spec": {"commonMetadata": common, "postRenderStrategy": "nohooks"}})
    assert adds == PostRendered({"team": "a", **ORIGIN}, {"note": "b"}, hooks=False)


def test_hooks_are_left_alone_where_they_are_not_post_rendered() -> None:
    hook: Body = {"kind": "Job", "metadata": {"name": "a", "annotations": {"helm.sh/hook": "pre-install"}}}
    assert post_rendered(hook, PostRendered(ORIGIN, hooks=False)) == hook
    assert labels_of(post_rendered(hook, PostRendered(ORIGIN))) == ORIGIN


def test_the_namespace_that_helm_creates_by_itself_is_not_post_rendered() -> None:
    own: Body = {"kind": "Namespace", "metadata": {"name": "team", "labels": {"name": "team"}}}
    of_chart: Body = {
        "kind": "Namespace",
        "metadata": {"name": "b", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
    }
    assert post_rendered(own, PostRendered(ORIGIN)) == own
    assert ORIGIN.items() <= labels_of(post_rendered(of_chart, PostRendered(ORIGIN))).items()


def test_helm_by_itself_writes_what_it_renders() -> None:
    writes = writes_of(HelmAct("install", "shop", "team"))
    assert (writes["manager"], writes["rewrite"]) == ("", None)


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("combined", "error while running post render on files: may not add resource with an already registered id: "),
        ("separate", ""),
        ("nohooks", ""),
    ],
)
def test_a_hook_of_the_same_name_fails_unless_hooks_are_post_rendered_apart(strategy: str, words: str) -> None:
    plain = _resource("apps/v1", "Deployment", {"name": "a", "namespace": "x"})
    hook = _resource("apps/v1", "Deployment", {"name": "a", "namespace": "x", "annotations": {"helm.sh/hook": "test"}})
    error = rendered_error((plain, hook), {**RELEASE, "spec": {"postRenderStrategy": strategy}})
    assert error == (f"{words}Deployment.v1.apps/a.x" if words else "")


@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (("v1", "ConfigMap", {"name": "a"}), ("v1", "ConfigMap", {"name": "a"}), "ConfigMap.v1.[noGrp]/a.[noNs]"),
        (
            ("v1", "ConfigMap", {"name": "a"}),
            ("v1", "ConfigMap", {"name": "a", "namespace": "default"}),
            "ConfigMap.v1.[noGrp]/a.default",
        ),
        (("v1", "Namespace", {"name": "a"}), ("v1", "Namespace", {"name": "a"}), "Namespace.v1.[noGrp]/a.[noNs]"),
        (("example.com/v1", "W", {"name": "a"}), ("example.com/v2", "W", {"name": "a"}), ""),
    ],
)
def test_kustomize_names_the_object_that_is_there_twice(
    first: tuple[str, str, Body], second: tuple[str, str, Body], named: str
) -> None:
    error = rendered_error((_resource(*first), _resource(*second)), RELEASE)
    assert error.endswith(named)
    assert bool(error) == bool(named)


def _resource(api_version: str, kind: str, meta: Body) -> Resource:
    body: Body = {"apiVersion": api_version, "kind": kind, "metadata": meta}
    return Resource(ref_of(body), body, Origin("templates/a.yaml"))
