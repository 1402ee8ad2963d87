"""`seatrial fleet`: which trials a file lists, what is reported, and that no trial is lost."""

import json
from pathlib import Path

import deadly
import pytest
from chartfolder import CHART, config_map, write
from inline_snapshot import snapshot

from seatrial.cli import main
from seatrial.fleet import crews
from seatrial.fleet.trials import tasks_of
from seatrial.model import fleet
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions

HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: prepare
  annotations:
    helm.sh/hook: pre-install
spec:
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: prepare
      containers: [{name: prepare, image: busybox}]
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: prepare
"""


@pytest.fixture
def charts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    library = CHART + "type: library\n"
    write(tmp_path, {f"charts/{name}/Chart.yaml": CHART for name in ("good", "hooked")})
    write(tmp_path, {"charts/shared/Chart.yaml": library, "charts/README.md": "Our charts."})
    write(tmp_path, {"charts/good/templates/a.yaml": config_map("a"), "charts/hooked/templates/job.yaml": HOOK})
    return tmp_path


def test_a_fleet_file_lists_every_combination(charts: Path) -> None:
    write(
        charts,
        {
            "ci/fleet.yaml": """\
fleet:
  - inputs: ["../charts/*"]
    engines: [helm, argocd]
    kube-versions: ["1.31", "1.34"]
  - inputs: [../charts/good]
    from: ["", "git:v1"]
    values: ["", prod.yaml, [prod.yaml, eu.yaml]]
""",
        },
    )
    assert [str(task.trial) for task in tasks_of(CheckOptions(("ci/fleet.yaml",)), ())] == snapshot(
        [
            "charts/good, helm, Kubernetes 1.31",
            "charts/good, helm, Kubernetes 1.34",
            "charts/good, argocd, Kubernetes 1.31",
            "charts/good, argocd, Kubernetes 1.34",
            "charts/hooked, helm, Kubernetes 1.31",
            "charts/hooked, helm, Kubernetes 1.34",
            "charts/hooked, argocd, Kubernetes 1.31",
            "charts/hooked, argocd, Kubernetes 1.34",
            "charts/good",
            "charts/good, ci/prod.yaml",
            "charts/good, ci/prod.yaml+ci/eu.yaml",
            "charts/good, from git:v1",
            "charts/good, from git:v1, ci/prod.yaml",
            "charts/good, from git:v1, ci/prod.yaml+ci/eu.yaml",
        ]
    )


def test_flags_hold_for_what_the_file_does_not_list(charts: Path) -> None:
    write(charts, {"fleet.yaml": "fleet:\n  - inputs: [charts/good]\n    engines: [flux]\n"})
    options = CheckOptions(("fleet.yaml", "charts/hooked"), engines=("helm",))
    assert [str(task.trial) for task in tasks_of(options, ("1.31", "1.33"))] == snapshot(
        [
            "charts/good, flux, Kubernetes 1.31",
            "charts/good, flux, Kubernetes 1.33",
            "charts/hooked, helm, Kubernetes 1.31",
            "charts/hooked, helm, Kubernetes 1.33",
        ]
    )


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "fleet:\n  - inputs: [charts/*]\n    engine: [helm]\n",
            snapshot("fleet.yaml:3: unknown key engine; did you mean engines?"),
        ),
        (
            "fleet:\n  - inputs: [charts/*]\n    kube-versions: [1.31]\n",
            snapshot("fleet.yaml:3: fleet.kube-versions: expected `str`, got `float`; put it in quotes"),
        ),
        ("fleet: []\n", snapshot("fleet.yaml:1: fleet: expected `array` of length >= 1")),
        ("fleet:\n  - inputs: [nowhere/*]\n", snapshot("nowhere/*: matches no chart, trial file or manifest")),
    ],
)
def test_a_wrong_fleet_file_is_refused_with_its_line(charts: Path, text: str, refusal: str) -> None:
    write(charts, {"fleet.yaml": text})
    with pytest.raises(CannotContinue) as refused:
        tasks_of(CheckOptions(("fleet.yaml",)), ())
    assert str(refused.value) == refusal


def test_the_report_has_totals_by_rule_engine_and_input(charts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["fleet", "charts", "--engine", "helm", "--engine", "argocd", "-o", "json=found.json"]
    assert main([*arguments, "-o", "junit=found.xml"]) == 1
    printed = capsys.readouterr().out
    assert printed.partition("Findings, each once:")[0] == snapshot("""\
  trial                  exit  why
  charts/hooked, helm    1     will, failed-deploy: pre-hook-needs-release-serviceaccount
  charts/hooked, argocd  1     will, failed-deploy: presync-needs-sync-phase-resource

  rule                                      code   trials  inputs  worst
  pre-hook-needs-release-serviceaccount     ST204  1       1       will, failed-deploy
  presync-needs-sync-phase-resource         ST805  1       1       will, failed-deploy
  argocd-install-only-hook-runs-every-sync  ST812  1       1       may, nuisance

  engine  trials  failing  not rehearsed
  argocd  2       1        0
  helm    2       1        0

  input          trials  failing  not rehearsed
  charts/hooked  2       2        0

