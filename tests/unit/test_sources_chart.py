from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.helm.sdk import Chart, Config, HelmContext, HelmError, install
from seatrial.model.errors import CannotContinue, NothingToCheck
from seatrial.model.release import Release
from seatrial.model.resource import Body, Place
from seatrial.sources import line_at
from seatrial.sources.charts.chart import ChartSource, open_chart, with_texts
from seatrial.sources.charts.rendering import render
from seatrial.sources.places import place_of

NOWHERE = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {}}]
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _release(chart: ChartSource, values: Body | None = None) -> Release:
    return render(chart, values or {}, release="r", namespace="ns")


def _files(chart: ChartSource, values: Body | None = None) -> dict[str, str]:
    return {
        resource.ref.name: str(place_of(resource.place("metadata", "name")))
        for resource in _release(chart, values).resources
    }


def _complaint(path: str) -> str:
    with pytest.raises(CannotContinue) as complaint:
        open_chart(path)
    return str(complaint.value)


def _refusal(chart: Chart) -> str:
    """The error of installing this chart; without a cluster there always is one."""
    config = Config(kubeconfig_content=NOWHERE, namespace="ns", storage_driver="memory")
    with config, HelmContext() as context, pytest.raises(HelmError) as refusal:
        install(config, context, chart, "r", {})
    return str(refusal.value)


def _tgz(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


UMBRELLA = """\
apiVersion: v2
name: umbrella
version: 1.0.0
dependencies:
  - name: vendored
    version: 0.1.0
    repository: https://charts.example
    condition: vendored.enabled
  - name: vendored
    alias: second
    version: 0.1.0
    repository: https://charts.example
    tags: [more]
  - name: packed
    version: 2.0.0
    repository: https://charts.example
  - name: gone   # `helm dependency build` was not run
    version: 1.x
    repository: https://charts.example
  - name: beside
    version: 0.1.0
    repository: file://../beside
"""


def _umbrella(tmp_path: Path) -> None:
    packed = {"packed/Chart.yaml": b"apiVersion: v2\nname: packed\nversion: 2.0.0\n"}
    packed["packed/templates/p.yaml"] = b"# one\n" + config_map("packed").encode()
    beside = "dependencies:\n  - {name: further, version: 1.0.0, repository: 'file://../further'}\n"
    beside += "  - {name: lost, version: 3.0.0, repository: 'https://charts.example'}\n"
    write(
        tmp_path,
        {
            "umbrella/Chart.yaml": UMBRELLA,
            "umbrella/values.yaml": "tags: {more: false}\n",
            "umbrella/templates/u.yaml": config_map("umbrella"),
            "umbrella/charts/folder/Chart.yaml": "apiVersion: v2\nname: vendored\nversion: 0.1.0\n",
            "umbrella/charts/folder/templates/v.yaml": config_map("{{ .Chart.Name }}"),
            "beside/Chart.yaml": f"apiVersion: v2\nname: beside\nversion: 0.1.0\n{beside}",
            "beside/templates/b.yaml": config_map("beside"),
            "beside/notes.tmp": "ignored",
            "beside/.helmignore": "*.tmp\n",
            "further/Chart.yaml": "apiVersion: v2\nname: further\nversion: 1.0.0\n",
            "further/templates/f.yaml": config_map("further"),
        },
    )
    (tmp_path / "umbrella/charts/packed-2.0.0.tgz").write_bytes(_tgz(packed))


def test_an_umbrella_chart_has_dependencies_in_charts_and_in_file_folders(tmp_path: Path) -> None:
    _umbrella(tmp_path)
    chart = open_chart("./umbrella")
    assert _files(chart) == {
        "beside": "beside/templates/b.yaml:4",
        "further": "further/templates/f.yaml:4",
        "packed": "umbrella/charts/packed-2.0.0.tgz:templates/p.yaml:5",
        "vendored": "umbrella/charts/folder/templates/v.yaml:4",
        "umbrella": "umbrella/templates/u.yaml:4",
    }
    assert chart.missing_dependencies == (
        "gone 1.x (https://charts.example)",
        "beside/lost 3.0.0 (https://charts.example)",
    )
    assert (chart.path, chart.name, chart.version) == ("./umbrella", "umbrella", "1.0.0")


def test_helm_evaluates_conditions_tags_and_aliases_on_every_render(tmp_path: Path) -> None:
    _umbrella(tmp_path)
    chart = open_chart("umbrella")
    without = _files(chart, {"vendored": {"enabled": False}})
    with_both = _files(chart, {"tags": {"more": True}})
    assert "vendored" not in without
    assert with_both["second"] == with_both["vendored"] == "umbrella/charts/folder/templates/v.yaml:4"


def test_a_chart_with_missing_dependencies_can_be_installed(tmp_path: Path) -> None:
    _umbrella(tmp_path)
    refused = "found in Chart.yaml, but missing in charts/ directory: gone, beside"
    with Chart.load("umbrella") as as_it_is:
        assert refused in _refusal(as_it_is)
    with open_chart("umbrella").load() as trimmed:
        assert "unreachable" in _refusal(trimmed)


def test_only_missing_dependencies_are_removed_from_the_list(tmp_path: Path) -> None:
    _umbrella(tmp_path)
    written = open_chart("umbrella").files.files["Chart.yaml"].decode()
    gone = written.index("  - name: beside")
    assert written == UMBRELLA[:gone] + UMBRELLA[UMBRELLA.index("  - name: beside") :]


def test_an_old_chart_lists_its_dependencies_in_requirements_yaml(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "old/Chart.yaml": "apiVersion: v1\nname: old\nversion: 1.0.0\n",
            "old/requirements.yaml": "dependencies:\n- name: gone\n  version: 1.0.0\n  repository: https://e.example\n",
            "old/templates/o.yaml": config_map("old"),
        },
    )
    chart = open_chart("old")
    assert chart.missing_dependencies == ("gone 1.0.0 (https://e.example)",)
    with chart.load() as trimmed:
        assert "unreachable" in _refusal(trimmed)


