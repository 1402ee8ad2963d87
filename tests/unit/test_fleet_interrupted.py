"""Ctrl-C while a folder of charts is checked: it ends, without a word, and leaves nothing behind. So does kill -9."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

CHARTS = 30
PROGRAM = """\
import signal
import sys
from seatrial.cli import main
from seatrial.fleet import folder

# Shells start what runs in the background with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

checked = folder._checked

def watched(tasks, progress, new_from):
    return checked(tasks, lambda said: (print(said, flush=True), progress(said)), new_from)

if __name__ == "__main__":
    folder._checked = watched
    sys.exit(main(["check", "charts"]))
"""


@pytest.mark.parametrize("whole_group", [True, False], ids=["as a terminal does", "only the parent"])
def test_an_interrupted_check_leaves_nothing_behind(tmp_path: Path, whole_group: bool) -> None:
    code, errors = _ended_by(signal.SIGINT, tmp_path, whole_group=whole_group)
    assert (code, errors) == (130, "")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_killed_check_leaves_no_process_behind(tmp_path: Path) -> None:
    code, _ = _ended_by(signal.SIGKILL, tmp_path, whole_group=False)
    assert code == -signal.SIGKILL


def _ended_by(number: signal.Signals, tmp_path: Path, *, whole_group: bool) -> tuple[int, str]:
    """The exit code and the standard error of a check that gets a signal. No process holds its streams any more."""
    for chart in range(CHARTS):
        name = f"charts/c{chart}"
        write(tmp_path, {f"{name}/Chart.yaml": CHART, f"{name}/templates/config.yaml": config_map("a")})
    write(tmp_path, {"program.py": PROGRAM})
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            while "3 of" not in process.stdout.readline():
                assert process.poll() is None
            (os.killpg if whole_group else os.kill)(process.pid, number)
            _, errors = process.communicate(timeout=60)  # Ends when no worker holds the streams any more.
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, errors
