from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chartfolder import CHART, config_map, write

from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Place, Ref
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.charts.rendering import render
from seatrial.sources.places import place_of


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _rendered(files: dict[str, str], values: dict[str, Any] | None = None, **options: Any) -> Release:
    write(Path("v2"), {"Chart.yaml": CHART, **files})
    return render(open_chart("./v2"), values or {}, release="r", namespace="ns", **options)


def _complaint(template: str, **options: Any) -> str:
    with pytest.raises(CannotContinue) as complaint:
        _rendered({"templates/bad.yaml": template, **options})
    return str(complaint.value)


def test_objects_have_the_order_of_helm_and_their_places() -> None:
    release = _rendered(
        {
            "templates/b.yaml": f"{config_map('b1')}---\n# nothing\n--- \n{config_map('b2')}",
            "templates/B.yaml": config_map("upper"),
            "templates/a/nested.yaml": config_map("nested"),
            "templates/_partial.yaml": config_map("partial"),
            "templates/NOTES.txt": "hello",
            "templates/empty.yaml": "{{ if .Values.never }}x{{ end }}\n",
            "charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
            "charts/sub/templates/z.yaml": config_map("sub"),
            "charts/sub/templates/NOTES.txt": "hello",
        }
    )
    assert [(str(r.ref), r.file, str(place_of(r.place("metadata", "name")))) for r in release.resources] == [
        ("ConfigMap/ns/sub", "v2/charts/sub/templates/z.yaml", "v2/charts/sub/templates/z.yaml:4"),
        ("ConfigMap/ns/upper", "v2/templates/B.yaml", "v2/templates/B.yaml:4"),
        ("ConfigMap/ns/nested", "v2/templates/a/nested.yaml", "v2/templates/a/nested.yaml:4"),
        ("ConfigMap/ns/b1", "v2/templates/b.yaml", "v2/templates/b.yaml:4"),
        ("ConfigMap/ns/b2", "v2/templates/b.yaml", "v2/templates/b.yaml:11"),
    ]
    assert (release.name, release.namespace, release.source) == ("r", "ns", "./v2")


def test_a_separator_may_be_followed_by_text() -> None:
    release = _rendered({"templates/t.yaml": f"{config_map('a')}---{config_map('b')}"})
    assert [(r.ref.name, place_of(r.place("kind")).line) for r in release.resources] == [("a", 2), ("b", 6)]


WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Widget, plural: widgets}
"""


def test_objects_are_named_with_their_effective_namespace() -> None:
    kinds = {
        "own": "apiVersion: v1\nkind: Secret\nmetadata: {name: own, namespace: other}\n",
        "given": "apiVersion: v1\nkind: Secret\nmetadata: {name: given}\n",
        "role": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: role, namespace: x}\n",
        "crd": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: crd}\n",
        "unknown": "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: unknown}\n",
    }
    release = _rendered({f"templates/{name}.yaml": text for name, text in kinds.items()} | {"crds/w.yaml": WIDGETS})
    assert {r.ref.name: r.ref for r in release.resources} == {
        "own": Ref("Secret", "other", "own"),
        "given": Ref("Secret", "ns", "given"),
        "role": Ref("ClusterRole", "", "role", "rbac.authorization.k8s.io"),
        "crd": Ref("Widget", "", "crd", "example.com"),
        "unknown": Ref("Gadget", "ns", "unknown", "example.com"),
    }
    (definition,) = release.crds
    assert (str(definition.ref), str(place_of(definition.place("spec", "names")))) == (
        "CustomResourceDefinition/widgets.example.com",
        "v2/crds/w.yaml:7",
    )


def test_crds_come_from_enabled_charts_parents_first() -> None:
    def definition(name: str) -> str:
        return WIDGETS.replace("widgets.example.com", name)

    files = {"Chart.yaml": f"{CHART}dependencies: [{{name: extra, version: 1.0.0, condition: extra.use}}]\n"}
    files |= {"values.yaml": "extra: {use: false}\n", "crds/own.yaml": definition("own")}
    for name in ("b", "a", "extra"):
        files[f"charts/{name}/Chart.yaml"] = f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n"
        files[f"charts/{name}/crds/c.yaml"] = definition(name)
    assert [r.ref.name for r in _rendered(files).crds] == ["own", "a", "b"]
    assert [r.ref.name for r in _rendered(files, {"extra": {"use": True}}).crds] == ["own", "a", "b", "extra"]


def test_items_of_a_list_are_separate_objects() -> None:
    template = """\
apiVersion: v1
kind: List
items:
{{- range .Values.names }}
- apiVersion: v1
  kind: Secret
  metadata:
    name: {{ . }}
{{- end }}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - metadata: {name: inner}
"""
    release = _rendered({"templates/l.yaml": template}, {"names": ["a", "b"]})
    assert [
        (str(r.ref), place_of(r.place("kind")).line, place_of(r.place("metadata", "name")).line)
        for r in release.resources
    ] == [
        ("Secret/ns/a", 6, 8),
        ("Secret/ns/b", 6, 8),
        ("ConfigMap/ns/inner", 13, 13),
    ]
    assert release.resources[2].body == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}}


def test_a_place_has_a_certainty() -> None:
    template = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "labels" . | nindent 4 }}
  annotations:
    checksum: {{ include (print $.Template.BasePath "/other.yaml") . | sha256sum }}
"""
    helpers = '{{ define "labels" }}\napp: x\n{{ toYaml .Values.labels }}{{ end }}'
    release = _rendered(
        {"templates/a.yaml": template, "templates/_h.tpl": helpers, "templates/other.yaml": config_map("other")},
        {"labels": {"given": "x"}},
    )
    first = release.resources[0]
    paths = (("name",), ("labels", "app"), ("labels", "given"), ("annotations", "checksum"), ("none",))
    assert [place_of(first.place("metadata", *path)) for path in paths] == [
        Place("v2/templates/a.yaml", 4, "exact"),
        Place("v2/templates/_h.tpl", 2, "exact"),
        Place("v2/templates/a.yaml", 5, "near"),
        Place("v2/templates/a.yaml", 7, "exact"),
        Place("v2/templates/a.yaml", 3, "exact"),
    ]


