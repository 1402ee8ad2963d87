"""seatrial inside other tools: each file is read, and its commands are run where that needs no other machine."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from chartfolder import config_map, write
from gitcheckout import commit, git

import seatrial.api
from seatrial.cli import main
from seatrial.integrations.pytest import Rehearse

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CHART = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}
spec:
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: migrate
      containers: [{name: migrate, image: example/migrate}]
"""
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: migrate}\n"


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a chart whose hook hangs, on a branch; the main branch has no hook."""
    where = tmp_path / "checkout"
    write(where, {"charts/shop/Chart.yaml": CHART, "charts/shop/templates/config.yaml": config_map("shop")})
    git(where, "init", "-q", "-b", "main")
    commit(where, "v1")
    git(where, "checkout", "-q", "-b", "topic")
    write(where, {"charts/shop/templates/job.yaml": JOB, "charts/shop/templates/account.yaml": ACCOUNT})
    commit(where, "v2")
    monkeypatch.chdir(where)
    return where


def test_the_github_action_checks_what_changed_and_passes_the_exit_code_on(checkout: Path, tmp_path: Path) -> None:
    steps = {step["name"]: step for step in read("action.yml")["runs"]["steps"]}
    runner = tmp_path / "runner"
    (runner / "seatrial").mkdir(parents=True)
    (runner / "seatrial" / "bin").symlink_to(BIN)
    output, summary = runner / "output", runner / "summary"
    given = {"WHAT": "charts", "SINCE": "main", "MORE": "-q --namespace shop"}
    files = {"RUNNER_TEMP": str(runner), "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", steps["Check"]["run"]],
        env={**os.environ, **given, **files},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pre-hook-needs-release-serviceaccount" in ran.stdout
    assert output.read_text() == "exit-code=1\n"
    assert "pre-hook-needs-release-serviceaccount" in summary.read_text()
    assert (runner / "seatrial.sarif").is_file()
    ended = subprocess.run(["bash", "-c", steps["Exit code"]["run"]], env={**os.environ, "CODE": "1"}, check=False)
    assert ended.returncode == 1
    assert subprocess.run(["bash", "-c", steps["Exit code"]["run"]], env={**os.environ, "CODE": "3"}, check=True)


def test_no_script_of_the_github_action_contains_an_expression() -> None:
    scripts = [step["run"] for step in read("action.yml")["runs"]["steps"] if "run" in step]
    assert [script for script in scripts if "${{" in script] == []


@pytest.mark.parametrize("name", ["seatrial", "kubectl-seatrial"])
def test_the_commands_are_installed(name: str) -> None:
    shown = subprocess.run([BIN / name, "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout == "seatrial 0.1.0\n"


def test_the_pre_commit_hook_checks_what_changed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (hook,) = read(".pre-commit-hooks.yaml")
    git(checkout, "update-ref", "refs/remotes/origin/HEAD", "main")
    assert main([*hook["entry"].split()[1:], *hook["args"]]) == 1
    assert "charts/shop" in capsys.readouterr().out
    git(checkout, "checkout", "-q", "main")
    assert main([*hook["entry"].split()[1:], *hook["args"]]) == 3


def test_the_gitlab_job_has_flags_that_exist(checkout: Path) -> None:
    job = read("integrations/gitlab/seatrial.gitlab-ci.yml")["seatrial"]
    script = job["script"][-1].replace("origin/$CI_DEFAULT_BRANCH", "main").replace('"', "")
    assert main(script.split()[1:]) == 1
    assert (checkout / "seatrial.xml").read_text().startswith("<?xml")
    assert job["allow_failure"] == {"exit_codes": 3}


def test_the_argocd_plugin_refuses_a_chart_that_fails(checkout: Path, tmp_path: Path) -> None:
    generate = read("integrations/argocd/plugin.yaml")["spec"]["generate"]
    (tmp_path / "helm").write_text("#!/bin/sh\necho rendered\n")
    (tmp_path / "helm").chmod(0o755)
    app = {"ARGOCD_APP_NAME": "shop", "ARGOCD_APP_NAMESPACE": "shop", "PATH": f"{tmp_path}:{BIN}:{os.environ['PATH']}"}
    command = [*generate["command"], *generate["args"]]

    def generated() -> subprocess.CompletedProcess[str]:
        where = checkout / "charts" / "shop"
        return subprocess.run(
            command, cwd=where, env={**os.environ, **app}, capture_output=True, text=True, check=False
        )

    failed = generated()
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "templates/job.yaml" in failed.stderr
    git(checkout, "checkout", "-q", "main")
    assert generated().stdout == "rendered\n"


def test_as_a_helm_plugin_the_namespace_comes_from_helm(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read("integrations/helm/plugin.yaml")["command"] == "seatrial"
    monkeypatch.setenv("HELM_PLUGIN_NAME", "seatrial")
    monkeypatch.setenv("HELM_NAMESPACE", "team")
    assert main(["check", "charts/shop", "-o", "concise"]) == 1
    assert "Job/team/migrate" in capsys.readouterr().out


def test_the_pytest_fixture_fails_a_test_with_the_report(checkout: Path, rehearse: Rehearse) -> None:
    with pytest.raises(pytest.fail.Exception, match="pre-hook-needs-release-serviceaccount"):
        rehearse("charts/shop")
    result = rehearse("charts/shop", allow=[f.rule for f in _findings()])
    assert result.played
    git(checkout, "checkout", "-q", "main")
    assert rehearse(checkout / "charts" / "shop", values={"replicas": 2}).findings == ()


def _findings() -> tuple[seatrial.api.Finding, ...]:
    return seatrial.api.check(seatrial.api.Options(inputs=("charts/shop",))).findings


def test_the_library_has_five_names(checkout: Path) -> None:
    assert seatrial.api.__all__ == ["Finding", "Options", "Result", "check", "rehearse"]
    rehearsal = seatrial.api.rehearse(seatrial.api.Options(inputs=("charts/shop",)))
    assert [step.outcome for step in rehearsal.steps] == ["hung", "ok", "ok"]


def test_the_versions_agree() -> None:
    version = read("integrations/helm/plugin.yaml")["version"]
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()
    assert seatrial.__version__ == version
