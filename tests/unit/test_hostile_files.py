"""Inputs that name files outside of themselves: none of them is read, and no request leaves the machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from chartfolder import CHART, write
from kustomizing import needs_kustomize

from seatrial.fleet.folder import tasks
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.model.resource import Body
from seatrial.plan.plans import plans
from seatrial.sources.argocd.applications import render_application
from seatrial.sources.argocd.applicationsets import applications_of
from seatrial.sources.charts.chart import open_chart
from seatrial.sources.flux.building import FluxSources, read_folder, values_of
from seatrial.sources.manifests import kustomize
from seatrial.sources.repos import Repos, repos_of

URL = "https://git.example/team/web.git"
OUTSIDE = {
    "secret.yaml": "token: hunter2\n",
    "object.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hunter2}\n",
}
TEMPLATE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata: {token: {{ .Values.token | quote }}}\n"


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a chart, and files beside it that it must not read."""
    folder = tmp_path / "repository"
    write(tmp_path, OUTSIDE)
    write(folder, {"chart/Chart.yaml": CHART, "chart/values.yaml": "token: none\n", "chart/templates/a.yaml": TEMPLATE})
    write(folder, {"plain/a.yaml": OUTSIDE["object.yaml"].replace("hunter2", "fine")})
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "name", ["../../secret.yaml", "/../secret.yaml", "link.yaml", "*.yaml", "$other/../secret.yaml"]
)
def test_argo_cd_value_files_stay_in_the_repository(repository: Path, name: str) -> None:
    (repository / "chart/link.yaml").symlink_to("../../secret.yaml")
    assert "outside" in _complaint(lambda: _application({"valueFiles": [name]}))


def test_argo_cd_file_parameters_stay_in_the_repository() -> None:
    parameters = [{"name": "token", "path": "../../secret.yaml"}]
    assert "outside" in _complaint(lambda: _application({"fileParameters": parameters}))


def test_argo_cd_reads_regular_files_only(repository: Path) -> None:
    os.mkfifo(repository / "pipe.yaml")
    assert "not a regular file" in _complaint(lambda: _application({"valueFiles": ["/pipe.yaml"]}))


def test_argo_cd_folders_overrides_and_generators_do_not_follow_links_out_of_the_repository(repository: Path) -> None:
    (repository / "plain/b.yaml").symlink_to(repository.parent / "object.yaml")
    assert "outside" in _complaint(lambda: _application({}, "plain"))
    (repository / "chart/.argocd-source.yaml").symlink_to(repository.parent / "secret.yaml")
    assert "outside" in _complaint(lambda: _application({}))
    generator = {"git": {"repoURL": URL, "files": [{"path": "plain/b.yaml"}]}}
    template: Body = {"metadata": {"name": "{{metadata.name}}"}, "spec": {}}
    fleet: Body = {
        "kind": "ApplicationSet",
        "metadata": {"name": "a"},
        "spec": {"generators": [generator], "template": template},
    }
    assert "outside" in _complaint(lambda: list(applications_of(fleet, _repos())))


@pytest.mark.parametrize("name", ["../../secret.yaml", "{top}/secret.yaml", "link.yaml"])
def test_flux_values_files_stay_in_the_repository(repository: Path, name: str) -> None:
    (repository / "chart/link.yaml").symlink_to("../../secret.yaml")
    chart = {"spec": {"valuesFiles": [name.format(top=repository.parent)]}}
    known = FluxSources(_repos(), {}, ".", {})
    release: Body = {"metadata": {"name": "a"}, "spec": {"chart": chart}}
    assert "outside" in _complaint(lambda: values_of(release, open_chart("chart", "."), known))


def test_flux_folders_do_not_follow_links_out_of_the_repository_or_in_circles(repository: Path) -> None:
    (repository / "plain/b.yaml").symlink_to(repository.parent / "object.yaml")
    assert "outside" in _complaint(lambda: read_folder("plain"))
    (repository / "plain/b.yaml").unlink()
    (repository / "plain/again").symlink_to(".")
    assert "contains it" in _complaint(lambda: read_folder("plain"))


def test_ci_values_are_regular_files_of_the_chart(repository: Path) -> None:
    (repository / "chart/ci").mkdir()
    (repository / "chart/.helmignore").write_text("ci/\n")
    (repository / "chart/ci/a-values.yaml").symlink_to(repository.parent / "secret.yaml")
    assert "outside" in _complaint(lambda: open_chart("chart"))
    (repository / "chart/ci/a-values.yaml").unlink()
    os.mkfifo(repository / "chart/ci/a-values.yaml")
    assert "not a regular file" in _complaint(lambda: open_chart("chart"))


def test_ci_values_do_not_lead_out_of_the_repository_into_the_current_folder(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / ".git").mkdir()
    (repository / "chart/ci").mkdir()
    (repository / "chart/.helmignore").write_text("ci/\n")
    (repository / "chart/ci/a-values.yaml").symlink_to(repository.parent / "secret.yaml")
    monkeypatch.chdir(repository.parent)
    assert "outside" in _complaint(lambda: open_chart("repository/chart"))


def test_helmignore_is_a_file_of_the_chart(repository: Path) -> None:
    (repository / "chart/.helmignore").symlink_to(repository.parent / "secret.yaml")
    assert "outside" in _complaint(lambda: open_chart("chart"))


def test_file_dependencies_stay_in_the_project(repository: Path) -> None:
    write(repository.parent, {"library/Chart.yaml": CHART.replace("demo", "library")})
    listed = "dependencies: [{name: library, version: 1.0.0, repository: file://../../library}]\n"
    (repository / "chart/Chart.yaml").write_text(CHART + listed)
    assert "outside" in _complaint(lambda: open_chart("chart"))


