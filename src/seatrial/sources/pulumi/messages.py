"""What recorders say, and its shape: whatever else comes through their pipe is not theirs. Decides nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.model.resource import Body

LAST_WORDS = ("ended", "raised", "lacking")


class Options(Struct, frozen=True, rename="camel"):
    """Resource options, as far as their kind is relied on."""

    delete_before_replace: bool | None = None
    replace_on_changes: tuple[str, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    custom_timeouts: dict[str, str] = {}


class Register(Struct, frozen=True, rename="camel"):
    """A resource, made or read; what is read has an id."""

    type: str
    name: str
    id: str = ""
    parent: str = ""
    inputs: dict[str, Any] = {}
    dependencies: tuple[str, ...] = ()
    property_dependencies: dict[str, tuple[str, ...]] = {}
    asked: tuple[tuple[str, str], ...] = ()
    aliases: tuple[dict[str, Any], ...] = ()
    options: Options = Options()
    file: str = ""
    line: int = 0


class Call(Struct, frozen=True):
    """What a provider is asked for."""

    token: str
    args: dict[str, Any]


class Raised(Struct, frozen=True):
    """The end of a program that did not end well."""

    type: str
    message: str
    frames: tuple[tuple[str, int, str, str | None], ...] = ()


class Lacking(Struct, frozen=True):
    """The SDK is not there."""

    message: str


class Ended(Struct, frozen=True):
    """All is registered."""


SHAPES: dict[str, type[Struct]] = {
    "register": Register,
    "read": Register,
    "call": Call,
    "raised": Raised,
    "lacking": Lacking,
    "ended": Ended,
}


def understood(line: str) -> Body | None:
    """A message as the recorders write them; None where it is none."""
    try:
        message = json.loads(line)
        msgspec.convert(message, SHAPES[message["do"]])
    except (ValueError, KeyError, TypeError, RecursionError):  # msgspec's own is a ValueError
        return None
    return dict(message)
