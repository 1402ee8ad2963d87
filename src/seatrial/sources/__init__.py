"""From the user's input to releases. The only package that reads files or starts processes."""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Any

from msgspec import Struct

from seatrial.model import trial
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Place
from seatrial.model.trial import ActionsOf, Trial
from seatrial.sources import disk, git
from seatrial.sources.charts.files import ChartFiles, read_archive
from seatrial.sources.files import STDIN, as_text, instead_of, read_bytes, read_text, shown
from seatrial.sources.manifests.parts import part_of
from seatrial.sources.programs import NAMES, is_program, is_recording
from seatrial.text.source import Text
from seatrial.text.yamlfile import BrokenYaml, documents


class InputKind(Struct, frozen=True):
    """What a path of the user's can be."""

    name: str
    words: str
    """In a sentence: `a chart`."""
    engine: str = ""
    """The engine that it is rehearsed with where the user names none."""


CHART = InputKind("chart", "a chart", "helm")
MANIFESTS = InputKind("manifests", "manifests", "kubectl")
TRIAL = InputKind("trial", "a trial file")
PROGRAM = InputKind("program", "a Pulumi program", "pulumi")

_GZIP = b"\x1f\x8b"


def kind_of(path: str) -> InputKind:
    """What a path of the user's is: a chart (folder or .tgz), manifests (file, folder or `-`), or a trial file."""
    if path == STDIN:
        return MANIFESTS
    if "://" in path:
        raise CannotContinue(f"{path}: charts are read from disk only; fetch it first: helm pull {path}")
    where = Path(path)
    if disk.is_dir(where):
        return _folder(where)
    if not disk.exists(where) and instead_of(where) is None:
        raise CannotContinue(f"{path}: no such file or folder")
    if sentence := part_of(path):
        raise CannotContinue(sentence)
    content = read_bytes(path, "read the file")
    if content.startswith(_GZIP):
        return CHART
    if is_recording(content):
        return PROGRAM
    return TRIAL if _is_trial(path) else MANIFESTS


def kind_at(source: str, beside: str) -> InputKind:
    """What `git:REF` names: a program, or what Pulumi wrote; else a chart."""
    tree, own = git.located(source, beside)
    if any(git.files_in(tree, posixpath.join(own, name)) for name in NAMES):
        return PROGRAM
    if git.files_in(tree, posixpath.join(own, "Chart.yaml")):
        return CHART
    return PROGRAM if own.endswith(".json") or is_program(beside) else CHART


def read_trial(path: str, actions_of: ActionsOf) -> Trial:
    return trial.parse(_first_document(path), actions_of, place=shown(path))


def line_at(place: Place) -> str | None:
    """The line at a place; None if the file cannot be read twice, such as standard input."""
    text = text_of(place.file)
    return text.line_at(place.line) if text else None


def _folder(folder: Path) -> InputKind:
    if is_program(str(folder)):
        return PROGRAM
    if disk.is_file(folder / "Chart.yaml"):
        return CHART
    return MANIFESTS


def _is_trial(path: str) -> bool:
    try:
        body = _first_document(path)
    except BrokenYaml:
        return False  # Reading it as manifests reports the error.
    return isinstance(body, dict) and "steps" in body and "kind" not in body


def _first_document(path: str) -> Any:
    return next((document.body for document in documents(read_text(path, "read the file"))), None)


def text_of(file: str) -> Text | None:
    """A file that was read before; None where that cannot be done twice, as from standard input."""
    archive, colon, _ = file.partition(".tgz:")
    doing = "read the file again"
    try:
        if git.is_ref(file):
            return _text_at(file, doing)
        if not colon:
            return read_text(file, doing)
        named = f"{archive}.tgz"
        return _text_within(read_archive(read_bytes(named, doing), named), file)
    except CannotContinue:
        return None


def _text_at(file: str, doing: str) -> Text | None:
    tree, path = git.located(file, "")
    content = git.files_in(tree, path).get("")
    return None if content is None else as_text(file, content, doing)


def _text_within(chart: ChartFiles, file: str) -> Text | None:
    own = file.removeprefix(chart.shown)
    if file.startswith(chart.shown) and own in chart.files:
        return as_text(file, chart.files[own], "read the file again")
    return next((found for inner in chart.subcharts.values() if (found := _text_within(inner, file))), None)
