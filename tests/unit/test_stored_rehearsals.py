"""Stored rehearsals: what is written is read back whole, and checking it reports what a check reports."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from chartfolder import CHART, config_map, write
from msgspec.structs import replace

from seatrial.check import check, check_stored, run_to_store
from seatrial.cli import main
from seatrial.model.finding import Finding
from seatrial.model.masking import without_secrets
from seatrial.model.options import CheckOptions
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import SCHEDULES, Event, Schedule
from seatrial.play import stored
from seatrial.report import FORMATS, full
from seatrial.report.page import Page
from seatrial.sources.places import place_of

HOOK = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: demo
  annotations:
    {{- include "demo.hook" . | nindent 4 }}
"""
HELPERS = """\
{{ define "demo.hook" -}}
helm.sh/hook: pre-install,pre-upgrade
{{- end }}
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: demo, namespace: argocd}
spec:
  project: default
  source: {repoURL: https://git.example/demo, path: app}
  destination: {server: https://kubernetes.default.svc, namespace: default}
"""
KUSTOMIZATION = """\
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: flux-system}
spec:
  interval: 10m
  path: ./app
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
"""
PROGRAM = """\
name: demo
runtime: yaml
resources:
  config:
    type: kubernetes:core/v1:ConfigMap
    properties: {metadata: {name: demo}, data: {a: "1"}}
"""


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "v1/Chart.yaml": CHART,
        "v1/templates/cm.yaml": config_map("demo"),
        "v2/Chart.yaml": CHART,
        "v2/templates/_helpers.tpl": HELPERS,
        "v2/templates/cm.yaml": HOOK,
        "repo/app/cm.yaml": config_map("demo"),
        "argocd/app.yaml": APPLICATION,
        "flux/app.yaml": KUSTOMIZATION,
        "flux/app/cm.yaml": config_map("demo"),
        "program/Pulumi.yaml": PROGRAM,
    }
    write(tmp_path, files)


UPGRADE = CheckOptions(("v2",), "v1")
ENGINES = {
    "helm": UPGRADE,
    "kubectl": CheckOptions(("repo/app",)),
    "argocd": CheckOptions(("argocd",), engines=("argocd",), repos=("https://git.example/demo=repo",)),
    "flux": CheckOptions(("flux",)),
    "pulumi": CheckOptions(("program",)),
}


def store(options: CheckOptions, schedule: Schedule) -> str:
    """The name of the file that holds the rehearsal."""
    path = Path(f"{schedule}.json")
    one = run_to_store(options, schedule)
    path.write_text(stored.write(one.rehearsal, one.case))
    return str(path)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rehearsal_is_read_back_as_it_was_written(engine: str) -> None:
    one = run_to_store(ENGINES[engine], "lazy")
    assert one.rehearsal.engine.name == engine
    text = stored.write(one.rehearsal, one.case)
    Path("stored.json").write_text(text)
    found = stored.read("stored.json")
    masked, original = (without_secrets(msgspec.to_builtins(read.rehearsal)) for read in (found, one))
    assert masked == original
    assert stored.write(found.rehearsal, found.case) == text


def test_checking_the_stored_schedules_reports_what_a_check_reports() -> None:
    stored = [store(UPGRADE, schedule) for schedule in reversed(SCHEDULES)]
    live, again = check(UPGRADE), check_stored(stored)

    def plain(findings: tuple[Finding, ...]) -> list[Finding]:
        return [replace(finding, pointers=()) for finding in findings if not finding.case]

    assert plain(again.findings) == plain(live.findings) != []
    assert again.excerpts == live.excerpts
    assert again.prerequisites == live.prerequisites
    assert again.notes == live.notes