def test_cyclic_dependencies_are_refused(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        dependency = f"dependencies:\n- name: {other}\n  version: 1.0.0\n  repository: file://../{other}\n"
        write(tmp_path, {f"{one}/Chart.yaml": f"apiVersion: v2\nname: {one}\nversion: 1.0.0\n{dependency}"})
    assert _complaint("a") == "b/Chart.yaml:5: the dependency a is a cycle: it leads back to a"


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [("1.0.0", True), ("^1.0.0", True), ("1.x", True), (">0.9 <2", True), ("2.x", False), ("new", False)],
)
def test_a_file_dependency_must_satisfy_the_version_constraint(tmp_path: Path, wanted: str, fits: bool) -> None:
    dependency = f"dependencies:\n- name: b\n  version: '{wanted}'\n  repository: file://../leaf\n"
    write(
        tmp_path,
        {
            "a/Chart.yaml": f"apiVersion: v2\nname: a\nversion: 1.0.0\n{dependency}",
            "leaf/Chart.yaml": "apiVersion: v2\nname: b\nversion: 1.0.0\n",
        },
    )
    if fits:
        assert open_chart("a").missing_dependencies == ()
        return
    said = f"the dependency b needs version {wanted}, but leaf has 1.0.0; helm dependency build would refuse it"
    assert _complaint("a") == f"a/Chart.yaml:5: {said}"


def test_nothing_is_written_to_the_chart_folder(tmp_path: Path) -> None:
    _umbrella(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    _files(open_chart("umbrella"))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_ci_values_are_found_even_if_helmignore_excludes_them(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "c/Chart.yaml": CHART,
            "c/.helmignore": "ci/\n",
            "c/ci/ha-values.yaml": "ha: true\n",
            "c/ci/a-values.yaml": "a: true\n",
            "c/ci/notes.yaml": "",
        },
    )
    cases = open_chart("./c").cases
    assert [(name, text.path, text.content) for name, text in cases.items()] == [
        ("ci/a-values.yaml", "c/ci/a-values.yaml", "a: true\n"),
        ("ci/ha-values.yaml", "c/ci/ha-values.yaml", "ha: true\n"),
    ]


def test_text_can_replace_files_of_a_chart(tmp_path: Path) -> None:
    _umbrella(tmp_path)
    chart = open_chart("umbrella")
    tried = with_texts(
        chart,
        {
            "umbrella/templates/u.yaml": config_map("changed"),
            "umbrella/templates/new.yaml": config_map("new"),
            "umbrella/charts/packed-2.0.0.tgz:templates/p.yaml": config_map("repacked"),
            "beside/templates/b.yaml": config_map("moved"),
            "umbrella/Chart.yaml": UMBRELLA,
            "elsewhere/x.yaml": "",
        },
    )
    assert sorted(_files(tried)) == ["changed", "further", "moved", "new", "repacked", "vendored"]
    assert tried.missing_dependencies == chart.missing_dependencies
    assert sorted(_files(chart)) == ["beside", "further", "packed", "umbrella", "vendored"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"templates/x.yaml": ""}, "c: open the chart: Chart.yaml file is missing"),
        ({"Chart.yaml": "name: c\n"}, "c: open the chart: validation: chart.metadata.version is required"),
        (
            {"Chart.yaml": "name: c\nversion: 1: 2\n"},
            "c/Chart.yaml:2: cannot read the YAML: mapping values are not allowed in this context",
        ),
        (
            {"Chart.yaml": CHART, "values.yaml": "a: b: c\n"},
            "c: open the chart: cannot load values.yaml: cannot unmarshal yaml document: "
            "error converting YAML to JSON: yaml: mapping values are not allowed in this context",
        ),
        (
            {"Chart.yaml": CHART, "charts/s/templates/a.yaml": ""},
            "c: open the chart: error unpacking subchart s in demo: Chart.yaml file is missing",
        ),
        (
            {"Chart.yaml": CHART, "charts/s.tgz": "no archive"},
            "c/charts/s.tgz: read the chart archive: not a gzipped file (b'no')",
        ),
    ],
)
def test_an_input_that_is_not_a_chart_is_one_sentence(files: dict[str, str], sentence: str, tmp_path: Path) -> None:
    write(tmp_path / "c", files)
    assert _complaint("./c") == sentence


