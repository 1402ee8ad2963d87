"""The comparison of two inputs, in the JSON report."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from gitcheckout import commit, git

from seatrial.accepted.ignoring import reported
from seatrial.accepted.policy import EVERYTHING
from seatrial.check import check
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions
from seatrial.report.contract import schema
from seatrial.report.json import render
from seatrial.report.page import Page

NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: canal}\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: locks, namespace: canal}\n"
KEEPER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: keeper, namespace: canal}
spec:
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      containers: [{name: keeper, image: registry.example/keeper:1, envFrom: [{configMapRef: {name: locks}}]}]
"""


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, texts in {"old": (CONFIG, NAMESPACE), "new": (NAMESPACE, CONFIG, KEEPER)}.items():
        Path(folder).mkdir()
        for number, text in enumerate(texts):
            (Path(folder) / f"{number}.yaml").write_text(text)


def begin() -> None:
    """Commit all files of the folder."""
    git(Path(), "init", "-q")
    commit(Path(), "v1")


def compared(old: str, new: str = "new", engine: str = "kubectl") -> Any:
    result = check(CheckOptions(inputs=(new,), engines=(engine,), compare=old))
    report = json.loads(render(result, Page()))
    jsonschema.validate(report, json.loads(schema()))
    return report["comparison"]


def test_a_comparison_has_both_outcomes_and_the_changes() -> None:
    assert compared("old") == {
        "old": "old",
        "new": "new",
        "before": [
            {
                "engine": "kubectl@1.34",
                "steps": [{"verdict": "fails"}, {"verdict": "ok"}],
                "stopped_by": {"why": 'namespaces "canal" not found', "object": "ConfigMap/canal/locks"},
            }
        ],
        "now": [{"engine": "kubectl@1.34", "steps": [{"verdict": "ok"}, {"verdict": "ok"}], "stopped_by": None}],
        "findings": [
            {
                "rule": "namespace-before-content",
                "code": "ST808",
                "objects": ["Namespace/canal"],
                "before": {"certainty": "will", "damage": "failed-deploy"},
                "now": None,
            }
        ],
        "gained": [
            {"user": "Deployment/canal/keeper", "object": "ConfigMap/canal/locks"},
            {"user": "Deployment/canal/keeper", "object": "Namespace/canal"},
        ],
        "lost": [],
    }


def test_what_the_new_input_ignores_is_not_a_change_and_what_the_old_one_ignored_is() -> None:
    def changed(old: str, new: str) -> list[str]:
        found = reported(check(CheckOptions(inputs=(new,), engines=("kubectl",), compare=old)), EVERYTHING).comparison
        assert found is not None
        return [one.rule for one in found.changes]

    assert changed("new", "old") == ["namespace-before-content"]
    first = Path("old/0.yaml")
    first.write_text(f"{CONFIG.rstrip()}  # seatrial: ignore[namespace-before-content] the platform team makes it\n")
    assert changed("new", "old") == []
    assert changed("old", "new") == ["namespace-before-content"]


def test_dependencies_lost_in_one_direction_are_gained_in_the_other() -> None:
    there, back = compared("old", "new"), compared("new", "old")
    assert (back["gained"], back["lost"]) == (there["lost"], there["gained"])


def test_a_chart_is_compared_with_a_commit() -> None:
    chart = Path("chart")
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: canal\nversion: 1.0.0\n")
    (chart / "templates" / "locks.yaml").write_text(CONFIG.replace(", namespace: canal", ""))
    begin()
    (chart / "templates" / "keeper.yaml").write_text(KEEPER.replace(", namespace: canal", ""))
    found = compared("git:HEAD", "chart", engine="helm")
    assert found["gained"] == [{"user": "Deployment/default/keeper", "object": "ConfigMap/default/locks"}]
    assert found["lost"] == []


def test_manifests_are_compared_with_a_commit() -> None:
    begin()
    Path("new/2.yaml").unlink()
    found = compared("git:HEAD")
    assert (found["old"], found["gained"]) == ("git:HEAD", [])
    assert found["lost"] == [
        {"user": "Deployment/canal/keeper", "object": "ConfigMap/canal/locks"},
        {"user": "Deployment/canal/keeper", "object": "Namespace/canal"},
    ]
    with pytest.raises(CannotContinue, match=r"^git:HEAD:nowhere: no such file or folder$"):
        compared("git:HEAD:nowhere")


def test_from_a_commit_does_not_work_for_manifests() -> None:
    begin()
    with pytest.raises(
        CannotContinue, match=r"^--from git:HEAD works for charts and Pulumi programs, but new contains manifests"
    ):
        check(CheckOptions(inputs=("new",), old="git:HEAD"))


def test_inputs_of_different_kinds_are_not_compared() -> None:
    Path("trial.yaml").write_text("engine: kubectl\nsteps: [{apply: old}]\n")
    with pytest.raises(CannotContinue) as said:
        compared("trial.yaml")
    assert str(said.value) == (
        "--compare needs two inputs of the same kind: new is manifests, trial.yaml is a trial file"
    )


@pytest.mark.parametrize("options", [{"inputs": ("new", "old")}, {"inputs": ("new",), "old": "old"}])
def test_compare_takes_one_input_and_no_from(options: dict[str, Any]) -> None:
    with pytest.raises(CannotContinue, match=r"^--compare OLD needs exactly one input, and does not work with --from$"):
        check(CheckOptions(**options, compare="old"))
