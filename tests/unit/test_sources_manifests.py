from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from chartfolder import config_map, write
from kustomizing import needs_kustomize

from seatrial.engines.engine import load
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.resource import Place
from seatrial.model.trial import Step
from seatrial.sources import kind_of, line_at, read_trial
from seatrial.sources.manifests.reading import kinds_in, read_manifests
from seatrial.sources.places import place_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _read(path: str) -> list[tuple[str, str]]:
    return [(str(r.ref), str(place_of(r.place("metadata", "name")))) for r in read_manifests(path, "ns").resources]


def test_a_folder_is_read_recursively_as_by_kubectl(tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "json"}}
    namespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
    write(
        tmp_path,
        {
            "m/b.yaml": config_map("b") + namespace,
            "m/a/z.yml": config_map("z"),
            "m/c.json": json.dumps(secret, indent="\t"),
            "m/README.md": "kind: [",
            "m/empty.yaml": "# nothing\n",
        },
    )
    (tmp_path / "m/up").symlink_to("..")
    assert _read("./m/") == [
        ("ConfigMap/ns/z", "m/a/z.yml:4"),
        ("ConfigMap/ns/b", "m/b.yaml:4"),
        ("Namespace/team", "m/b.yaml:8"),
        ("Secret/ns/json", "m/c.json:5"),
    ]


def test_a_file_of_any_name_may_contain_lists(tmp_path: Path) -> None:
    write(
        tmp_path, {"all": "kind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: p}\n"}
    )
    assert _read("all") == [("Pod/ns/p", "all:6")]


def test_manifests_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(config_map("a").encode())))
    assert _read("-") == [("ConfigMap/ns/a", "stdin:4")]


def test_custom_kinds_have_the_scope_of_their_crd(tmp_path: Path) -> None:
    definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: w}\n"
    definition += "spec: {group: e.com, scope: Cluster, names: {kind: W}}\n"
    write(tmp_path, {"w.yaml": f"apiVersion: e.com/v1\nkind: W\nmetadata: {{name: w}}\n---\n{definition}"})
    assert [ref for ref, _ in _read("w.yaml")] == ["W/w", "CustomResourceDefinition/w"]


def test_text_can_replace_a_manifest_file(tmp_path: Path) -> None:
    write(tmp_path, {"m/a.yaml": config_map("a"), "m/b.yaml": config_map("b")})
    tried = read_manifests("./m", instead={"m/a.yaml": config_map("changed")})
    assert [r.ref.name for r in tried.resources] == ["changed", "b"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a: 1\nb: c: d\n", "m.yaml:2: cannot read the YAML: mapping values are not allowed in this context"),
        (f"{config_map('a')}---\nname: x\n", "m.yaml:6: not a Kubernetes object: Object 'Kind' is missing"),
        ("- a\n", "m.yaml:1: not a Kubernetes object: a list, not a mapping"),
    ],
)
def test_a_document_that_is_not_an_object_is_one_sentence_with_its_place(
    content: str, sentence: str, tmp_path: Path
) -> None:
    write(tmp_path, {"m.yaml": content})
    with pytest.raises(CannotContinue) as complaint:
        read_manifests("m.yaml")
    assert str(complaint.value) == sentence


@pytest.mark.parametrize("content", ["", "# only this\n---\n---\n", "kind: List\napiVersion: v1\nitems: []\n"])
def test_manifests_without_objects_are_nothing_to_check(content: str, tmp_path: Path) -> None:
    write(tmp_path, {"m/a.yaml": content})
    with pytest.raises(NothingToCheck, match=r"^m: contains no Kubernetes object$"):
        read_manifests("m")


def test_symlinks_out_of_the_project_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"secret.yaml": config_map("s"), "m/a.yaml": config_map("a")})
    (tmp_path / "m/b.yaml").symlink_to("../secret.yaml")
    with pytest.raises(CannotContinue, match=r"^m/b\.yaml: the symlink points to .*secret\.yaml, outside of "):
        read_manifests("m")


STORY = "engine: helm\nsteps:\n  - install: ./v1\n"


