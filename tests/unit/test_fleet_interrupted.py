"""Ctrl-C while a folder of charts is checked: it ends, without a word, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write

CHARTS = 30
PROGRAM = """\
import sys
from seatrial.cli import main
from seatrial.fleet import folder

checked = folder._checked

def watched(tasks, progress, new_from):
    return checked(tasks, lambda said: (print(said, flush=True), progress(said)), new_from)

if __name__ == "__main__":
    folder._checked = watched
    sys.exit(main(["check", "charts"]))
"""


@pytest.mark.parametrize("whole_group", [True, False], ids=["as a terminal does", "only the parent"])
def test_an_interrupted_check_leaves_nothing_behind(tmp_path: Path, whole_group: bool) -> None:
    for number in range(CHARTS):
        name = f"charts/c{number}"
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
            (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
            _, errors = process.communicate(timeout=60)  # Ends when no worker holds the streams any more.
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, errors) == (130, "")
    assert list((tmp_path / "tmp").iterdir()) == []
