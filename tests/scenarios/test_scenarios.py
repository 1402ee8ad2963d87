"""Every story in this folder shows what its commands print; `pytest --update` rewrites the expected blocks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from difflib import unified_diff
from pathlib import Path

import pytest
from alone import Judged, bad_rules, is_good, listed, only_alone, unseen, unseen_by_reason
from planted import Planted, formats
from recording import FOLDER, arguments, keep, recordings
from serving import KUBECONFIG, cluster_of, served
from stable import Stable
from story import Block, Ran, Scene, replayed, scenes, subjects

import seatrial.check
import seatrial.judging
from seatrial.cli import main
from seatrial.evidence.causes import overlaps
from seatrial.evidence.compare.engine_differences import ComparedRehearsal
from seatrial.model.finding import Finding, Rule
from seatrial.model.options import CheckOptions
from seatrial.model.result import Result
from seatrial.model.timeline import SCHEDULES, Rehearsal
from seatrial.phrases.step_numbers import NOT_KNOWN, explained_objects, sentence, unexplained
from seatrial.report import concise, timeline
from seatrial.report.page import Page
from seatrial.rules import all_rules

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FRONT_PAGES = (README, ROOT / "docs" / "index.md")
NEEDS_NODE = "<!-- needs: node -->"
NEEDS_KUSTOMIZE = "<!-- needs: kustomize -->"
NEEDS_KUBECTL = "<!-- needs: kubectl -->"
STORIES = sorted(Path(__file__).parent.glob("*.md"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_story(path: Path, stage: Stage, update: bool, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    _skip_without_programs(path)
    if request.config.getoption("--record"):
        stage.recordings = recordings(path.read_text()) or pytest.skip("has no recording")
    if NEEDS_NODE in path.read_text():
        (tmp_path / "node_modules").symlink_to(request.getfixturevalue("node_packages"))
    _hold(path, stage, update)


@pytest.mark.parametrize("path", FRONT_PAGES, ids=lambda path: path.stem)
def test_front_pages_show_real_output(path: Path, stage: Stage, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    stage.exact = True
    _hold(path, stage, update)


@pytest.mark.parametrize("path", [*STORIES, *FRONT_PAGES], ids=lambda path: path.stem)
def test_every_command_states_its_exit_code(path: Path) -> None:
    stated = [scene.console.attributes.get("exit", "") for scene in scenes(path.read_text())]
    assert [code for code in stated if code not in ("0", "1", "2", "3")] == []


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_only_the_bad_twin_reports_its_rule(path: Path) -> None:
    for name, twin in subjects(path.read_text()):
        reported = [name in block.body for scene in scenes(path.read_text()) for block in scene.expected]
        assert any(reported) is (twin == "bad")


def test_the_list_of_unseen_stories_names_bad_stories() -> None:
    bad = {(rule, path.stem) for path in STORIES for rule in bad_rules(path.read_text())}
    named = {(rule, name) for rules in unseen_by_reason().values() for rule in rules for name in rules[rule]}
    assert named - bad == set()


def test_every_recording_is_of_a_story(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--record"):
        pytest.skip("recordings are being renewed")
    named = [name for path in STORIES for name, _ in recordings(path.read_text()).values()]
    assert sorted(named) == sorted(path.stem for path in FOLDER.glob("*.json"))


class Stage:
    """Runs commands as a user would, and keeps the results that they report."""

    def __init__(self, capsys: pytest.CaptureFixture[str], servers: ExitStack) -> None:
        self._capsys = capsys
        self._servers = servers
        self.cluster = ""
        """A file with the objects of a cluster that is not served yet."""
        self._check = seatrial.check.check
        self._findings = seatrial.judging.findings
        self.results: list[Result] = []
        self.judged: list[Judged] = []
        self.planted = Planted()
        self.printed: list[str] = []
        self.recordings: dict[int, tuple[str, str]] = {}
        """What to record, by the command."""
        self.exact = False
        """Whether the output is shown as printed, with event numbers and generated names."""

    def check(self, options: CheckOptions, progress: Callable[[str], None]) -> Result:
        self.results.append(self._check(options, progress))
        return self.results[-1]

    def findings(
        self, seen: Sequence[ComparedRehearsal], rules: Sequence[Rule], schedules: Collection[str] = SCHEDULES
    ) -> list[Finding]:
        together = self._findings(seen, rules, schedules)
        self.planted.add(seen)
        if not any(one.rehearsal.repaired for one in seen):
            self.judged.append(Judged(together, self._findings(seen, ())))
        return together

    def play(self, scene: Scene) -> Ran:
        before = len(self.results)
        if self.cluster:
            self._servers.enter_context(served(self.cluster))
            self.cluster = ""
        code = main(scene.arguments)
        out, err = self._capsys.readouterr()
        self.printed += (out, err)
        if code > 1 and err and all(block.kind != "error" for block in scene.expected):
            pytest.fail(f"{' '.join(scene.arguments)}: exit code {code}, and no error block: {err}")
        result = self.results[-1] if len(self.results) > before else None
        if recording := self.recordings.get(scene.console.heading[0]):
            name, schedule = recording
            main(arguments(scene.arguments, schedule))
            keep(name, self._capsys.readouterr().out)
        stable = Stable()
        if self.exact:
            return Ran(code, lambda block: _seen(block, out, err, result))
        return Ran(code, lambda block: stable.shown(_seen(block, out, err, result)))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Stage]:
    """Runs commands in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / KUBECONFIG))
    with ExitStack() as servers:
        made = Stage(capsys, servers)
        monkeypatch.setattr(seatrial.check, "check", made.check)
        monkeypatch.setattr(seatrial.check, "findings", made.findings)
        yield made


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