def test_a_library_chart_has_nothing_to_check(tmp_path: Path) -> None:
    write(tmp_path, {"lib/Chart.yaml": CHART + "type: library\n"})
    with pytest.raises(NothingToCheck, match=r"^lib: demo is a library chart, which has no objects of its own;"):
        open_chart("lib")


def test_an_archive_equals_its_folder(tmp_path: Path) -> None:
    members = {"demo/Chart.yaml": CHART, "demo/templates/cm.yaml": config_map("a"), "demo/ci/x-values.yaml": "a: 1\n"}
    (tmp_path / "demo-1.0.0.tgz").write_bytes(_tgz({name: text.encode() for name, text in members.items()}))
    chart = open_chart("./demo-1.0.0.tgz")
    assert _files(chart) == {"a": "demo-1.0.0.tgz:templates/cm.yaml:4"}
    assert list(chart.cases) == ["ci/x-values.yaml"]


def test_a_line_in_a_nested_archive_can_be_read_again(tmp_path: Path) -> None:
    inner = _tgz({"s/Chart.yaml": CHART.encode(), "s/templates/a.yaml": config_map("a").encode()})
    (tmp_path / "c.tgz").write_bytes(_tgz({"c/Chart.yaml": CHART.encode(), "c/charts/s.tgz": inner}))
    assert line_at(Place("c.tgz:charts/s.tgz:templates/a.yaml", 4)) == "  name: a"
    assert line_at(Place("c.tgz:Chart.yaml", 2)) == "name: demo"
    assert line_at(Place("c.tgz:nope.yaml", 2)) is None


GOOD = {"c/Chart.yaml": CHART.encode()}
ARCHIVES = {
    "not zipped": (b"apiVersion: v2\n", "open the chart: gzip: invalid header"),
    "cut off": (_tgz(GOOD)[:-40], "open the chart: unexpected EOF"),
    "a way out": (_tgz({**GOOD, "c/../../x": b""}), "open the chart: chart illegally references parent directory"),
    "absolute": (_tgz({**GOOD, "c//etc/x": b""}), "open the chart: chart illegally contains absolute paths"),
    "a large file": (
        _tgz({**GOOD, "c/big": bytes(5 * 1024 * 1024 + 1)}),
        'open the chart: decompressed chart file "c/big" is larger than the maximum file size 5242880',
    ),
    "a bomb": (
        _tgz({**GOOD, **{f"c/{n}": bytes(5 * 1024 * 1024) for n in range(21)}}),
        "read the chart archive: decompressed chart is larger than the maximum size 104857600",
    ),
}


@pytest.mark.parametrize("what", ARCHIVES)
def test_an_archive_that_helm_refuses_is_refused_with_its_message(what: str, tmp_path: Path) -> None:
    data, sentence = ARCHIVES[what]
    (tmp_path / "c.tgz").write_bytes(data)
    assert _complaint("c.tgz") == f"c.tgz: {sentence}"


INNER = {
    "a way out": (_tgz({"s/../x": b"", "s/a/../../x": b""}), "chart illegally references parent directory"),
    "absolute": (_tgz({"s//etc/x": b""}), "chart illegally contains absolute paths"),
    "a drive": (_tgz({"s/c:/x": b""}), "chart contains illegally named files"),
    "outside": (_tgz({"x": b""}), 'chart illegally contains content outside the base directory: "x"'),
    "a large file": (
        _tgz({"s/big": bytes(5 * 1024 * 1024 + 1)}),
        'decompressed chart file "s/big" is larger than the maximum file size 5242880',
    ),
    "a bomb": (
        gzip.compress(bytes(101 * 1024 * 1024), 9),
        "decompressed chart is larger than the maximum size 104857600",
    ),
}


@pytest.mark.parametrize("what", INNER)
def test_a_nested_archive_has_the_same_limits(what: str, tmp_path: Path) -> None:
    data, sentence = INNER[what]
    write(tmp_path, {"c/Chart.yaml": CHART, "c/charts/none": ""})
    (tmp_path / "c/charts/none").unlink()
    (tmp_path / "c/charts/s-1.tgz").write_bytes(data)
    assert _complaint("c") == f"c/charts/s-1.tgz: read the chart archive: {sentence}"


