"""Every story of this folder goes as it is told; `pytest --update` tells it anew."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from difflib import unified_diff
from pathlib import Path

import pytest
from recording import FOLDER, arguments, keep, recordings
from story import Block, Ran, Scene, scenes, subjects, told

import seatrial.check
from seatrial.cli import main
from seatrial.evidence.causes import overlaps
from seatrial.model.result import Result
from seatrial.model.timeline import Rehearsal
from seatrial.plan.plans import CheckOptions
from seatrial.report import concise, timeline
from seatrial.report.page import Page
from seatrial.rules import all_rules

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
NEEDS_NODE = "<!-- needs: node -->"
NEEDS_KUSTOMIZE = "<!-- needs: kustomize -->"
STORIES = sorted(Path(__file__).parent.glob("*.md"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_goes_as_it_is_told(
    path: Path, stage: Stage, update: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    _skip_where_nobody_builds(path)
    if request.config.getoption("--record"):
        stage.recordings = recordings(path.read_text()) or pytest.skip("has no recording")
    if NEEDS_NODE in path.read_text():
        (tmp_path / "node_modules").symlink_to(request.getfixturevalue("node_packages"))
    _hold(path, stage, update)


def test_the_readme_shows_what_really_happens(stage: Stage, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _hold(README, stage, update)


@pytest.mark.parametrize("path", [*STORIES, README], ids=lambda path: path.stem)
def test_every_command_states_its_exit_code(path: Path) -> None:
    stated = [scene.console.attributes.get("exit", "") for scene in scenes(path.read_text())]
    assert [code for code in stated if code not in ("0", "1", "2", "3")] == []


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_the_story_tells_of_its_hazard_where_it_is_the_bad_twin_and_only_there(path: Path) -> None:
    for name, twin in subjects(path.read_text()):
        told_of = [name in block.body for scene in scenes(path.read_text()) for block in scene.expected]
        assert any(told_of) is (twin == "bad")


def test_every_recording_is_of_a_story(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--record"):
        pytest.skip("recordings are being renewed")
    named = [name for path in STORIES for name, _ in recordings(path.read_text()).values()]
    assert sorted(named) == sorted(path.stem for path in FOLDER.glob("*.json"))


class Stage:
    """Runs commands as a user would, and overhears the results that they report."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._check = seatrial.check.check
        self.results: list[Result] = []
        self.recordings: dict[int, tuple[str, str]] = {}
        """What to record, by the command."""

    def check(self, options: CheckOptions, progress: Callable[[str], None]) -> Result:
        self.results.append(self._check(options, progress))
        return self.results[-1]

    def play(self, scene: Scene) -> Ran:
        heard = len(self.results)
        code = main(scene.arguments)
        out, err = self._capsys.readouterr()
        if code > 1 and all(block.kind != "error" for block in scene.expected):
            pytest.fail(f"{' '.join(scene.arguments)}: exit code {code}, and no block for the error: {err}")
        result = self.results[-1] if len(self.results) > heard else None
        if recording := self.recordings.get(scene.console.heading[0]):
            name, schedule = recording
            main(arguments(scene.arguments, schedule))
            keep(name, self._capsys.readouterr().out)
        return Ran(code, lambda block: _seen(block, out, err, result))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Stage:
    """An empty working directory, and everyone in place."""
    monkeypatch.chdir(tmp_path)
    made = Stage(capsys)
    monkeypatch.setattr(seatrial.check, "check", made.check)
    return made


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


def _skip_where_nobody_builds(path: Path) -> None:
    if NEEDS_KUSTOMIZE in path.read_text() and not any(map(shutil.which, ("kustomize", "kubectl"))):
        pytest.skip("nobody here builds kustomizations")


def _hold(path: Path, stage: Stage, update: bool) -> None:
    """Hold a story against what really happens; or write down what does."""
    expected = path.read_text()
    seen = told(expected, stage.play)
    assert [pair for result in stage.results for pair in _reported_twice(result)] == []
    if update:
        path.write_text(seen)
    elif seen != expected:
        lines = unified_diff(expected.splitlines(), seen.splitlines(), "told", "seen", lineterm="")
        pytest.fail("\n".join((f"{path.name} goes otherwise (pytest --update tells it anew):", *lines)), pytrace=False)


def _reported_twice(result: Result) -> Iterator[tuple[str, str, int]]:
    """Pairs of rules that report the same rejection, wait or loss in one step. An invariant may repeat a race."""
    rules = {rule.name for rule in all_rules()}
    for played in result.played:
        shown_by = (played.rehearsal.engine, played.rehearsal.schedule, played.case)
        found = (finding for finding in result.findings if finding.rule in rules)
        own = [f for f in found if (f.engines[0], f.schedules[0], f.case) == shown_by]
        yield from ((one.rule, other.rule, one.step) for one, other in overlaps(own, played.rehearsal))


def _seen(block: Block, out: str, err: str, result: Result | None) -> str:
    """What really came of the command, in the words of one block."""
    match block.kind:
        case "report":
            return _part(out, block.attributes.get("from", ""))
        case "error":
            return err
        case "findings" if result is not None:
            return concise.render(result, Page(quiet=True)) or "none"
        case "timeline":
            return _steps(timeline.render(_rehearsal(block, result), Page()) if result is not None else out, block)
    raise ValueError(f"no command before a block {block.kind!r} that could answer for it")


def _part(text: str, begins: str) -> str:
    """All of a text, or from the line that begins so to the end of its paragraph."""
    if not begins:
        return text
    return re.split(rf"^(?= *{re.escape(begins)}\b)", text, maxsplit=1, flags=re.M)[1].split("\n\n")[0]


def _rehearsal(block: Block, result: Result) -> Rehearsal:
    asked = block.attributes
    return next(
        played.rehearsal
        for played in result.played
        if played.rehearsal.schedule == asked.get("schedule", played.rehearsal.schedule)
        and str(played.rehearsal.engine).startswith(asked.get("engine", ""))
    )


def _steps(text: str, block: Block) -> str:
    """The whole timeline, or the one step that the block asks for."""
    if "step" not in block.attributes:
        return text
    steps = re.split(r"^(?=\d+  )", text, flags=re.M)
    return next(part for part in steps if part.startswith(f"{block.attributes['step']}  ")).split("\n\n")[0]
