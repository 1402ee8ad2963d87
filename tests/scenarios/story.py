"""Stories: Markdown with input files, the commands a user would type, and their output. See CONTRIBUTING.md."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

FENCE = re.compile(r"^(?P<ticks>`{3,})(?P<kind>\w*)(?P<attributes>[^\n]*)\n(?P<body>.*?)^(?P=ticks) *$", re.M | re.S)
SUBJECT = re.compile(r"^<!-- rule: (?P<rule>[a-z0-9-]+), (?P<twin>bad|good) -->$", re.M)
PROMPT = "$ seatrial "
PROSE = ("", "sh", "text")
"""Blocks that are not tested."""
COMMITTER = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "story"), ("EMAIL", "story@localhost"), ("DATE", "2026-01-01T00:00:00Z"))
    },
}
"""The same files are the same commit."""


class Block(Struct, frozen=True):
    """One fenced block, such as ```` ```timeline step=2 ````."""

    kind: str
    attributes: dict[str, str]
    body: str
    span: tuple[int, int]
    """Position of the body in the story."""
    heading: tuple[int, int]
    """Position of the attributes."""


class Scene(Struct, frozen=True):
    """Files, a command that runs on them and on those of earlier scenes, and the expected blocks."""

    files: tuple[Block, ...]
    console: Block
    arguments: tuple[str, ...]
    expected: tuple[Block, ...]


class Ran(Struct, frozen=True):
    """The result of a command: its exit code, and its output for each block below it."""

    code: int
    output: Callable[[Block], str]


Play = Callable[[Scene], Ran]


def subjects(text: str) -> list[tuple[str, str]]:
    """The rules of a story: (name, `bad` if it reports the rule or `good` if it must not)."""
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


def replayed(text: str, play: Play) -> str:
    """The story with the real output of its commands. Files are written to the working directory."""
    pieces, end = [], 0
    for scene in scenes(text):
        for file in scene.files:
            write(file)
        ran = play(scene)
        pieces += [text[end : scene.console.heading[0]], f" exit={ran.code}"]
        end = scene.console.heading[1]
        for block in scene.expected:
            pieces += [text[end : block.span[0]], _ended(ran.output(block))]
            end = block.span[1]
    return "".join([*pieces, text[end:]])


def _blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        attributes = dict(word.partition("=")[::2] for word in found["attributes"].split())
        yield Block(found["kind"], attributes, found["body"], found.span("body"), found.span("attributes"))


def _arguments(console: Block) -> tuple[str, ...]:
    line = console.body.strip()
    if not line.startswith(PROMPT) or "\n" in line:
        raise ValueError(f"a console block has one line that starts with {PROMPT!r}, not {line!r}")
    return tuple(shlex.split(line.removeprefix(PROMPT)))


def write(block: Block) -> None:
    """Write a file of a story; `commit=v1` commits all files so far, under this tag."""
    path = Path(block.attributes["file"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.body, encoding="utf-8")
    if tag := block.attributes.get("commit"):
        for command in (("init", "-b", "main"), ("add", "--all"), ("commit", "-m", tag), ("tag", tag)):
            subprocess.run(("git", *command), check=True, capture_output=True, env={**os.environ, **COMMITTER})


def _ended(text: str) -> str:
    return text.rstrip("\n") + "\n" if text.strip() else ""
