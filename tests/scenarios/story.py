"""Stories: Markdown with input files, the commands a user would type, and what comes of them. See CONTRIBUTING.md."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<kind>\w*)(?P<attributes>[^\n]*)\n(?P<body>.*?)^(?P=ticks) *$", re.M | re.S)
SUBJECT = re.compile(r"^<!-- rule: (?P<rule>[a-z0-9-]+), (?P<twin>bad|good) -->$", re.M)
PROMPT = "$ seatrial "
PROSE = ("", "sh", "text")
"""Blocks that only the reader reads."""


class Block(Struct, frozen=True):
    """One fenced block, such as ```` ```timeline step=2 ````."""

    kind: str
    attributes: dict[str, str]
    body: str
    span: tuple[int, int]
    """Where the body stands in the story."""
    heading: tuple[int, int]
    """Where the attributes stand."""


class Scene(Struct, frozen=True):
    """Files that are written, a command that is run on them and on those of earlier scenes, and what is expected."""

    files: tuple[Block, ...]
    console: Block
    arguments: tuple[str, ...]
    expected: tuple[Block, ...]


class Ran(Struct, frozen=True):
    """What came of a command: its exit code, and what answers for each block below it."""

    code: int
    answer: Callable[[Block], str]


Play = Callable[[Scene], Ran]


def subjects(text: str) -> list[tuple[str, str]]:
    """The rules that a story is about: (name, `bad` where it finds something or `good` where it must not)."""
    return [(found["rule"], found["twin"]) for found in SUBJECT.finditer(text)]


def scenes(text: str) -> Iterator[Scene]:
    files: list[Block] = []
    expected: list[Block] = []
    console: Block | None = None
    for block in _blocks(text):
        if "file" in block.attributes or block.kind == "console":
            if console is not None and expected:
                yield Scene(tuple(files), console, _arguments(console), tuple(expected))
                files, expected = [], []
            if block.kind == "console":
                console = block
            else:
                files.append(block)
        elif console is not None and block.kind not in PROSE:
            expected.append(block)
    if console is not None and expected:
        yield Scene(tuple(files), console, _arguments(console), tuple(expected))


def told(text: str, play: Play) -> str:
    """The story as it really goes: files are written into the working directory, and blocks say what was seen."""
    pieces, end = [], 0
    for scene in scenes(text):
        for file in scene.files:
            _write(file)
        ran = play(scene)
        pieces += [text[end : scene.console.heading[0]], f" exit={ran.code}"]
        end = scene.console.heading[1]
        for block in scene.expected:
            pieces += [text[end : block.span[0]], _ended(ran.answer(block))]
            end = block.span[1]
    return "".join([*pieces, text[end:]])


def _blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        attributes = dict(word.partition("=")[::2] for word in found["attributes"].split())
        yield Block(found["kind"], attributes, found["body"], found.span("body"), found.span("attributes"))


def _arguments(console: Block) -> tuple[str, ...]:
    line = console.body.strip()
    if not line.startswith(PROMPT) or "\n" in line:
        raise ValueError(f"a console block holds one line that begins with {PROMPT!r}, not {line!r}")
    return tuple(shlex.split(line.removeprefix(PROMPT)))


def _write(block: Block) -> None:
    path = Path(block.attributes["file"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.body)


def _ended(text: str) -> str:
    return text.rstrip("\n") + "\n" if text.strip() else ""
