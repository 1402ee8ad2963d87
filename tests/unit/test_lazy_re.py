"""Expressions that are compiled when they are first used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from seatrial.model import lazy_re

SOURCES = Path(__file__).parents[2] / "src"
USERS = sorted(path for path in SOURCES.rglob("*.py") if "lazy_re.compile(" in path.read_text())


def test_it_is_what_re_compiles() -> None:
    lazy, compiled = lazy_re.compile(r"(\w+)=(\d)", re.I), re.compile(r"(\w+)=(\d)", re.I)
    assert lazy.fullmatch("a=1") is not None
    assert lazy.sub(r"\2", "a=1 b=2") == compiled.sub(r"\2", "a=1 b=2")
    assert (lazy.pattern, lazy.flags, lazy.groups) == (compiled.pattern, compiled.flags, compiled.groups)


def test_an_invalid_one_fails_at_its_first_use() -> None:
    invalid = lazy_re.compile("(")
    with pytest.raises(re.error):
        invalid.match("")


@pytest.mark.parametrize("path", USERS, ids=lambda path: path.stem)
def test_every_one_is_valid(path: Path) -> None:
    module = import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__"))
    found = list(_lazy(tuple(vars(module).values())))
    assert found
    for one in found:
        re.compile(one.pattern, one.flags)


def _lazy(value: Any) -> Iterator[re.Pattern[Any]]:
    match value:
        case lazy_re._Lazy():
            yield value  # type: ignore[misc]
        case tuple() | list():
            for one in value:
                yield from _lazy(one)
        case dict():
            yield from _lazy(tuple(value.values()))
