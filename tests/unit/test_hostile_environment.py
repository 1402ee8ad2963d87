"""A system that lacks something is exit code 2 with one sentence, and never a finding about the input."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from chartfolder import CHART, config_map, write

from seatrial.model.errors import CannotContinue
from seatrial.play.over_http import refuse_environment

RUN = "import sys; from seatrial.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [
        (resource.RLIMIT_NOFILE, 8, "this system allows 8 open files; at least 64 are needed (ulimit -n)"),
        (resource.RLIMIT_NOFILE, 16, "this system allows 16 open files; at least 64 are needed (ulimit -n)"),
        (
            resource.RLIMIT_AS,
            1 << 30,
            "load Helm's library: this system allows 1024 MB of address space; 3000 are needed (ulimit -v)",
        ),
    ],
)
def test_limits_of_the_system_are_one_sentence(limit: int, most: int, words: str, tmp_path: Path) -> None:
    done = _check(tmp_path, f"import resource; resource.setrlimit({limit}, ({most}, {most})); {RUN}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"seatrial: {words}\n")


def test_a_full_disk_under_standard_output_is_one_sentence(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = _check(tmp_path, RUN, stdout=full)
    assert done.returncode == 2
    assert done.stderr == "seatrial: no space left on device; free some space or set TMPDIR\n"


def test_a_missing_folder_for_temporary_files_is_replaced(tmp_path: Path) -> None:
    assert _check(tmp_path, RUN, TMPDIR="/nonexistent").returncode == 0


def test_a_current_folder_that_was_removed_is_one_sentence(tmp_path: Path) -> None:
    removed = "import os, tempfile; folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder)"
    done = _check(tmp_path, f"{removed}; {RUN}")
    words = "the current folder cannot be read: No such file or directory; change to another one"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"seatrial: {words}\n")


def test_an_object_that_a_clone_lacks_is_one_sentence(tmp_path: Path) -> None:
    write(tmp_path, {"v1/Chart.yaml": CHART, "v1/templates/a.yaml": config_map("a")})
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    blob = subprocess.run(
        ["git", "rev-parse", "HEAD:v1/templates/a.yaml"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.strip()
    (tmp_path / ".git/objects" / blob[:2] / blob[2:]).unlink()
    done = _check(tmp_path, RUN, "--from", "git:HEAD")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "not in this clone; run git fetch" in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        'Kubernetes cluster unreachable: Get "http://127.0.0.1:1/version": dial tcp 127.0.0.1:1: connect: refused',
        'error loading config file "/tmp/x/kubeconfig": open /tmp/x/kubeconfig: too many open files',
        'Get "http://127.0.0.1:1/api": dial tcp 127.0.0.1:1: socket: too many open files',
    ],
)
def test_a_cluster_that_could_not_be_reached_is_not_the_charts_fault(error: str) -> None:
    with pytest.raises(CannotContinue, match="reach the rehearsed cluster: "):
        refuse_environment(error)


@pytest.mark.parametrize(
    "error",
    [
        'failed calling webhook "a.b": Post "https://a.default.svc:443/x": dial tcp 10.0.0.1:443: connect: refused',
        "jobs.batch a failed: BackoffLimitExceeded: too many open files",
        'services "a" not found',
    ],
)
def test_errors_of_the_cluster_are_the_charts(error: str) -> None:
    refuse_environment(error)


def _check(
    folder: Path, code: str, *arguments: str, stdout: int | IO[str] = subprocess.PIPE, **variables: str
) -> subprocess.CompletedProcess[str]:
    if not (folder / "v1").exists():
        write(folder, {"v1/Chart.yaml": CHART, "v1/templates/a.yaml": config_map("a")})
    return subprocess.run(
        [sys.executable, "-c", code, "check", "v1", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=100,
    )