def test_a_path_is_a_chart_manifests_or_a_trial(tmp_path: Path) -> None:
    files = {"c/Chart.yaml": "", "m/a.yaml": "", "a.yaml": config_map("a"), "broken.yaml": "a: b: c", "t.yaml": STORY}
    write(tmp_path, files)
    (tmp_path / "c.tgz").write_bytes(b"\x1f\x8b\x08")
    paths = ("c", "c.tgz", "m", "a.yaml", "broken.yaml", "-", "t.yaml")
    assert [kind_of(path).name for path in paths] == ["chart", "chart", *["manifests"] * 4, "trial"]
    assert read_trial("t.yaml", lambda name: load(name).actions).steps == (Step("install", "./v1"),)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("nope", "nope: no such file or folder"),
        ("./c/Chart.yaml", "c/Chart.yaml: this file is part of a chart; pass its folder: c"),
        ("p/Pulumi.yaml", "p/Pulumi.yaml: this file is part of a Pulumi program; pass its folder: p"),
        ("p/__main__.py", "p/__main__.py: this file is part of a Pulumi program; pass its folder: p"),
        ("k/kustomization.yaml", "k/kustomization.yaml: this file is part of a kustomization; pass its folder: k"),
        ("oci://r/c", "oci://r/c: charts are read from disk only; fetch it first: helm pull oci://r/c"),
    ],
)
def test_an_unusable_path_is_one_sentence(path: str, sentence: str, tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(("c/Chart.yaml", "p/Pulumi.yaml", "p/__main__.py", "k/kustomization.yaml"), ""))
    with pytest.raises(CannotContinue) as complaint:
        kind_of(path)
    assert str(complaint.value) == sentence


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("Pulumi.yaml", "name: p\nruntime: yaml\n"),
        ("kustomization.yaml", "resources: [a.yaml]\n"),
    ],
)
def test_a_chart_or_program_below_a_folder_of_manifests_is_refused(file: str, content: str, tmp_path: Path) -> None:
    write(tmp_path, {"all/a.yaml": config_map("a"), f"all/below/{file}": content})
    with pytest.raises(
        CannotContinue, match=rf"^all/below/{file}: this file is part of a .*; pass its folder: all/below$"
    ):
        read_manifests("all")


def test_kinds_are_found_next_to_unreadable_files(tmp_path: Path) -> None:
    write(tmp_path, {"all/a.yaml": config_map("a"), "all/below/kustomization.yaml": "resources: [a.yaml]\n"})
    assert kinds_in("all") == {("", "ConfigMap")}


@pytest.mark.parametrize("step", ["instal", "[install, c]", "7", "{rebuild: [7]}"])
def test_a_step_with_an_unknown_action_lists_the_known_ones(step: str, tmp_path: Path) -> None:
    write(tmp_path, {"t.yaml": f"steps: [{step}]\n"})
    with pytest.raises(CannotContinue, match=r"a step names one act; known are install, upgrade, .*, rebuild$"):
        read_trial("t.yaml", lambda name: load(name).actions)


def test_an_action_that_takes_nothing_refuses_a_value(tmp_path: Path) -> None:
    write(tmp_path, {"t.yaml": "steps: [{install: c}, {uninstall: web}]\n"})
    with pytest.raises(CannotContinue, match=r"t.yaml: steps\[1\]: uninstall takes no value; release: NAME says which"):
        read_trial("t.yaml", lambda name: load(name).actions)


@needs_kustomize
def test_a_kustomization_is_built_in_the_order_of_kinds(tmp_path: Path) -> None:
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x}\n"
    files = {"k/kustomization.yaml": "namePrefix: my-\nresources: [a.yaml, b.yaml]\n"}
    write(tmp_path, {**files, "k/a.yaml": config_map("a"), "k/b.yaml": account})
    assert kind_of("k").name == "manifests"
    built = read_manifests("k")
    assert [str(r.ref) for r in built.resources] == ["ServiceAccount/default/my-x", "ConfigMap/default/my-a"]


def test_a_kustomization_needs_kustomize_or_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"k/kustomization.yaml": ""})
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CannotContinue) as complaint:
        read_manifests("k")
    reason = "build the kustomization: neither kustomize nor kubectl is on the PATH"
    assert str(complaint.value) == f"k: {reason}; install one, or run: kustomize build k | seatrial check -"


def test_the_line_of_a_place_can_be_read_again_unless_the_file_is_gone(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": config_map("a")})
    places = [Place("a.yaml", 4), Place("nope.yaml", 1), Place("stdin", 1)]
    assert [line_at(place) for place in places] == ["  name: a", None, None]