""")
    assert "charts/hooked/templates/job.yaml:11: presync-needs-sync-phase-resource will" in printed
    assert printed.endswith("""\
4 trials, 2 inputs, 3 different findings, 2 failing.
exit 1: 2 findings reach --fail-on likely:failed-deploy
""")
    found = json.loads((charts / "found.json").read_text())
    assert [(one["trial"], one["exit"]) for one in found["trials"]] == snapshot(
        [
            ({"input": "charts/good", "engine": "helm"}, 0),
            ({"input": "charts/good", "engine": "argocd"}, 0),
            ({"input": "charts/hooked", "engine": "helm"}, 1),
            ({"input": "charts/hooked", "engine": "argocd"}, 1),
        ]
    )
    assert "prepare" in (charts / "found.xml").read_text()


def test_parts_of_a_trial_that_were_not_rehearsed_are_in_its_row(
    charts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dependency = "dependencies: [{name: queue, version: 1.0.0, repository: https://charts.example}]\n"
    file = charts / "charts/hooked/Chart.yaml"
    file.write_text(file.read_text() + dependency)
    asked = ["fleet", "charts/hooked", "--exit-zero", "-o", "json"]
    assert main(asked) == 0
    (row,) = json.loads(capsys.readouterr().out)["trials"]
    (part,) = row["not_rehearsed"]
    assert (part["case"], part["step"]) == ("", "")
    assert part["reason"].endswith("(run helm dependency build): queue 1.0.0 (https://charts.example)")


def test_a_trial_that_cannot_be_rehearsed_does_not_stop_the_others(
    charts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(charts, {"charts/hooked/templates/job.yaml": '{{ fail "no" }}'})
    assert main(["fleet", "charts/*"]) == 2
    assert capsys.readouterr().out == snapshot("""\
  trial          exit  why
  charts/hooked  2     charts/hooked/templates/job.yaml:1:3: execution error at (demo/templates/job.yaml:1:3): no

  input          trials  failing  not rehearsed
  charts/hooked  1       0        1

2 trials, 2 inputs, 0 different findings, 0 failing, 1 not rehearsed.
exit 2: 1 of 2 charts could not be checked
""")


def test_a_trial_that_kills_its_process_is_tried_again_and_reported() -> None:
    trials = [CheckOptions((name,)) for name in ("a", "b", deadly.DEADLY, "c", "d", "e", "f", "g")]
    found = dict(crews.side_by_side(deadly.one, trials, 2))
    assert sorted(found) == list(range(len(trials)))
    assert {one.name: one.error for one in found.values() if one.error} == snapshot(
        {"deadly": "deadly: ended its process: too much memory or time; check it alone to see more"}
    )


def test_the_published_schema_is_that_of_the_types() -> None:
    published = Path(__file__).parents[2] / "docs" / "fleet.schema.json"
    assert published.read_text() == fleet.schema()
