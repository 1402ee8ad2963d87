"""Shell text as a tree. What its commands are was recorded with shfmt 3.14, which reads bash as bash does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from seatrial.kinds.scripts.expansion import UNKNOWN, Scope, fields, text_of
from seatrial.kinds.scripts.parser import DECLARES, parse
from seatrial.kinds.scripts.syntax import Simple, Word

RECORDED: list[tuple[str, list[list[str]] | None]] = msgspec.json.decode(
    (Path(__file__).parent / "shell_commands.json").read_bytes(),
    type=list[tuple[str, list[list[str]] | None]],
)
UNCOUNTED = ("[[", "let", *DECLARES)
"""What shfmt reads as clauses of their own."""


@pytest.mark.parametrize(("script", "commands"), RECORDED, ids=[script[:40] for script, _ in RECORDED])
def test_a_script_has_the_commands_that_bash_reads_in_it(script: str, commands: list[list[str]] | None) -> None:
    read = parse(script)
    assert read.is_whole == (commands is not None)
    if commands is not None:
        assert [words for words in _commands(read) if words[0] not in UNCOUNTED] == commands


def _commands(found: Any) -> Iterator[list[str]]:
    """The words of all commands as they are written, also of those in substitutions."""
    if isinstance(found, Simple) and found.words:
        yield [word.raw for word in found.words]
    if isinstance(found, Struct):
        for field in found.__struct_fields__:
            yield from _commands(getattr(found, field))
    elif isinstance(found, tuple):
        for one in found:
            yield from _commands(one)


def test_what_comes_before_something_unreadable_is_read() -> None:
    read = parse("a\nb | c\nif d; then")
    assert not read.is_whole
    assert list(_commands(read)) == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    "script", ["$(" * 500, "{ " * 500, "a${" * 500, "((" * 500, "a" * 300_000, "(" * 500, "if " * 500]
)
def test_a_script_without_end_is_given_up(script: str) -> None:
    assert not parse(script).is_whole


EXPANSIONS = {
    "a": ["a"],
    "'$N'": ["$N"],
    '"$N"': ["two words"],
    "$N": ["two", "words"],
    "x${N}y": ["xtwo", "wordsy"],
    'x"$N"y': ["xtwo wordsy"],
    "$E": [],
    '"$E"': [""],
    "''": [""],
    "a$E": ["a"],
    "$U": [UNKNOWN],
    "${U:-d}": ["d"],
    "${E:-d}": ["d"],
    "${E-d}": [],
    "${N:+set}": ["set"],
    "${E:+set}": [],
    "${U:+set}": [UNKNOWN],
    "${N% *}": ["two"],
    "${!N}": [UNKNOWN],
    "$(a)": [UNKNOWN],
    "$((1 + 1))": [UNKNOWN],
    r"\$N": ["$N"],
    r'"\$N \n"': [r"$N \n"],
    "$'a\\tb'": ["a\tb"],
    '"$@"': ["1", "2 3"],
    "$1-$2-$3": ["1-2", "3-"],
    "$#": ["2"],
}


@pytest.mark.parametrize(("word", "expected"), EXPANSIONS.items(), ids=EXPANSIONS)
def test_a_word_expands_as_a_shell_has_it(word: str, expected: list[str]) -> None:
    scope = Scope({"N": "two words", "E": ""}, arguments=("1", "2 3"))
    assert fields(_word(word), scope) == expected


def test_a_default_may_be_assigned() -> None:
    scope = Scope({})
    assert text_of(_word('"${A:=x y}"'), scope) == "x y"
    assert scope.variables == {"A": "x y"}


def _word(text: str) -> Word:
    node = parse(f"echo {text}").body[0].parts[0][1].stages[0]
    assert isinstance(node, Simple)
    return node.words[1]
