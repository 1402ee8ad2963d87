"""Sources of Flux: where they are found, variables and values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kustomizing import needs_kustomize

from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.flux.building import FluxSources, build, chart_of, values_of
from seatrial.sources.repos import Repos, SourceNotFound

URL = "https://git.example/platform"
GIT: Body = {
    "kind": "GitRepository",
    "metadata": {"name": "platform", "namespace": "flux-system"},
    "spec": {"url": URL},
}

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}
"""
COMPONENT = """
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
labels: [{pairs: {team: x}}]
"""


def test_a_path_is_found_in_the_given_repository_or_next_to_the_input(tmp_path: Path) -> None:
    _write(tmp_path / "apps/a.yaml", _config("a"))
    (tmp_path / ".git").mkdir()
    (tmp_path / "clusters/one").mkdir(parents=True)
    given = build(_kustomization(), _known(tmp_path, {"git.example/platform": str(tmp_path)}))
    beside = build(_kustomization(), _known(tmp_path / "clusters/one"))
    assert [str(r.ref) for r in given.resources] == [str(r.ref) for r in beside.resources] == ["ConfigMap/default/a"]
    with pytest.raises(SourceNotFound, match=f"source {URL} is not on disk"):
        build(_kustomization(path="./nowhere"), _known(tmp_path))


def test_all_subfolders_are_built_and_objects_get_the_target_namespace(tmp_path: Path) -> None:
    _write(tmp_path / "apps/a.yaml", _config("a"))
    _write(tmp_path / "apps/deep/b.yaml", _config("b"))
    spec: Body = {"targetNamespace": "shop", "commonMetadata": {"labels": {"team": "x"}}}
    built = build(_kustomization(**spec), _known(tmp_path))
    assert [str(r.ref) for r in built.resources] == ["ConfigMap/shop/a", "ConfigMap/shop/b"]
    assert built.resources[0].body["metadata"]["labels"] == {"team": "x"}


