"""Results of earlier checks: the same bytes, as long as nothing changed, and no trace of a Secret."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chartfolder import CHART, config_map, write
from story import scenes

import seatrial.check
from seatrial.cache import files
from seatrial.cli import main
from seatrial.model.options import CheckOptions, ValueFlags
from seatrial.sources import disk

STORIES = Path(__file__).parents[1] / "scenarios"
SAME = (
    "fix-hook-weights.md",
    "argocd-configmap-is-a-hook.md",
    "flux-crds-that-do-not-exist-yet.md",
    "configmap-becomes-a-hook.md",
)
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: correct-horse-battery}\n"
HOOK = config_map("hook") + '  annotations: {"helm.sh/hook": pre-install}\n'
READING = ("open", "os.listdir", "os.scandir")
ANSWERED = ("content", "entries", "glob")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "cache/seatrial"


@pytest.fixture
def chart(cache: Path) -> Path:
    write(Path("demo"), {"Chart.yaml": CHART, "templates/hook.yaml": HOOK, "templates/s.yaml": SECRET})
    return Path("demo")


@pytest.fixture
def rehearsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The inputs that were really checked."""
    done: list[str] = []
    check = seatrial.check.check

    def watched(options: object, progress: object) -> object:
        done.append(options.inputs[0])  # type: ignore[attr-defined]
        return check(options, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(seatrial.check, "check", watched)
    return done


def _entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def _ran(arguments: tuple[str, ...], capsys: Capture) -> tuple[int, str, str]:
    return main([*arguments]), *capsys.readouterr()


@pytest.mark.parametrize("name", SAME)
def test_a_story_is_the_same_from_the_cache(name: str, cache: Path, rehearsed: list[str], capsys: Capture) -> None:
    again = 0
    for scene in scenes((STORIES / name).read_text()):
        for file in scene.files:
            write(Path(), {file.attributes["file"]: file.body})
        if scene.arguments[0] != "check" or {"--fix", "--diff"} & {*scene.arguments}:
            main([*scene.arguments])
            continue
        capsys.readouterr()
        first = _ran(scene.arguments, capsys)
        before = len(rehearsed)
        assert _ran(scene.arguments, capsys) == first
        again += len(rehearsed) == before
        reports = ("json", "sarif", "junit", "github", "markdown", "concise")
        for report in reports if "-o" not in scene.arguments else ():
            fresh = _ran((*scene.arguments, "-o", report, "--no-cache"), capsys) if report == "json" else None
            known = _ran((*scene.arguments, "-o", report), capsys)
            assert fresh in (None, known)
    assert again


def test_a_change_is_rehearsed_and_a_change_back_is_not(chart: Path, rehearsed: list[str], capsys: Capture) -> None:
    assert main(["check", "demo"]) == 0
    assert main(["check", "demo"]) == 0
    assert len(rehearsed) == 1
    (chart / "values.yaml").write_text("a: 1\n")
    assert main(["check", "demo"]) == 0
    assert len(rehearsed) == 2
    (chart / "values.yaml").unlink()
    assert main(["check", "demo"]) == 0
    assert len(rehearsed) == 2
    assert main(["check", "demo", "--set", "a=1"]) == 0
    assert len(rehearsed) == 3


def test_a_folder_of_charts_is_checked_as_far_as_it_changed(cache: Path, rehearsed: list[str], capsys: Capture) -> None:
    for name in ("a", "b", "c"):
        write(Path("charts", name), {"Chart.yaml": CHART, "templates/hook.yaml": HOOK})
    first = _ran(("check", "charts"), capsys)
    assert len(_entries(cache)) == 3
    assert _ran(("check", "charts"), capsys) == first
    write(Path("charts/b"), {"templates/hook.yaml": HOOK + "data: {a: b}\n"})
    assert _ran(("check", "charts"), capsys) == first
    assert len(_entries(cache)) == 4


@pytest.mark.parametrize("flags", [("--no-cache",), ("-o", "html"), ("--diff",)])
def test_some_checks_are_not_kept(flags: tuple[str, ...], chart: Path, cache: Path, capsys: Capture) -> None:
    assert main(["check", "demo", *flags]) == 0
    assert _entries(cache) == []


def test_the_folder_is_private_and_has_no_secrets(chart: Path, cache: Path, capsys: Capture) -> None:
    main(["check", "demo"])
    (entry,) = _entries(cache)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache, entry.parent, entry)] == [0o700, 0o700, 0o600]
    assert b"pre-install" in entry.read_bytes()
    assert b"correct-horse" not in entry.read_bytes()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut off": lambda entry: entry.write_bytes(entry.read_bytes()[:-1]),
    "empty": lambda entry: entry.write_bytes(b""),
    "another byte": lambda entry: entry.write_bytes(entry.read_bytes()[:-1] + b"\xff"),
    "another program's": lambda entry: entry.write_bytes(_signed(b"\x92\x90\xc4\x01\x90")),
    "a folder": lambda entry: (entry.unlink(), entry.mkdir()),  # type: ignore[func-returns-value]
}


def _signed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest() + data


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_counts_as_none(
    damage: Callable[[Path], object], chart: Path, cache: Path, rehearsed: list[str], capsys: Capture
) -> None:
    first = _ran(("check", "demo"), capsys)
    damage(_entries(cache)[0])
    assert _ran(("check", "demo"), capsys) == first
    assert len(rehearsed) == 2


def test_without_a_private_folder_there_is_no_cache(
    chart: Path, cache: Path, rehearsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["check", "demo"])
    cache.chmod(0o777)
    assert main(["check", "demo"]) == 0
    assert len(rehearsed) == 2
    monkeypatch.setenv("XDG_CACHE_HOME", str(chart / "Chart.yaml"))
    assert main(["check", "demo"]) == 0
    assert len(rehearsed) == 3


OPENED: list[object] = []
"""What Python itself says was opened and listed; it cannot be stopped."""


def test_everything_that_is_read_is_recorded(cache: Path) -> None:
    files = {"values.yaml": "a: 1\n", "ci/x-values.yaml": "a: 2\n", "crds/c.yaml": "", ".helmignore": "*.md\n"}
    lib = {"Chart.yaml": CHART.replace("demo", "lib") + "type: library\n", "templates/_l.tpl": ""}
    needs = "dependencies:\n- {name: lib, repository: file://../lib, version: 1.0.0}\n"
    write(Path("demo"), {**files, "Chart.yaml": CHART + needs, "templates/hook.yaml": HOOK})
    write(Path("lib"), lib)
    sys.addaudithook(lambda name, of: OPENED.append(of[0]) if name in READING else None)
    OPENED.clear()
    with disk.recording() as record:
        seatrial.check.check(CheckOptions(inputs=("demo",), values=ValueFlags(files=("demo/values.yaml",))))
    here = Path.cwd()
    contents = {about.partition("\0")[0] for question, about in record.reads if question in ANSWERED}
    known = {Path(about).resolve() for about in contents}
    named = [Path(os.fsdecode(one)) for one in OPENED if isinstance(one, str | bytes | os.PathLike)]
    read = {path for path in named if path.resolve().is_relative_to(here)}
    assert record.complete and len(read) > 10
    assert [str(path) for path in read if path.resolve() not in known] == []


def test_it_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BYTES_MAX", 4000)
    for number in range(6):
        for variant in range(6):
            files.write(str(tmp_path), f"key{number}", f"{variant}", bytes(200))
        assert len([*(tmp_path / f"key{number}").iterdir()]) == files.VARIANTS_MAX
    files.trim(str(tmp_path))
    assert 0 < sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 3000