def test_file_dependencies_between_subcharts_are_inside_of_the_chart(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From any folder, and outside of any checkout."""
    listed = "dependencies: [{name: common, version: 1.0.0, repository: file://../common}]\n"
    write(repository / "chart/charts", {"sub/Chart.yaml": CHART.replace("demo", "sub") + listed})
    write(repository / "chart/charts", {"common/Chart.yaml": CHART.replace("demo", "common")})
    monkeypatch.chdir("/")
    assert open_chart(f"{repository}/chart").missing_dependencies == ()
    write(repository.parent, {"library/Chart.yaml": CHART.replace("demo", "library")})
    listed = listed.replace("common", "library").replace("../", "../../../../")
    write(repository / "chart/charts", {"sub/Chart.yaml": CHART.replace("demo", "sub") + listed})
    assert "outside" in _complaint(lambda: open_chart(f"{repository}/chart"))


def test_file_dependencies_of_an_old_copy_stay_in_the_copy_of_the_project(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = "dependencies: [{name: library, version: 1.0.0, repository: file://../library}]\n"
    for folder in (repository / "charts", repository.parent / "copy/charts", repository.parent / "else"):
        write(folder, {"app/Chart.yaml": CHART + listed, "library/Chart.yaml": CHART.replace("demo", "library")})
    (repository / ".git").mkdir()
    old = str(repository.parent / "copy/charts/app")
    assert open_chart(old, "charts/app").missing_dependencies == ()
    assert "outside" in _complaint(lambda: open_chart(old))
    assert "outside" in _complaint(lambda: open_chart(str(repository.parent / "else/app"), "charts/app"))
    outside = listed.replace("../library", "../../../library")
    write(repository.parent, {"library/Chart.yaml": CHART.replace("demo", "library")})
    write(repository.parent, {"copy/charts/app/Chart.yaml": CHART + outside})
    assert "outside" in _complaint(lambda: open_chart(old, "charts/app"))
    monkeypatch.setenv("HOME", f"{repository.parent}/copy/me")
    write(repository.parent, {"copy/charts/app/Chart.yaml": CHART + listed})
    assert "outside" in _complaint(lambda: open_chart(old, "charts/app"))


def test_file_dependencies_between_charts_of_a_folder_are_inside(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = "dependencies: [{name: library, version: 1.0.0, repository: file://../library}]\n"
    write(repository, {"charts/app/Chart.yaml": CHART + listed, "charts/app/templates/a.yaml": TEMPLATE})
    write(repository, {"charts/library/Chart.yaml": CHART.replace("demo", "library") + "type: library\n"})
    monkeypatch.chdir("/")
    (task,) = tasks(CheckOptions((f"{repository}/charts",)))
    assert next(plans(task)).case.missing_dependencies == ()
    assert "outside" in _complaint(lambda: next(plans(CheckOptions(task.inputs))))


@needs_kustomize
@pytest.mark.parametrize(
    "body",
    [
        "resources: ['http://127.0.0.1:{port}/x.yaml']",
        "resources: ['http://127.0.0.1:{port}/team/base.git?ref=main']",
        "bases: ['git::http://127.0.0.1:{port}/team/base']",
        "components: ['127.0.0.1:{port}/team/base?ref=main']",
        "patches: [{{path: 'http://127.0.0.1:{port}/patch.yaml', target: {{kind: ConfigMap}}}}]\nresources: [a.yaml]",
        "resources: [deep]",
        "transformers: [patch.yaml]\nresources: [a.yaml]",
    ],
)
def test_kustomize_fetches_nothing(repository: Path, body: str) -> None:
    transformer = (
        "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {{name: a}}\npath: http://127.0.0.1:{port}/p.yaml\n"
    )
    with _Listener() as listener:
        port = listener.server.server_port
        write(
            repository / "plain",
            {"kustomization.yaml": body.format(port=port), "patch.yaml": transformer.format(port=port)},
        )
        write(repository / "plain", {"deep/kustomization.yaml": f"resources: ['http://127.0.0.1:{port}/x.yaml']\n"})
        complaint = _complaint(lambda: kustomize.build(Path("plain"), "a", "default"))
    assert listener.hits == []
    assert complaint.startswith("plain")


@needs_kustomize
def test_kustomize_bases_stay_in_the_project(repository: Path) -> None:
    write(
        repository.parent, {"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": OUTSIDE["object.yaml"]}
    )
    write(repository, {"plain/kustomization.yaml": "resources: [../../base]\n"})
    assert "outside" in _complaint(lambda: kustomize.build(Path("plain"), "a", "default"))


class _Listener:
    """A server on the loopback device that counts requests."""

    def __init__(self) -> None:
        hits: list[str] = []
        self.hits = hits

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hits.append(self.path)
                self.send_error(404)

            def log_message(self, *words: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> _Listener:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def _application(helm: Body, path: str = "chart") -> None:
    sources = [{"repoURL": URL, "path": path, **({"helm": helm} if helm else {})}, {"repoURL": URL, "ref": "other"}]
    application = {"metadata": {"name": "web"}, "spec": {"sources": sources, "destination": {"namespace": "web"}}}
    raise CannotContinue(render_application(application, _repos()).error or "hunter2")


def _repos() -> Repos:
    return repos_of([f"{URL}=."])


def _complaint(act: Callable[[], object]) -> str:
    with pytest.raises(CannotContinue) as caught:
        act()
    assert "hunter2" not in str(caught.value)
    return str(caught.value)
