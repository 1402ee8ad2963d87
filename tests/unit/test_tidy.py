"""The house rules of style.md that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.rules import Explained, all_explained, page

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
BENCHES = sorted(path for folder in ("bench", "lab") for path in (ROOT / folder).rglob("*.py"))
EVERYTHING = [*SOURCES, *BENCHES, *sorted((ROOT / "tests").rglob("*.py"))]
STORIES = sorted((ROOT / "tests/scenarios").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

LINE_MAX = 120
FILE_LINES_MAX = 420
FUNCTION_LINES_MAX = 70
TRACKED_BYTES_MAX = 500_000
BINARIES = {"docs/report.png": "the screenshot in the README"}
SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc", "base", "manager"}
FRONT_DOOR = "src/seatrial/cli/front_door.py"
PAGE = ("## What happens", "## Example", "## Instead", "## Fix safety")
BROAD = re.compile(r"except\s*(\(?\s*(Base)?Exception\b|:)")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|NotImplemented" + r"Error)\b")
ASKS_THE_DISK = re.compile(
    r"(?<!tarfile)(?<!disk)\.(is_file|is_dir|exists|is_symlink|iterdir|glob|rglob|read_bytes|read_text|open|resolve|stat)\("
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
ABOUT = re.compile(r"^<!-- rule: ([a-z0-9-]+), (bad|good) -->$", re.M)


def test_no_line_is_too_long() -> None:
    assert [place for place, line in _lines([*SOURCES, *BENCHES]) if len(line) > LINE_MAX] == []


def test_no_file_is_too_long() -> None:
    assert [_name(path) for path in SOURCES if len(path.read_text().splitlines()) > FILE_LINES_MAX] == []


def test_no_function_is_too_long() -> None:
    long = [
        f"{_name(path)}: {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _length(node) > FUNCTION_LINES_MAX
    ]
    assert long == []


def test_no_module_has_a_meaningless_name() -> None:
    assert [_name(path) for path in EVERYTHING if SAY_NOTHING & set(path.relative_to(ROOT).with_suffix("").parts)] == []


def test_every_module_begins_with_a_sentence() -> None:
    assert [_name(path) for path in (*SOURCES, *BENCHES) if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_only_main_catches_everything() -> None:
    assert [place for place, line in _lines(SOURCES) if BROAD.search(line) and not place.startswith(FRONT_DOOR)] == []


def test_no_module_compiles_an_expression_when_it_is_imported() -> None:
    """`model.lazy_re` compiles it when it is used."""
    top_level = ((path, line) for path in SOURCES for line in _outside_of_functions(path))
    assert [f"{_name(path)}: {line}" for path, line in top_level if re.search(r"(?<!lazy_)\bre\.compile\(", line)] == []


def test_only_one_module_of_sources_asks_the_disk() -> None:
    """Else a cached result would not depend on the answer. What reads for Pulumi programs is never cached."""
    sources = ROOT / "src/seatrial/sources"
    own = [path for path in SOURCES if path.is_relative_to(sources) and not path.is_relative_to(sources / "pulumi")]
    before = ("disk.py", "fleetfile.py", "packing.py")  # The last two prepare checks, and are no part of one.
    others = [path for path in own if path.name not in before]
    temporary = "root = Path(folder).resolve()"
    assert [place for place, line in _lines(others) if ASKS_THE_DISK.search(line) and temporary not in line] == []


def test_nothing_is_left_unfinished() -> None:
    assert [place for place, line in _lines(EVERYTHING) if UNFINISHED.search(line)] == []


def test_no_binary_and_no_large_file_is_tracked() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this tree is not a git checkout")
    tracked = [ROOT / name for name in listed.stdout.split("\0") if name and name not in BINARIES]
    present = [path for path in tracked if path.is_file()]
    assert len(present) > len(SOURCES)
    assert [_name(path) for path in present if b"\0" in path.read_bytes()[:8000]] == []
    assert [_name(path) for path in present if path.stat().st_size > TRACKED_BYTES_MAX] == []


@pytest.mark.parametrize("rule", all_explained(), ids=lambda rule: rule.name)
def test_every_rule_has_a_page_under_its_own_name(rule: Explained) -> None:
    said = page(rule).splitlines()
    assert [part for part in PAGE if part not in said] == []


def test_every_rule_has_a_code_of_its_own() -> None:
    codes = [rule.code for rule in all_explained()]
    assert codes == sorted(set(codes))


@pytest.mark.parametrize("rule", all_explained(), ids=lambda rule: rule.name)
def test_every_rule_has_a_bad_and_a_good_scenario(rule: Explained) -> None:
    twins = {twin for path in STORIES for name, twin in ABOUT.findall(path.read_text()) if name == rule.name}
    assert twins == {"bad", "good"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_code_named_in_a_page_exists(path: Path) -> None:
    named = [link.partition("#")[0] for link in LINK.findall(path.read_text()) if "://" not in link]
    assert [link for link in named if link and not (path.parent / link).exists()] == []


def test_scenarios_are_only_about_rules_that_exist() -> None:
    names = {rule.name for rule in all_explained()}
    assert [path.name for path in STORIES for name, _ in ABOUT.findall(path.read_text()) if name not in names] == []


def _lines(paths: list[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            yield f"{_name(path)}:{number}", line


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _outside_of_functions(path: Path) -> Iterator[str]:
    module = ast.parse(path.read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return (ast.unparse(node) for node in module.body if not isinstance(node, functions))


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
