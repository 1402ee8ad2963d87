"""`seatrial fleet --on`: a scheduler and workers on loopback rehearse the trials; what is killed is not lost."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

from seatrial.cli import main
from seatrial.fleet import dask
from seatrial.fleet.checked import CheckedChart, WantedResults
from seatrial.model.errors import CannotContinue
from seatrial.model.options import CheckOptions

distributed = pytest.importorskip("distributed")

CHARTS = 6
LOOPBACK = ("--host", "127.0.0.1")
ALONE = ("--no-dashboard", "--port", "0")
ENVIRONMENT = {**os.environ, "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}


@contextmanager
def _started(folder: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process of Dask, ended with all its children."""
    command = [sys.executable, "-m", f"distributed.cli.{name}", *arguments, *LOOPBACK]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for number in range(CHARTS):
        name = f"charts/c{number}"
        write(tmp_path, {f"{name}/Chart.yaml": CHART, f"{name}/templates/config.yaml": config_map("a")})
    return tmp_path


class Cluster:
    """A scheduler and two workers, which start in a folder without the user's files."""

    def __init__(self, address: str, scheduler: subprocess.Popen[str], crew: subprocess.Popen[str]) -> None:
        self.address, self.scheduler, self.crew = address, scheduler, crew

    def workers(self) -> list[int]:
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            return [*client.run(os.getpid).values()]


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with _started(elsewhere, "dask_scheduler", *ALONE) as scheduler:
        assert scheduler.stderr is not None
        address = next(found[0] for said in scheduler.stderr if (found := re.search(r"tcp://127\.0\.0\.1:\d+", said)))
        workers = ("--nworkers", "2", "--nthreads", "1", "--no-dashboard")
        with _started(elsewhere, "dask_worker", address, *workers) as crew:
            yield Cluster(address, scheduler, crew)


def test_workers_without_the_files_find_the_same(folder: Path, cluster: Cluster) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "."], check=True)
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    subprocess.run(["git", *identity, "commit", "-qm", "first"], check=True)
    subprocess.run(["git", "tag", "v1"], check=True)
    write(folder, {"charts/c3/templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: no_name}\n"})
    arguments = ["fleet", "charts/*", "--from", "git:v1", "--steps", "install,upgrade"]
    assert main([*arguments, "-o", "json=here.json", "--no-cache"]) == 1
    assert main([*arguments, "-o", "json=there.json", "--on", cluster.address]) == 1
    assert (folder / "there.json").read_text() == (folder / "here.json").read_text()
    assert main([*arguments, "-o", "json=again.json", "--on", "tcp://127.0.0.1:1"]) == 1  # Nothing is left to send.
    assert (folder / "again.json").read_text() == (folder / "here.json").read_text()
    found = json.loads((folder / "there.json").read_text())
    assert [one["trial"]["input"] for one in found["trials"] if one["exit"]] == ["charts/c3"]


def test_a_killed_worker_loses_no_trial(folder: Path, cluster: Cluster) -> None:
    worker, *_ = cluster.workers()
    found: dict[int, CheckedChart] = {}
    for number, checked in dask.on(cluster.address, WantedResults(whole=False))(_trials()):
        if not found:
            os.kill(worker, signal.SIGKILL)
        found[number] = checked
    assert sorted(found) == [*range(CHARTS)]
    assert all(one.result and not one.error for one in found.values())


def test_a_killed_scheduler_is_said_in_one_sentence(folder: Path, cluster: Cluster) -> None:
    cluster.workers()
    with pytest.raises(CannotContinue, match=r"the scheduler is gone; \d of 6 trials were done\. Start it and run"):
        for _ in dask.on(cluster.address, WantedResults(whole=False))(_trials()):
            cluster.scheduler.kill()


def test_workers_that_are_all_gone_are_said_in_one_sentence(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "SECONDS_BETWEEN_LOOKS", 1)
    monkeypatch.setattr(dask, "SECONDS_FOR_A_WORKER", 3)
    cluster.workers()
    gone = r"the scheduler has no workers any more; \d of 6 trials were done\. Start some and run"
    with pytest.raises(CannotContinue, match=gone):
        for _ in dask.on(cluster.address, WantedResults(whole=False))(_trials()):
            with suppress(ProcessLookupError):
                os.killpg(cluster.crew.pid, signal.SIGKILL)


def test_no_scheduler_is_said_in_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dask, "SECONDS_TO_CONNECT", 1)
    assert main(["fleet", "charts", "--on", "tcp://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err == "seatrial: --on tcp://127.0.0.1:1: no Dask scheduler answers there (OSError)\n"


def _trials() -> list[CheckOptions]:
    return [CheckOptions((f"charts/c{number}",)) for number in range(CHARTS)]