def test_a_namespace_object_becomes_the_target_namespace(tmp_path: Path) -> None:
    _write(tmp_path / "apps/a.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
    built = build(_kustomization(targetNamespace="shop"), _known(tmp_path))
    assert [(str(r.ref), r.body["metadata"]["name"]) for r in built.resources] == [("Namespace/shop", "shop")]


def test_objects_with_unknown_variables_are_left_out_and_noted(tmp_path: Path) -> None:
    _write(tmp_path / "apps/a.yaml", _config("${name}", "${other:=usual}"))
    _write(tmp_path / "apps/b.yaml", _config("b", "${secret}"))
    post = {"substitute": {"name": "web"}, "substituteFrom": [{"kind": "Secret", "name": "vars"}]}
    built = build(_kustomization(postBuild=post), _known(tmp_path))
    assert [(str(r.ref), r.body["data"]) for r in built.resources] == [("ConfigMap/default/web", {"v": "usual"})]
    assert built.not_rehearsed == ("ConfigMap/default/b of Kustomization apps: its postBuild variables are unknown",)


def test_an_undefined_variable_is_empty_if_all_sources_are_known(tmp_path: Path) -> None:
    _write(tmp_path / "apps/a.yaml", _config("a", "<${unset}> ${name^^} $${HOME} $HOME"))
    built = build(_kustomization(postBuild={"substitute": {"name": "we\nb"}}), _known(tmp_path))
    assert [r.body["data"] for r in built.resources] == [{"v": "<> WEB ${HOME} $HOME"}]
    untouched = build(_kustomization(postBuild={"substitute": {}}), _known(tmp_path))
    assert [r.body["data"] for r in untouched.resources] == [{"v": "<${unset}> ${name^^} $${HOME} $HOME"}]


def test_a_broken_variable_stops_the_build_unless_it_is_in_a_comment(tmp_path: Path) -> None:
    _write(tmp_path / "apps/a.yaml", "# ${list[@]}\n" + _config("a", "plain"))
    post = {"substitute": {"name": "web"}}
    assert len(build(_kustomization(postBuild=post), _known(tmp_path)).resources) == 1
    _write(tmp_path / "apps/b.yaml", _config("script", "echo ${list[@]}"))
    words = "post build failed for 'ConfigMap.v1.[noGrp]/script': envsubst error: variable substitution failed: "
    with pytest.raises(CannotContinue, match=re.escape(f"{words}missing closing brace") + "$"):
        build(_kustomization(postBuild=post), _known(tmp_path))


def test_an_object_may_opt_out_of_substitution(tmp_path: Path) -> None:
    disabled = "kustomize.toolkit.fluxcd.io/substitute: disabled"
    meta = f"metadata:\n  name: kept\n  annotations:\n    {disabled}\n"
    kept = f"apiVersion: v1\nkind: ConfigMap\n{meta}data: {{v: '${{name}}'}}\n"
    _write(tmp_path / "apps/both.yaml", f"---\n{kept}---\n{_config('b', '${name}')}")
    built = build(_kustomization(postBuild={"substitute": {"name": "web"}}), _known(tmp_path))
    assert [r.body["data"]["v"] for r in built.resources] == ["${name}", "web"]


def test_values_come_from_values_from_in_order_then_from_the_release(tmp_path: Path) -> None:
    _write(tmp_path / "charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
    source = {"kind": "GitRepository", "name": "platform", "namespace": "flux-system"}
    release: Body = {
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "chart": {"spec": {"chart": "./charts/web", "sourceRef": source}},
            "valuesFrom": [{"kind": "ConfigMap", "name": "defaults"}, {"kind": "Secret", "name": "elsewhere"}],
            "values": {"b": 3},
        },
    }
    known = _known(tmp_path)
    known.objects[Ref("ConfigMap", "shop", "defaults")] = {"kind": "ConfigMap", "data": {"values.yaml": "a: 1\nb: 2\n"}}
    chart = chart_of(release, known)
    assert (chart.name, open_chart(chart.path).version) == ("web", "1.0.0")
    values, notes = values_of(release, chart, known)
    assert values == {"a": 1, "b": 3}
    assert notes == ["flux: web: Secret/shop/elsewhere was not found; rehearsed without its values"]
    known.objects[Ref("Secret", "shop", "elsewhere")] = {"kind": "Secret", "stringData": {"other.yaml": "a: 2"}}
    words = "could not resolve Secret chart values reference 'shop/elsewhere' with key 'values.yaml': key not found"
    with pytest.raises(CannotContinue, match=words):
        values_of(release, chart, known)
    release["spec"]["valuesFrom"][1]["optional"] = True
    assert values_of(release, chart, known) == ({"a": 1, "b": 3}, [])


@needs_kustomize
def test_a_kustomization_is_edited_before_it_is_built(tmp_path: Path) -> None:
    _write(
        tmp_path / "apps/kustomization.yaml",
        "namespace: old\nresources: [web.yaml]\nimages: [{name: nginx, newTag: '1'}]\n",
    )
    _write(tmp_path / "apps/web.yaml", WEB)
    _write(tmp_path / "labels/kustomization.yaml", COMPONENT)
    spec: Body = {
        "targetNamespace": "shop",
        "namePrefix": "eu-",
        "images": [{"name": "nginx", "newTag": "2"}],
        "components": ["../labels"],
        "patches": [{"patch": "- {op: add, path: /spec/paused, value: true}", "target": {"kind": "Deployment"}}],
    }
    [web] = build(_kustomization(**spec), _known(tmp_path)).resources
    assert str(web.ref) == "Deployment/shop/eu-web"
    assert web.body["spec"]["paused"] is True
    assert web.body["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"
    assert web.body["metadata"]["labels"] == {"team": "x"}
    assert (tmp_path / "apps/kustomization.yaml").read_text().startswith("namespace: old")


@needs_kustomize
def test_patches_apply_to_a_folder_without_a_kustomization_file(tmp_path: Path) -> None:
    _write(tmp_path / "apps/deep/web.yaml", WEB)
    patch = {"patch": "- {op: add, path: /spec/paused, value: true}", "target": {"kind": "Deployment"}}
    [web] = build(_kustomization(patches=[patch]), _known(tmp_path)).resources
    assert web.body["spec"]["paused"] is True
    assert not (tmp_path / "apps/kustomization.yaml").exists()


def test_files_that_an_artifact_generator_copies_are_found_at_their_origin(tmp_path: Path) -> None:
    _write(tmp_path / "platform/apps/eu/a.yaml", _config("a"))
    known = _known(tmp_path, {"git.example/platform": str(tmp_path)})
    copy = {"from": "@mono/platform/apps/**", "to": "@artifact/sites/"}
    known.objects[Ref("ArtifactGenerator", "default", "parts", "source.extensions.fluxcd.io")] = {
        "spec": {
            "sources": [{"alias": "mono", "kind": "GitRepository", "name": "platform", "namespace": "flux-system"}],
            "artifacts": [{"name": "sites", "copy": [copy]}],
        }
    }
    artifact = {"kind": "ExternalArtifact", "name": "sites"}
    built = build(_kustomization("./sites/eu", sourceRef=artifact), known)
    assert [str(r.ref) for r in built.resources] == ["ConfigMap/default/a"]
    with pytest.raises(SourceNotFound, match="ExternalArtifact/default/others has no path sites in the input"):
        build(_kustomization("./sites", sourceRef={**artifact, "name": "others"}), known)


def _known(beside: Path, repos: dict[str, str] | None = None) -> FluxSources:
    ref = Ref("GitRepository", "flux-system", "platform", "source.toolkit.fluxcd.io")
    return FluxSources(Repos(repos or {}), {}, str(beside), {ref: GIT})


def _kustomization(path: str = "./apps", **spec: object) -> Body:
    source = {"kind": "GitRepository", "name": "platform", "namespace": "flux-system"}
    return {
        "metadata": {"name": "apps", "namespace": "default"},
        "spec": {"path": path, "sourceRef": source, **spec},
    }


def _config(name: str, value: str = "1") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{name}'}}\ndata: {{v: '{value}'}}\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
