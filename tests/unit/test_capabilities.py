"""The table of what five systems ask for: every number once, and what it names exists."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "capabilities.md").read_text()
ROW = re.compile(r"^\| (\d+)\.(\d+) \| [^|]+ \| (works|partly|missing) \| ([^|]*) \| ([^|]*)\|$", re.M)
NUMBERS = (18, 17, 19, 10, 17)
"""How many capabilities each system has."""


def test_every_number_is_there_once() -> None:
    wanted = [(str(system), str(number + 1)) for system, count in enumerate(NUMBERS) for number in range(count)]
    assert [(system, number) for system, number, *_ in ROW.findall(TEXT)] == wanted


def test_what_works_is_shown_by_tests_that_exist() -> None:
    for system, number, state, shown, lacking in ROW.findall(TEXT):
        paths = re.findall(r"\]\(([^)]+)\)", shown)
        assert bool(paths) == (state != "missing"), f"{system}.{number}"
        assert bool(lacking.strip()) == (state != "works"), f"{system}.{number}"
        assert [path for path in paths if not (DOCS / path).is_file()] == []


def test_the_sum_is_right() -> None:
    counts = Counter(state for _, _, state, *_ in ROW.findall(TEXT))
    missing = f"{counts['missing']} {'is' if counts['missing'] == 1 else 'are'} missing"
    words = f"{counts['works']} work, {counts['partly']} work in part, {missing}"
    assert words in " ".join(TEXT.split())
