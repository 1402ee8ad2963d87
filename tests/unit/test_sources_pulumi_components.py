"""Charts and YAML inside Pulumi programs: children, their order, and hooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from programsread import complaint, registered

from seatrial.model.errors import CannotContinue
from seatrial.model.program import Program, short
from seatrial.sources.places import place_of
from seatrial.sources.pulumi import read_program

Write = Callable[..., str]

CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    "chart/crds/gate.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gates.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gate, plural: gates}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
""",
    "chart/templates/all.yaml": """
apiVersion: v1
kind: Namespace
metadata: {name: gated}
---
apiVersion: example.com/v1
kind: Gate
metadata: {name: gate, namespace: gated}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: before, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: tested, annotations: {helm.sh/hook: test}}
spec: {containers: [{name: c, image: i}]}
""",
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files and returns the path of the program."""
    monkeypatch.chdir(tmp_path)

    def written(**files: str) -> str:
        for name, content in {**CHART, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return "app"

    return written


def edges(program: Program) -> dict[str, list[str]]:
    return {short(one.urn): [short(urn) for urn in one.dependencies] for one in program.registrations}


def python_program(code: str) -> dict[str, str]:
    return {"app/Pulumi.yaml": "name: app\nruntime: python\n", "app/__main__.py": code}


def yaml_program(resources: str) -> dict[str, str]:
    return {"app/Pulumi.yaml": f"name: app\nruntime: yaml\nresources:\n{resources}"}


def test_a_v4_chart_orders_its_objects_and_drops_hooks(write: Write) -> None:
    resource = "  c: {type: 'kubernetes:helm.sh/v4:Chart', properties: {chart: ../chart}}\n"
    program = registered(write(**yaml_program(resource)))
    assert edges(program) == {
        "v4.Chart c": [],
        "CustomResourceDefinition c:gates.example.com": [],
        "ConfigMap c:default/kept": [],
        "Namespace c:gated": [],
        "Gate c:gated/gate": ["CustomResourceDefinition c:gates.example.com", "Namespace c:gated"],
    }
    kept = {one.name: one.options.retain_on_delete for one in program.registrations}
    assert kept["c:default/kept"] and not kept["c:gated"]


def test_a_v4_chart_can_skip_crds_and_awaiting(write: Write) -> None:
    properties = "{chart: ../chart, skipCrds: true, skipAwait: true, resourcePrefix: p}"
    program = registered(
        write(**yaml_program(f"  c: {{type: 'kubernetes:helm.sh/v4:Chart', properties: {properties}}}\n"))
    )
    assert edges(program)["Gate p:gated/gate"] == ["Namespace p:gated"]
    skipped = [
        one.object["metadata"]["annotations"]["pulumi.com/skipAwait"] for one in program.registrations if one.object
    ]
    assert skipped == ["true"] * 3


def test_a_v3_chart_has_no_order_and_creates_hooks_except_tests(write: Write) -> None:
    code = "from pulumi_kubernetes.helm.v3 import Chart, LocalChartOpts\nChart('c', LocalChartOpts(path='../chart'))\n"
    program = registered(write(**{"app/Pulumi.yaml": "name: app\nruntime: python\n", "app/__main__.py": code}))
    assert edges(program) == {
        "v3.Chart c": [],
        "CustomResourceDefinition gates.example.com": [],
        "Namespace gated": [],
        "Gate gated/gate": [],
        "ConfigMap default/kept": [],
        "Job default/before": [],
    }


def test_a_release_is_one_resource_and_helm_runs_its_hooks(write: Write) -> None:
    program = registered(
        write(**yaml_program("  r: {type: 'kubernetes:helm.sh/v3:Release', properties: {chart: ../chart}}\n"))
    )
    (only,) = program.registrations
    assert [body["metadata"]["name"] for body in only.contents] == ["gated", "gate", "kept", "before", "tested"]
    assert [body["metadata"]["name"] for body in only.definitions] == ["gates.example.com"]


def test_yaml_v2_is_ordered_by_crd_namespace_and_annotation(write: Write) -> None:
    group = """  g:
    type: kubernetes:yaml/v2:ConfigGroup
    properties:
      files: [../chart/crds/*.yaml]
      objs:
        - {apiVersion: v1, kind: Secret, metadata: {name: key}}
      yaml: |
        apiVersion: example.com/v1
        kind: Gate
        metadata: {name: gate, annotations: {config.kubernetes.io/depends-on: /namespaces/default/Secret/key}}
  f:
    type: kubernetes:yaml/v2:ConfigFile
    properties: {file: ../chart/crds/gate.yaml}
    options: {dependsOn: ["${g}"]}
"""
    assert edges(registered(write(**yaml_program(group)))) == {
        "ConfigGroup g": [],
        "CustomResourceDefinition g:gates.example.com": [],
        "Gate g:default/gate": ["CustomResourceDefinition g:gates.example.com", "Secret g:default/key"],
        "Secret g:default/key": [],
        "ConfigFile f": ["ConfigGroup g"],
        "CustomResourceDefinition f:gates.example.com": [],
    }


def test_a_depends_on_annotation_must_name_an_object_of_the_component(write: Write) -> None:
    group = """  g:
    type: kubernetes:yaml/v2:ConfigGroup
    properties:
      yaml: |
        apiVersion: v1
        kind: Secret
        metadata: {name: key, annotations: {config.kubernetes.io/depends-on: apps/namespaces/x/Deployment/y}}
"""
    with pytest.raises(CannotContinue) as raised:
        registered(write(**yaml_program(group)))
    assert str(raised.value) == (
        'app/Pulumi.yaml:4: invalid object: "default_key__Secret": invalid "config.kubernetes.io/depends-on" '
        "annotation: external dependency: /namespaces/default/Secret/key -> apps/namespaces/x/Deployment/y"
    )


def test_a_chart_that_is_not_on_disk_needs_a_chart_flag(write: Write) -> None:
    path = write(
        **yaml_program("  c: {type: 'kubernetes:helm.sh/v4:Chart', properties: {chart: oci://example/chart}}\n")
    )
    assert registered(path).absent == (
        "v4.Chart c: the chart oci://example/chart is not on disk. To rehearse it: helm pull oci://example/chart "
        "--untar, then add --chart chart=chart",
    )
    found = read_program(path, {"chart": "chart"}).program
    assert found and not found.absent and len(found.registrations) == 5


def test_unknown_keys_are_ignored_with_a_warning(write: Write) -> None:
    resource = """  a: {type: 'kubernetes:core/v1:ConfigMap'}
  b: {type: 'kubernetes:core/v1:ConfigMap', options: {dependOn: ["${a}"]}}
"""
    program = registered(write(**yaml_program(resource)))
    assert edges(program)["ConfigMap b"] == []
    assert program.warnings == (
        "app/Pulumi.yaml:5: options.dependOn of b is unknown to Pulumi, which ignores it with a warning",
    )


def test_values_come_from_files_and_from_the_program(write: Write) -> None:
    files = {
        "chart/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
        "data: {{ toJson .Values }}\n",
        "app/more.yaml": "a: '1'\nb: '1'\n",
        "app/__main__.py": "import pulumi\nfrom pulumi_kubernetes.helm.v3 import Release\n"
        "Release('r', chart='../chart', value_yaml_files=[pulumi.FileAsset('more.yaml')], values={'b': '2'})\n",
        "app/Pulumi.yaml": "name: app\nruntime: python\n",
    }
    (only,) = registered(write(**files)).registrations
    assert only.contents[0]["data"] == {"a": "1", "b": "2"}


def test_crds_of_the_program_make_kinds_cluster_scoped(write: Write) -> None:
    definition = CHART["chart/crds/gate.yaml"].replace("Namespaced", "Cluster")
    resources = """  c: {type: 'kubernetes:helm.sh/v4:Chart', properties: {chart: ../chart}}
  g:
    type: kubernetes:apiextensions.k8s.io:CustomResource
    properties: {apiVersion: example.com/v1, kind: Gate, metadata: {name: late}}
"""
    release = read_program(write(**yaml_program(resources), **{"chart/crds/gate.yaml": definition}))
    assert [str(one.ref) for one in release.resources if one.ref.kind == "Gate"] == ["Gate/gate", "Gate/late"]


def test_objects_in_yaml_text_have_the_place_of_their_component(write: Write) -> None:
    code = """
import pulumi_kubernetes as k8s

k8s.yaml.ConfigFile("all", file="all.yaml")
"""
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    (resource,) = read_program(write(**python_program(code), **{"app/all.yaml": text})).resources
    assert str(place_of(resource.place("metadata"))) == "app/__main__.py:4"


def test_a_program_that_needs_an_object_of_a_missing_chart_names_the_chart(write: Write) -> None:
    code = """
import pulumi_kubernetes as k8s

chart = k8s.helm.v3.Chart("wiki", k8s.helm.v3.ChartOpts(chart="wiki"))
chart.resources.apply(lambda found: found["v1/Service:default/wiki"])
"""
    assert complaint(write(**python_program(code))).splitlines()[-1] == (
        "  v3.Chart wiki: the chart wiki is not on disk. To rehearse it: helm pull wiki --untar, "
        "then add --chart wiki=wiki"
    )


@pytest.mark.parametrize(
    "resource",
    [
        "{type: 'kubernetes:helm.sh/v4:Chart', properties: {chart: ../../elsewhere}}",
        "{type: 'kubernetes:helm.sh/v3:Release', properties: {chart: ../../elsewhere}}",
        "{type: 'kubernetes:yaml/v2:ConfigFile', properties: {file: ../../elsewhere/all.yaml}}",
        "{type: 'kubernetes:kustomize/v2:Directory', properties: {directory: ../../elsewhere}}",
        "{type: 'kubernetes:helm.sh/v3:Release', properties: {chart: ../chart, valueYamlFiles: [../../elsewhere]}}",
    ],
)
def test_files_outside_of_the_project_are_not_read_for_a_program(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resource: str
) -> None:
    """Not even if the current folder is the user's home, which then does not count as the project."""
    here = tmp_path / "here"
    path = write(
        **{f"here/{name}": content for name, content in (CHART | yaml_program(f"  c: {resource}\n")).items()},
        **{"here/.git": "", "elsewhere/Chart.yaml": CHART["chart/Chart.yaml"], "elsewhere/all.yaml": "{}"},
    )
    for home, cwd in ((tmp_path, here), (here, here)):
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.chdir(cwd)
        assert f"/../../elsewhere is outside of {here}; " in complaint(path).replace("/all.yaml", "")


def test_a_reference_through_a_variable_is_a_dependency(write: Write) -> None:
    resources = """  first: {type: 'kubernetes:core/v1:ConfigMap', properties: {metadata: {name: locks}}}
  second:
    type: kubernetes:core/v1:ConfigMap
    properties: {metadata: {name: "${names.own}"}, data: {of: "${others}"}}
variables:
  others: "after ${names.first}"
  names: {own: gates, first: "${first.metadata.name}"}
"""
    program = registered(write(**yaml_program(resources)))
    assert edges(program)["ConfigMap second"] == ["ConfigMap first"]
    assert program.registrations[-1].object == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gates", "namespace": "default"},
        "data": {"of": "after locks"},
    }


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        (
            "  a: {type: 'kubernetes:core/v1:ConfigMap', properties: {metadata: {name: '${b.metadata.name}'}}}\n",
            'app/Pulumi.yaml:4: resource or variable named "b" could not be found',
        ),
        (
            "  a: {type: 'kubernetes:core/v1:ConfigMap'}\nvariables:\n  b: ${c}\n  c: ${b}\n",
            "app/Pulumi.yaml:6: circular dependency of variable 'b' transitively on itself",
        ),
    ],
)
def test_undefined_and_circular_names_are_refused(write: Write, resources: str, said: str) -> None:
    assert complaint(write(**yaml_program(resources))) == said
