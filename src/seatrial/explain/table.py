"""The table of error texts in `errors/*.toml`, as data. Knows neither rules nor how a text is matched."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

FOLDER = "seatrial.explain.errors"


class ErrorCause(Struct, frozen=True, forbid_unknown_fields=True):
    """A cause of an error. Each condition that the text fulfils moves it up; one that it contradicts removes it."""

    rule: str = ""
    text: str = ""
    """A cause that no rule reports."""
    engine: tuple[str, ...] = ()
    """By default that of the rule, if it is about one engine."""
    step: tuple[str, ...] = ()
    hook: tuple[str, ...] = ()
    """The events of the hook that runs; `none` if the text names no hook."""
    where: dict[str, str] = {}
    """Names in the text, and an expression that each must contain."""


class ErrorText(Struct, frozen=True, forbid_unknown_fields=True):
    """An error in its forms, and what to make of it."""

    name: str
    phase: str
    texts: tuple[str, ...]
    causes: tuple[ErrorCause | str, ...]
    decide: str
    """The command that decides between the causes."""
    answers: tuple[str, ...]
    """What the command prints, and which cause that means."""
    object: str = ""
    """The object of the error, where its name and kind are not enough."""
    flags: str = ""
    """Of the check that reproduces it."""
    general: int = 0
    """1 if it only says that something failed, 2 if only that time is over: any other error of the text comes first."""


class Table(Struct, frozen=True):
    phases: dict[str, str]
    """What each phase is, in one sentence."""
    errors: tuple[ErrorText, ...]


@cache
def table() -> Table:
    read = [tomllib.loads(file.read_text()) for file in _files()]
    phases = {name: about for one in read for name, about in one.get("phases", {}).items()}
    errors = [msgspec.convert(entry, ErrorText) for one in read for entry in one.get("error", ())]
    return Table(phases, tuple(errors))


def causes_of(error: ErrorText) -> tuple[ErrorCause, ...]:
    return tuple(ErrorCause(rule=cause) if isinstance(cause, str) else cause for cause in error.causes)


def _files() -> list[Any]:
    found = [file for file in files(FOLDER).iterdir() if file.name.endswith(".toml")]
    return sorted(found, key=lambda file: file.name)