def test_places_need_no_file_of_the_user() -> None:
    path = store(UPGRADE, "lazy")
    Path("v2/templates/cm.yaml").write_text("")
    found = stored.read(path)
    release = found.case.releases[1]
    assert release is not None
    (resource,) = release.resources
    name, hook = (
        place_of(resource.place("metadata", *rest)) for rest in (("name",), ("annotations", "helm.sh/hook", "no"))
    )
    assert [str(name), str(hook)] == ["v2/templates/cm.yaml:4", "v2/templates/_helpers.tpl:2"]
    assert found.excerpt(hook) == "helm.sh/hook: pre-install,pre-upgrade"


def test_one_schedule_alone_makes_nothing_certain() -> None:
    result = check_stored((store(UPGRADE, "ordinary"),))
    assert "release-to-hook-flip (ST201)" in full.render(result, Page())
    assert {finding.certainty for finding in result.findings} == {"likely"}
    without = "helm@4.2.3: no rehearsal of the lazy and the eager schedule given, so no finding is `will`"
    assert result.notes == (without,)


def test_the_state_before_an_event_is_kept_if_the_previous_event_left_another() -> None:
    one, ref = run_to_store(UPGRADE, "lazy"), Ref("ConfigMap", "default", "demo")
    timeline = (
        Event(0, 0, "helm", "create", ref, "created", after={"data": {"a": "\ud800"}}),
        Event(1, 0, "helm", "update", ref, "changed", before={"data": {"a": "\ud800"}}, after={"data": None}),
        Event(2, 0, "helm", "update", ref, "changed", before=None, after={"data": {}}),
        Event(3, 0, "helm", "delete", ref, "deleted", before={"data": {"b": 1.0}}),
        Event(4, 0, "helm", "create", ref, "created", after={}),
    )
    Path("stored.json").write_text(stored.write(replace(one.rehearsal, timeline=timeline), one.case))
    written = json.loads(Path("stored.json").read_text())["rehearsal"]["timeline"]
    assert ["before" in event for event in written] == [False, False, True, True, False]
    assert stored.read("stored.json").rehearsal.timeline == timeline


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ('{"version": 1, "findings": []}', "not a stored rehearsal; `seatrial run -o json` writes one"),
        (
            '{"seatrial": "9.0.0", "format": 2, "rehearsal": {}, "case": {}}',
            "unknown format 2: seatrial 9.0.0 wrote it, and seatrial 0.1.0 reads format 1",
        ),
        (
            '{"seatrial": "0.1.0", "format": 1, "rehearsal": {"engine": 1}, "case": {}}',
            "Expected `object`, got `int` - at `$.rehearsal.engine`",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(content: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.json").write_text(content)
    assert main(["check", "--rehearsal", "bad.json"]) == 2
    assert capsys.readouterr().err == f"seatrial: bad.json: read the stored rehearsal: {said}\n"


def test_a_file_with_fewer_releases_than_steps_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    one = run_to_store(UPGRADE, "lazy")
    Path("bad.json").write_text(stored.write(one.rehearsal, Case("", one.case.releases[:-1])))
    assert main(["check", "--rehearsal", "bad.json"]) == 2
    assert capsys.readouterr().err.endswith("bad.json: read the stored rehearsal: 6 steps and releases for 5 steps\n")


def test_the_command_line_stores_and_checks_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    for schedule in SCHEDULES:
        main(["run", "v2", "--from", "v1", "--schedule", schedule, "-o", "json"])
        Path(f"{schedule}.json").write_text(capsys.readouterr().out)
    given = [word for schedule in SCHEDULES for word in ("--rehearsal", f"{schedule}.json")]
    for output in FORMATS:
        assert main(["check", *given, "-o", output]) == 1
        assert "release-to-hook-flip" in capsys.readouterr().out


@pytest.mark.parametrize("more", [["v2"], ["--from", "v1"], ["--compare", "v1"]])
def test_a_stored_rehearsal_allows_no_options_about_the_input(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--rehearsal", "lazy.json", *more]) == 2
    said = "--rehearsal cannot be combined with an input or with flags that select what to rehearse"
    assert capsys.readouterr().err == f"seatrial: {said}\n"
