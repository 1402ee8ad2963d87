"""`-o`: several reports of one check, on standard output and in files."""

import json
import os
import threading
from pathlib import Path

import pytest

from seatrial.cli import main
from seatrial.cli.outputs import ReportTarget, parse, write
from seatrial.model.errors import CannotContinue
from seatrial.report import FORMATS

Capture = pytest.CaptureFixture[str]

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given.yaml").write_text(CONFIG)
    return tmp_path


def test_without_a_format_the_full_report_is_printed() -> None:
    assert parse(()) == (ReportTarget("full"),)
    assert parse(("json",)) == (ReportTarget("json"),)
    assert parse(("json=-",)) == (ReportTarget("json"),)
    assert parse(("json=a.json",)) == (ReportTarget("full"), ReportTarget("json", "a.json"))
    assert parse(("json=a=b", "concise")) == (ReportTarget("concise"), ReportTarget("json", "a=b"))


def test_a_report_in_a_file_is_beside_the_one_on_standard_output(folder: Path, capsys: Capture) -> None:
    assert main(["check", "given.yaml", "-o", "json=out.json", "-o", "concise"]) == 0
    assert capsys.readouterr().out.startswith("1 object from 1 file")
    assert json.loads((folder / "out.json").read_text())["findings"] == []
    assert sorted(path.name for path in folder.iterdir()) == ["given.yaml", "out.json"]


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (["yaml"], f"-o yaml: 'yaml' is not a format; use one of {', '.join(FORMATS)}"),
        (["jsno=x"], "-o jsno=x: 'jsno' is not a format; did you mean json?"),
        (["json="], "-o json=: the name of the file is missing; -o json writes to standard output"),
        (["json=."], "-o json=.: . is a directory; name a file in it"),
        (["json=no/x"], "-o json=no/x: the directory no does not exist; create it first"),
        (["json=x", "concise=./x"], "-o json=x: another report is written to the same file"),
        (
            ["json", "concise"],
            "-o json and -o concise: only one report can go to standard output; write the other to a file, as in "
            "-o concise=FILE",
        ),
    ],
)
def test_a_wrong_output_is_refused_before_anything_is_rehearsed(
    folder: Path, capsys: Capture, outputs: list[str], said: str
) -> None:
    flags = [word for output in outputs for word in ("-o", output)]
    assert main(["check", "does-not-exist", *flags]) == 2
    assert capsys.readouterr().err == f"seatrial: {said}\n"
    assert [path.name for path in folder.iterdir()] == ["given.yaml"]


def test_a_file_is_replaced_as_a_whole(folder: Path) -> None:
    old = folder / "out.json"
    old.write_text("old")
    link = folder / "link.json"
    link.symlink_to(old)
    with old.open() as reader:
        write([ReportTarget("json", "link.json")], lambda target: "new \ud83d")
        assert reader.read() == "old"
    assert link.is_symlink()
    assert old.read_text() == "new \\ud83d"
    assert sorted(path.name for path in folder.iterdir()) == ["given.yaml", "link.json", "out.json"]


def test_a_pipe_is_written_to_and_stays_a_pipe(folder: Path) -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_text()))
    reader.start()
    write([ReportTarget("json", "pipe")], lambda target: "text")
    reader.join()
    assert read == ["text"]
    assert (folder / "pipe").is_fifo()


def test_a_file_that_cannot_be_written_is_one_sentence(folder: Path) -> None:
    long = "x" * 300
    with pytest.raises(CannotContinue, match=r"^-o json=x+: cannot write the report: File name too long$"):
        write([ReportTarget("json", long)], lambda target: "text")