def _skip_without_programs(path: Path) -> None:
    text = path.read_text()
    if NEEDS_KUBECTL in text and not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    if NEEDS_KUSTOMIZE in text and not any(map(shutil.which, ("kustomize", "kubectl"))):
        pytest.skip("neither kustomize nor kubectl is installed")


def _hold(path: Path, stage: Stage, update: bool) -> None:
    """Compare a story with the output of its commands, or update it."""
    expected = path.read_text()
    stage.cluster = cluster_of(expected)
    seen = replayed(expected, stage.play)
    assert [pair for result in stage.results for pair in _reported_twice(result)] == []
    assert [number for result in stage.results for number in _without_a_reason(result)] == []
    assert list(unseen(bad_rules(expected), stage.judged)) == listed(path.stem), "see unseen.yaml"
    assert not is_good(expected) or list(only_alone(stage.judged)) == []
    if stage.planted:
        assert stage.planted.shown_in((*stage.printed, *formats(stage.results))) == []
    if update:
        path.write_text(seen)
    elif seen != expected:
        lines = unified_diff(expected.splitlines(), seen.splitlines(), "expected", "seen", lineterm="")
        pytest.fail("\n".join((f"{path.name} has changed (pytest --update rewrites it):", *lines)), pytrace=False)


def _reported_twice(result: Result) -> Iterator[tuple[str, str, int]]:
    """Pairs of rules that report the same rejection, wait or loss in one step. An invariant may repeat a race."""
    rules = {rule.name for rule in all_rules()}
    for played in (*result.played, *result.continued):
        rehearsal = played.rehearsal
        shown_by = (rehearsal.engine, rehearsal.schedule, played.case, rehearsal.repaired)
        found = (finding for finding in result.findings if finding.rule in rules)
        own = [f for f in found if (f.engines[0], f.schedules[0], f.case, f.after) == shown_by]
        yield from ((one.rule, other.rule, one.step) for one, other in overlaps(own, played.rehearsal))


def _without_a_reason(result: Result) -> Iterator[str]:
    """Numbers of step tables that neither a finding nor a sentence explains."""
    explained = explained_objects(result.played, result.findings)
    for played in result.played:
        for step, numbers in zip(played.rehearsal.steps, played.numbers, strict=True):
            unknown = (number for number in unexplained(numbers, explained) if number.why == NOT_KNOWN)
            yield from (f"{step.action}: {sentence(number)}" for number in unknown)


def _seen(block: Block, out: str, err: str, result: Result | None) -> str:
    """The output of the command that one block shows."""
    match block.kind:
        case "report":
            return _part(out, block.attributes.get("from", ""))
        case "error":
            return err
        case "findings" if result is not None:
            return concise.render(result, Page(quiet=True)) or "none"
        case "timeline":
            return _steps(timeline.render(_rehearsal(block, result), Page()) if result is not None else out, block)
    raise ValueError(f"no output for a block {block.kind!r} after this command")


def _part(text: str, begins: str) -> str:
    """The whole text, or from the line with this beginning to the end of its paragraph."""
    if not begins:
        return text
    return re.split(rf"^(?= *{re.escape(begins)}\b)", text, maxsplit=1, flags=re.M)[1].split("\n\n")[0]


def _rehearsal(block: Block, result: Result) -> Rehearsal:
    wanted = block.attributes
    return next(
        played.rehearsal
        for played in result.played
        if played.rehearsal.schedule == wanted.get("schedule", played.rehearsal.schedule)
        and str(played.rehearsal.engine).startswith(wanted.get("engine", ""))
    )


def _steps(text: str, block: Block) -> str:
    """The whole timeline, or the step in the attributes of the block."""
    if "step" not in block.attributes:
        return text
    steps = re.split(r"^(?=\d+  )", text, flags=re.M)
    return next(part for part in steps if part.startswith(f"{block.attributes['step']}  ")).split("\n\n")[0]
