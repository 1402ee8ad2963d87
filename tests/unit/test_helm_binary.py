"""The user's helm binary: its input, its output, how it is stopped. The binaries here are shell scripts."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.cli import main
from seatrial.helm.binary import Process, find
from seatrial.model.errors import CannotContinue
from seatrial.sandbox import client
from seatrial.sandbox.watchdog import MEMORY_MB_MAX

KUBECONFIG = "apiVersion: v1\nkind: Config\n"


def program(folder: Path, name: str = "helm", *, version: str = "v3.99.0", commands: str = "exit 0") -> str:
    """A shell script that prints its version, and otherwise runs `commands`."""
    path = folder / name
    path.write_text(f'#!/bin/sh\nif [ "$1" = version ]; then echo "{version}"; exit 0; fi\n{commands}\n')
    path.chmod(0o755)
    return str(path)


def test_a_program_that_prints_a_helm_version_is_accepted(tmp_path: Path) -> None:
    found = find(program(tmp_path, version="v4.1.0-rc.1"))
    assert (found.version, found.major) == ("4.1.0-rc.1", 4)


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("v3.14", "3.14"),
        ("v4.1+unreleased", "4.1+unreleased"),
        ("WARNING: Kubernetes configuration file is group-readable.\nv3.18.4", "3.18.4"),
    ],
)
def test_a_version_without_a_patch_and_after_warnings_is_accepted(tmp_path: Path, printed: str, version: str) -> None:
    assert find(program(tmp_path, version=printed)).version == version


def test_a_name_is_looked_up_in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "helm-of-mine")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find("helm-of-mine").path == path


@pytest.mark.parametrize(
    ("name", "text", "mode", "says"),
    [
        ("missing", None, 0, "does not exist"),
        ("readme", "not a program", 0o644, "is not executable"),
        ("broken", "no interpreter and no binary", 0o755, "cannot be run: Exec format error"),
        ("silent", "#!/bin/sh\nexit 0\n", 0o755, "is not helm: `helm version` printed nothing"),
        (
            "other",
            "#!/bin/sh\necho 'other: unknown command version' >&2\nexit 1\n",
            0o755,
            "is not helm: `helm version` printed 'other: unknown command version'",
        ),
        (
            "helm2",
            '#!/bin/sh\n[ "$2" = --client ] && echo v2.17.0 || echo "Error: could not find tiller" >&2\n',
            0o755,
            "is Helm 2.17.0; supported are Helm 3 and later",
        ),
        ("yes", "#!/bin/sh\nexec yes no\n", 0o755, "is not helm: `helm version` printed 'no'"),
    ],
)
def test_other_programs_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | None, mode: int, says: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    write(tmp_path / "chart", {"Chart.yaml": CHART, "templates/cm.yaml": config_map("cm")})
    assert main(["check", str(tmp_path / "chart"), "--helm-binary", str(path)]) == 2
    assert capsys.readouterr() == ("", f"seatrial: --helm-binary {path}: {says}\n")


def test_a_program_that_prints_no_version_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER_SECONDS", 0.5)
    path, child = tmp_path / "sleeper", tmp_path / "child"
    path.write_text(f"#!/bin/sh\nsleep 1000 & echo $! > {child}; wait\n")
    path.chmod(0o755)
    with pytest.raises(CannotContinue, match="is not helm: `helm version` did not end"):
        find(str(path))
    assert _has_ended(int(child.read_text()))


def test_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CannotContinue, match="is a folder"):
        find(str(tmp_path))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (
            ["--engine", "helm@2"],
            "--engine helm@2: what is built in is Helm 4.2.3; name another one with --helm-binary PATH",
        ),
        (["--engine", "helm@4", "--helm-binary", "HELM"], "--engine helm@4: --helm-binary HELM is Helm 3.99.0"),
        (
            ["--engine", "kubectl", "--helm-binary", "HELM"],
            "--helm-binary needs the engine helm, but the input is rehearsed with kubectl",
        ),
    ],
)
def test_the_binary_must_fit_the_engine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], says: str
) -> None:
    path = program(tmp_path)
    write(tmp_path / "chart", {"Chart.yaml": CHART, "templates/cm.yaml": config_map("cm")})
    given = [path if flag == "HELM" else flag for flag in flags]
    assert main(["check", str(tmp_path / "chart"), *given]) == 2
    assert capsys.readouterr() == ("", f"seatrial: {says.replace('HELM', path)}\n")


def test_it_gets_a_chart_values_and_a_cluster_and_no_user_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/user/.kube/config")
    monkeypatch.setenv("HELM_KUBECONTEXT", "production")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    seen = tmp_path / "seen"
    seen.mkdir()
    copies = f'cp chart.tgz values.json {seen}; cp "$KUBECONFIG" {seen}/kubeconfig; env > {seen}/env; pwd > {seen}/pwd'
    binary = find(program(tmp_path, commands=f'{copies}; ls -A "$HOME" > {seen}/home; echo "$@" > {seen}/arguments'))
    process = Process(binary, ["install", "demo", "chart.tgz"], KUBECONFIG, chart=b"chart", values={"color": "red"})
    assert process.wait(30)
    process.close()
    folder = (seen / "pwd").read_text().strip()
    assert (seen / "arguments").read_text() == "install demo chart.tgz\n"
    assert (seen / "chart.tgz").read_bytes() == b"chart"
    assert (seen / "values.json").read_text() == '{"color": "red"}'
    assert (seen / "kubeconfig").read_text() == KUBECONFIG
    assert (seen / "home").read_text() == ""
    given = dict(line.split("=", 1) for line in (seen / "env").read_text().splitlines())
    ours = {name: value for name, value in given.items() if value.startswith(folder)}
    assert sorted(ours) == [
        "HELM_CACHE_HOME",
        "HELM_CONFIG_HOME",
        "HELM_DATA_HOME",
        "HELM_PLUGINS",
        "HOME",
        "KUBECACHEDIR",
        "KUBECONFIG",
        "PWD",
        "TMPDIR",
    ]
    assert {"HELM_KUBECONTEXT", "HTTPS_PROXY"} & set(given) == set()
    assert not Path(folder).exists()


def test_the_last_error_on_stderr_is_the_error_and_the_rest_are_warnings(tmp_path: Path) -> None:
    twice = "echo 'WARNING: old' >&2; echo 'WARNING: old' >&2"
    says = f"{twice}; printf 'Error: INSTALLATION FAILED: no\\nmore\\n' >&2; exit 1"
    process = Process(find(program(tmp_path, commands=says)), ["install"], KUBECONFIG)
    process.wait(30)
    process.close()
    assert (process.failed, process.error) == (True, "INSTALLATION FAILED: no\nmore")
    assert process.warnings == ("WARNING: old",)


def test_a_helm_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    commands = f"trap '' TERM; sleep 1000 & echo $! > {child}.new; mv {child}.new {child}; wait"
    process = Process(find(program(tmp_path, commands=commands)), ["install"], KUBECONFIG)
    while not child.exists():
        time.sleep(0.01)
    process.stop()
    assert not process.wait(0.2)
    process.close()
    assert _has_ended(int(child.read_text()))


def _has_ended(pid: int) -> bool:
    """Within about a second. A process that was not reaped yet counts as ended."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            reported = Path(f"/proc/{pid}/stat").read_text()
        except (ProcessLookupError, FileNotFoundError):
            return True
        if reported.rpartition(") ")[2].startswith("Z"):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of another process")
def test_its_memory_is_limited(tmp_path: Path) -> None:
    waits = 'while [ "$(ulimit -d)" = unlimited ]; do sleep 0.05; done'
    path = program(tmp_path, commands=f'{waits}; echo "Error: $(ulimit -d)" >&2; exit 1')
    process = Process(find(path), [], KUBECONFIG)
    assert process.wait(30)
    process.close()
    assert process.error == str(MEMORY_MB_MAX << 10)


def test_a_template_that_needs_too_much_memory_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the deployment renders it, because of `lookup`, say."""
    path = program(tmp_path, commands="echo 'fatal error: runtime: out of memory\ngoroutine 1' >&2; exit 2")
    write(tmp_path / "chart", {"Chart.yaml": CHART, "templates/cm.yaml": config_map("cm")})
    assert main(["check", str(tmp_path / "chart"), "--helm-binary", path]) == 2
    words = "helm install of demo: render the chart: needs more than 1024 MB of memory (--memory-limit)"
    assert capsys.readouterr() == ("", f"seatrial: {words}\n")