def test_a_template_that_reads_another_one_keeps_its_places() -> None:
    parses = """\
{{- $other := include (print $.Template.BasePath "/other.yaml") . | fromYaml }}
apiVersion: v1
kind: {{ required "no kind" $other.kind }}
metadata:
  name: copy
"""
    release = _rendered({"templates/a.yaml": parses, "templates/other.yaml": config_map("other")})
    places = [place_of(resource.place("metadata", "name")) for resource in release.resources]
    assert [(str(place), place.sure) for place in places] == [
        ("v2/templates/a.yaml:5", "exact"),
        ("v2/templates/other.yaml:4", "exact"),
    ]


def test_templates_see_the_requested_release_and_capabilities() -> None:
    template = config_map("{{ .Release.Revision }}") + (
        "data:\n  up: '{{ .Release.IsUpgrade }}/{{ .Release.IsInstall }}'\n"
        "  kube: {{ .Capabilities.KubeVersion.Version }}\n"
        "  has: '{{ .Capabilities.APIVersions.Has \"example.com/v1\" }}'\n"
    )
    options: dict[str, Any] = {
        "is_upgrade": True,
        "revision": 3,
        "kube_version": "1.30.1",
        "api_versions": ["example.com/v1"],
    }
    (found,) = _rendered({"templates/t.yaml": template}, **options).resources
    assert found.body["data"] == {"up": "true/false", "kube": "v1.30.1", "has": "true"}
    assert found.body["metadata"]["name"] == 3


COMPLAINTS = {
    "a: {{ .Values.a.b.c }}\n": (
        'v2/templates/bad.yaml:1:13: executing "demo/templates/bad.yaml" at <.Values.a.b.c>: '
        "nil pointer evaluating interface {}.b; a map is missing: set it, or write ((.Values.a).b).c, which is empty "
        "then"
    ),
    'x: 1\na: {{ fail "no way\\nat all" }}\n': (
        "v2/templates/bad.yaml:2:6: execution error at (demo/templates/bad.yaml:2:6): no way at all"
    ),
    "x: 1\na: {{ .Values.a \n": (
        "v2/templates/bad.yaml:3: parse error at (demo/templates/bad.yaml:3): "
        "unclosed action started at demo/templates/bad.yaml:2"
    ),
    'a: {{ tpl "{{ .Values.x.y }}" . }}\n': (
        'v2/templates/bad.yaml:1:6: template: demo/templates/bad.yaml:1:6: executing "demo/templates/bad.yaml" at '
        '<tpl "{{ .Values.x.y }}" .>: error calling tpl: error during tpl function execution for "{{ .Values.x.y }}": '
        'template: gotpl:1:10: executing "gotpl" at <.Values.x.y>: nil pointer evaluating interface {}.y; '
        "a map is missing: set it, or write (.Values.x).y, which is empty then"
    ),
    "{{ range until 2 }}\n---\na: {{ . }}\nb: c: d\n{{ end }}": (
        "v2/templates/bad.yaml:4: YAML parse error on demo/templates/bad.yaml: "
        "mapping values are not allowed in this context (line 4 as rendered: b: c: d)"
    ),
    "# text\n\nhello\n": "v2/templates/bad.yaml:3: not a Kubernetes object: a single value, not a mapping",
    "- a\n": "v2/templates/bad.yaml:1: not a Kubernetes object: a list, not a mapping",
    "\n\napiVersion: v1\n": "v2/templates/bad.yaml:3: not a Kubernetes object: Object 'Kind' is missing",
    "kind: Secret\n": "v2/templates/bad.yaml:1: not a Kubernetes object: Object 'apiVersion' is missing",
    "apiVersion: v1\nkind: List\nitems:\n- kind: Secret\n": (
        "v2/templates/bad.yaml:4: not a Kubernetes object: Object 'apiVersion' is missing"
    ),
}


@pytest.mark.parametrize("template", COMPLAINTS)
def test_a_rendering_error_is_one_line_that_begins_with_its_place(template: str) -> None:
    assert _complaint(template) == COMPLAINTS[template]


def test_a_schema_error_has_the_message_of_helm() -> None:
    schema = '{"type": "object", "required": ["image"]}'
    assert _complaint("", **{"values.schema.json": schema}) == (
        "v2: render the chart: values don't meet the specifications of the schema(s) in the following chart(s): "
        "demo: - at '': missing property 'image'"
    )


def test_a_rendering_error_lists_missing_dependencies() -> None:
    chart = CHART + "dependencies: [{name: lib, version: 1.x, repository: https://charts.example}]\n"
    assert _complaint('{{ include "lib.name" . }}', **{"Chart.yaml": chart}) == (
        'v2/templates/bad.yaml:1:3: executing "demo/templates/bad.yaml" at <include "lib.name" .>: '
        'error calling include: template: no template "lib.name" associated with template "gotpl" '
        "(the chart was rendered without its missing dependencies: lib 1.x (https://charts.example); "
        "`helm dependency build` fetches them)"
    )
