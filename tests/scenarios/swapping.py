"""Inputs of stories in which one value has another type. Knows nothing of what becomes of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from msgspec import Struct
from story import scenes

import seatrial.check
from seatrial.cli import main
from seatrial.model.errors import NothingToCheck
from seatrial.model.options import CheckOptions
from seatrial.model.result import Result

OTHERS: tuple[Any, ...] = ("text", 7, True, None, ["item"], {"key": "value"})
"""A value of each type."""
LEFT_OUT = (
    "<!-- needs:",
    "__main__.py",
    ".ts\n",
    ".py\n",
    "git:",
    "--since",
    "genCA",
    "genSelfSigned",
    "genPrivateKey",
)
"""Stories that need more than their files, or whose keys take seconds to generate."""
EXPRESSION = re.compile(r"\{\{-?.*?-?\}\}")
CONTROL = re.compile(r"^\s*\{\{-?.*\}\}\s*$", re.M)

YamlPath = tuple[str | int, ...]


class Swapped(Struct, frozen=True):
    """One file of a story in which the value at one path has another type."""

    file: str
    index: int
    """Of the document in the file."""
    path: YamlPath
    value: Any
    bodies: list[Any]
    expressions: list[str]

    @property
    def text(self) -> str:
        bodies = [_with(one, self.path, self.value) if at == self.index else one for at, one in enumerate(self.bodies)]
        dumped = str(yaml.safe_dump_all(bodies, sort_keys=False))
        return re.sub(r"EXPRESSION(\d+)E", lambda found: self.expressions[int(found[1])], dumped)

    def __str__(self) -> str:
        return f"{self.file}[{self.index}] {'.'.join(map(str, self.path))}: {self.value!r}"


class Given(Struct, frozen=True):
    """The files of a story up to its first check, and that check."""

    name: str
    files: dict[str, str]
    arguments: tuple[str, ...]

    def swaps(self) -> Iterator[Swapped]:
        for file, text in self.files.items():
            yield from _swaps(file, text)


def given(path: Path) -> Given | None:
    """None for a story that checks nothing, or whose files are not all of its input."""
    text = path.read_text()
    if any(word in text for word in LEFT_OUT):
        return None
    files: dict[str, str] = {}
    for scene in scenes(text):
        files |= {block.attributes["file"]: block.body for block in scene.files}
        if scene.arguments[0] == "check" and "--cluster" not in scene.arguments:
            return None if _is_folder(scene.arguments[1], files) else Given(path.stem, files, scene.arguments)
    return None


def _is_folder(name: str, files: dict[str, str]) -> bool:
    """Whether the input is a folder of charts, each of which is checked in a process of its own."""
    charts = [file for file in files if file.endswith("/Chart.yaml") and file.startswith(f"{name.rstrip('/')}/")]
    return len(charts) > 1 and f"{name.rstrip('/')}/Chart.yaml" not in charts


@contextmanager
def written(story: Given, folder: Path) -> Iterator[CheckOptions]:
    """The story in a folder, which is the working directory meanwhile, and the options of its check."""
    for file, text in story.files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    asked: list[CheckOptions] = []

    def check(options: CheckOptions, progress: Any) -> Result:
        asked.append(options)
        raise NothingToCheck("only the options are wanted")

    before = Path.cwd()
    os.chdir(folder)
    try:
        with patch.object(seatrial.check, "check", check):
            main(story.arguments)
        yield asked[0]
    finally:
        os.chdir(before)


def _swaps(file: str, text: str) -> Iterator[Swapped]:
    """All swaps of a YAML file. Lines with nothing but template expressions make it none."""
    if not file.endswith((".yaml", ".yml")) or CONTROL.search(text):
        return
    expressions: list[str] = []

    def hidden(found: re.Match[str]) -> str:
        expressions.append(found[0])
        return f"EXPRESSION{len(expressions) - 1}E"

    try:
        bodies = list(yaml.safe_load_all(EXPRESSION.sub(hidden, text)))
    except yaml.YAMLError:
        return
    for index, body in enumerate(bodies):
        for path, value in _paths(body, ()):
            yield from (
                Swapped(file, index, path, other, bodies, expressions)
                for other in OTHERS
                if type(other) is not type(value)
            )


def _paths(value: Any, at: YamlPath) -> Iterator[tuple[YamlPath, Any]]:
    yield at, value
    match value:
        case dict():
            for key, child in value.items():
                yield from _paths(child, (*at, key))
        case list():
            for index, child in enumerate(value):
                yield from _paths(child, (*at, index))


def _with(value: Any, path: YamlPath, other: Any) -> Any:
    if not path:
        return other
    first, *rest = path
    if isinstance(value, list):
        return [_with(one, tuple(rest), other) if at == first else one for at, one in enumerate(value)]
    return {key: _with(one, tuple(rest), other) if key == first else one for key, one in value.items()}