def test_symlinks_may_point_inside_the_project_but_not_out_of_it(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project, {"c/Chart.yaml": CHART, "shared/t.yaml": config_map("shared"), ".git/HEAD": ""})
    write(tmp_path, {"secret.yaml": config_map("secret")})
    (project / "c/templates").symlink_to("../shared")
    assert list(_files(open_chart("project/c"))) == ["shared"]
    (project / "c/leak").symlink_to("../../secret.yaml")
    sentence = f"the symlink points to {tmp_path}/secret.yaml, outside of {project}; seatrial does not follow it"
    assert _complaint("project/c") == f"project/c/leak: {sentence}"
    write(project, {"c/.helmignore": "leak\n"})
    assert list(_files(open_chart("project/c"))) == ["shared"]


def test_without_a_repository_symlinks_may_point_inside_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"c/Chart.yaml": CHART, "shared/t.yaml": config_map("shared")})
    (tmp_path / "c/templates").symlink_to("../shared")
    assert list(_files(open_chart("c"))) == ["shared"]
    monkeypatch.chdir("/")
    assert _complaint(f"{tmp_path}/c").endswith(f"outside of {tmp_path}/c; seatrial does not follow it")


@pytest.mark.parametrize("target", ["../../LICENSE", "nowhere", "/etc/passwd"])
def test_a_linked_license_or_readme_that_leads_out_is_skipped(target: str, tmp_path: Path) -> None:
    write(tmp_path, {"LICENSE": "free", "project/.git/HEAD": "", "project/c/Chart.yaml": CHART})
    write(tmp_path, {"project/c/templates/a.yaml": config_map("a"), "project/c/charts/s/Chart.yaml": CHART})
    for name in ("LICENSE", "README.md", "charts/s/LICENSE"):
        (tmp_path / "project/c" / name).symlink_to(target)
    source = open_chart("project/c")
    assert list(_files(source)) == ["a"]
    assert not {"LICENSE", "README.md"} & {*source.files.files, *source.files.subcharts["s"].files}
    (tmp_path / "project/c/templates/README.md").symlink_to(target)
    assert "project/c/templates/README.md: " in _complaint("project/c")


def test_a_linked_readme_of_the_repository_is_read(tmp_path: Path) -> None:
    write(tmp_path, {".git/HEAD": "", "README.md": "Shop", "c/Chart.yaml": CHART})
    write(tmp_path, {"c/templates/a.yaml": config_map('{{ .Files.Get "README.md" | lower }}')})
    (tmp_path / "c/README.md").symlink_to("../README.md")
    assert list(_files(open_chart("c"))) == ["shop"]


def test_a_cyclic_symlink_is_refused(tmp_path: Path) -> None:
    write(tmp_path, {"c/Chart.yaml": CHART, "c/templates/a.yaml": config_map("a")})
    (tmp_path / "c/templates/again").symlink_to("..")
    assert _complaint("c") == "c/templates/again: the symlink points to a folder that contains it"


def test_irregular_or_too_large_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"c/Chart.yaml": CHART})
    with (tmp_path / "c/big").open("wb") as file:
        file.truncate(5 * 1024 * 1024 + 1)
    assert _complaint("c") == "c/big: read the chart: larger than the maximum file size 5242880"
    (tmp_path / "c/big").unlink()
    os.mkfifo(tmp_path / "c/pipe")
    assert _complaint("c") == "c/pipe: read the chart: cannot load irregular file"
    (tmp_path / "c/pipe").unlink()
    (tmp_path / "c/dangling").symlink_to("nowhere")
    assert _complaint("c") == "c/dangling: read the chart: no such file or directory"


def test_helm_is_given_no_file_that_nothing_reads(tmp_path: Path) -> None:
    read = {"Chart.yaml": CHART, "values.yaml": "a: 1\n", "templates/a.yaml": config_map("a"), "crds/c.yaml": ""}
    inner = {f"charts/inner/{name}": text for name, text in read.items()}
    write(tmp_path, {**read, **inner, "README.md": "long", "docs/more.md": "", "charts/inner/README.md": "longer"})
    chart = open_chart(str(tmp_path))
    assert _packed(chart.as_deployed({})) == sorted({*read, *inner})
    assert _packed(chart.as_deployed({"text": '{{ .Files.Get "README.md" }}'})) == _packed(chart)
    assert "README.md" in _packed(chart)
    write(tmp_path, {"charts/inner/templates/b.yaml": '{{ .Files.Get "README.md" }}'})
    assert "README.md" in _packed(open_chart(str(tmp_path)).as_deployed({}))


def _packed(chart: ChartSource) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(chart.archive)) as archive:
        return sorted(member.name.partition("/")[2] for member in archive)
