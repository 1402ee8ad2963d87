"""`-o FORMAT` and `-o FORMAT=FILE`: which reports are written, and where. Renders none of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from seatrial.cli import terminal
from seatrial.model.errors import CannotContinue
from seatrial.report import FORMATS, Output

DEFAULT: Output = "full"
STANDARD_OUTPUT = "-"


class ReportTarget(Struct, frozen=True):
    """One report: its format and its file, which is empty for standard output."""

    format: Output
    file: str = ""

    def __str__(self) -> str:
        return f"-o {self.format}={self.file}" if self.file else f"-o {self.format}"


def parse(given: Sequence[str]) -> tuple[ReportTarget, ...]:
    """The reports to write, that on standard output first. Every path is checked before anything is rehearsed."""
    targets = [_target(text) for text in given]
    printed = [target for target in targets if not target.file] or [ReportTarget(DEFAULT)]
    if len(printed) > 1:
        one, other, *_ = printed
        raise CannotContinue(
            f"{one} and {other}: only one report can go to standard output; write the other to a file, as in "
            f"{other}=FILE"
        )
    files = [target for target in targets if target.file]
    for target in files:
        _check_path(target, [other for other in files if other is not target])
    return (*printed, *files)


def write(targets: Sequence[ReportTarget], render: Callable[[ReportTarget], str]) -> None:
    """Write files first, so that they exist even if a reader closes standard output."""
    for target in sorted(targets, key=lambda target: not target.file):
        if target.file:
            write_file(target.file, render(target), f"{target}: cannot write the report")
        else:
            terminal.write(render(target))


def _target(text: str) -> ReportTarget:
    name, _, file = text.partition("=")
    found = next((known for known in FORMATS if known == name), None)
    if found is None:
        close = get_close_matches(name, FORMATS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"use one of {', '.join(FORMATS)}"
        raise CannotContinue(f"-o {text}: {name!r} is not a format; {hint}")
    if "=" in text and not file:
        raise CannotContinue(f"-o {text}: the name of the file is missing; -o {name} writes to standard output")
    return ReportTarget(found, "" if file == STANDARD_OUTPUT else file)


def _check_path(target: ReportTarget, others: Sequence[ReportTarget]) -> None:
    path = Path(target.file)
    if path.is_dir():
        raise CannotContinue(f"{target}: {target.file} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise CannotContinue(f"{target}: the directory {path.parent} does not exist; create it first")
    if any(path.resolve() == Path(other.file).resolve() for other in others):
        raise CannotContinue(f"{target}: another report is written to the same file")


def write_file(file: str, text: str, failure: str) -> None:
    """Write a file as a whole: a reader sees the old content or the new one. Pipes and devices are written directly."""
    path, content = Path(file), text.encode(errors="backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        path = path.resolve()
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            beside.write_bytes(content)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as why:
        raise CannotContinue(f"{failure}: {why.strerror or why}") from None
