"""Charts of Pulumi programs, deployed with another resource: what changes, and what is left to the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.fix.fixers.unknown_field import without_line
from seatrial.fix.program_charts import CHART, RELEASE, ChartInProgram, deployed_with
from seatrial.fix.proposal import ByHand
from seatrial.model.resource import Place
from seatrial.text.source import edited


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def after(file: str, content: str, other: ChartInProgram, line: int = 1) -> str:
    Path(file).write_text(content)
    change = deployed_with(Place(file, line), other)
    return change.why if isinstance(change, ByHand) else edited(change[0].text, [one.edit for one in change]).content


@pytest.mark.parametrize(
    ("before", "chart", "release"),
    [
        (
            'new k8s.helm.v3.Chart("a", { path: "./a" }, { parent: this });',
            'new k8s.helm.v4.Chart("a", { chart: "./a" }, { parent: this });',
            'new k8s.helm.v3.Release("a", { name: "a", chart: "./a" }, { parent: this });',
        ),
        (
            'new helm.v3.Chart("a", {\n    chart: "a", // ours\n    fetchOpts: { repo: "https://a" },\n});',
            'new helm.v4.Chart("a", {\n    chart: "a", // ours\n    repositoryOpts: { repo: "https://a" },\n});',
            'new helm.v3.Release("a", {\n    name: "a",\n    chart: "a", // ours\n'
            '    repositoryOpts: { repo: "https://a" },\n});',
        ),
        (
            'new k8s.helm.v3.Chart("a", { path, namespace });',
            'new k8s.helm.v4.Chart("a", { chart: path, namespace });',
            'new k8s.helm.v3.Release("a", { name: "a", chart: path, namespace });',
        ),
        (
            'new k8s.helm.v4.Chart("a", { chart: "./a", name: "b" });',
            'new k8s.helm.v4.Chart("a", { chart: "./a", name: "b" });',
            'new k8s.helm.v3.Release("a", { chart: "./a", name: "b" });',
        ),
    ],
)
def test_typescript_keeps_its_properties(before: str, chart: str, release: str) -> None:
    assert (after("a.ts", before, CHART), after("a.ts", before, RELEASE)) == (chart, release)


@pytest.mark.parametrize(
    ("before", "chart", "release"),
    [
        (
            'Chart("a", LocalChartOpts(path="./a", values={"b": 1}), opts=o)\n',
            'Chart("a", chart="./a", values={"b": 1}, opts=o)\n',
            'Release("a", name="a", chart="./a", values={"b": 1}, opts=o)\n',
        ),
        (
            'Chart(\n    "a",\n    LocalChartOpts(\n        path="./a",\n        values={\n            "b": 1,\n'
            "        },\n    ),\n)\n",
            'Chart(\n    "a",\n    chart="./a",\n    values={\n        "b": 1,\n    },\n)\n',
            'Release(\n    "a",\n    name="a",\n    chart="./a",\n    values={\n        "b": 1,\n    },\n)\n',
        ),
    ],
)
def test_python_takes_the_properties_out_of_their_class(before: str, chart: str, release: str) -> None:
    head = "from pulumi_kubernetes.helm.v3 import Chart, LocalChartOpts\n\n"
    assert after("a.py", head + before, CHART, 3) == f"from pulumi_kubernetes.helm.v4 import Chart\n\n{chart}"
    assert after("a.py", head + before, RELEASE, 3) == f"from pulumi_kubernetes.helm.v3 import Release\n\n{release}"


def test_python_by_the_name_of_a_module() -> None:
    before = 'k8s.helm.v3.Chart("a", k8s.helm.v3.ChartOpts(chart="a", fetch_opts=FetchOpts(repo="https://a")))\n'
    assert after("a.py", before, CHART) == 'k8s.helm.v4.Chart("a", chart="a", repository_opts={"repo": "https://a"})\n'
    before = 'k8s.helm.v4.Chart("a", chart="./a", opts=o)\n'
    assert after("a.py", before, RELEASE) == 'k8s.helm.v3.Release("a", name="a", chart="./a", opts=o)\n'


@pytest.mark.parametrize(
    ("file", "before", "why"),
    [
        ("a.ts", 'new k8s.helm.v3.Chart("a", given);', "takes its properties from elsewhere"),
        ("a.ts", 'new k8s.helm.v3.Chart("a", { ...given });', "takes its properties from elsewhere"),
        ("a.ts", 'new Chart("a", { path: "a" });', "does not say of which version Chart is"),
        (
            "a.ts",
            'new k8s.helm.v3.Chart("a", { path: "a", transformations: [] });',
            "has transformations, which other resources do not have",
        ),
        (
            "a.ts",
            'new k8s.helm.v3.Chart("a", { chart: "a", fetchOpts: { repo: "b", home: "c" } });',
            "has fetchOpts with more than a repo",
        ),
        ("a.py", 'v3.Chart("a", options)\n', "takes its properties from elsewhere"),
        (
            "a.py",
            'Chart("a", ChartOpts(chart="a"))\nfrom pulumi_kubernetes.helm.v3 import Chart, ChartOpts\nChart("b", x)\n',
            "imports Chart, which the program also uses elsewhere",
        ),
    ],
)
def test_what_is_not_certain_is_left_to_the_user(file: str, before: str, why: str) -> None:
    assert after(file, before, CHART) == f"{file}:1 {why}"


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ("    fsGroup: 1000, // ours\n", ""),
        ('    "fsGroup": 1,\n', ""),
        ("    fsGroup: 1,\n    fsGroup: 2,\n", None),
    ],
)
def test_a_value_on_a_line_of_its_own_is_removed(values: str, left: str | None) -> None:
    before = 'new k8s.helm.v4.Chart("a", {\n    chart: "./a",\n%s});\nother({ fsGroup: 1 });\n'
    Path("a.ts").write_text(before % values)
    change = without_line(Place("a.ts", 1), ("securityContext", "fsGroup"))
    after = None if isinstance(change, ByHand) else edited(change[0].text, [one.edit for one in change]).content
    assert after == (None if left is None else before % left)
