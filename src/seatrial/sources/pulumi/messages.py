"""The messages of the recorders. Anything else that comes through their pipe is refused. Decides nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Struct

from seatrial.model.resource import Body

FINAL_MESSAGES = ("ended", "raised", "lacking")


class OptionsMessage(Struct, frozen=True, rename="camel"):
    """Resource options whose types matter here."""

    delete_before_replace: bool | None = None
    replace_on_changes: tuple[str, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    custom_timeouts: dict[str, str] = {}


class RegisterMessage(Struct, frozen=True, rename="camel"):
    """A registered or read resource; one that is read has an id."""

    type: str
    name: str
    id: str = ""
    parent: str = ""
    inputs: dict[str, Any] = {}
    dependencies: tuple[str, ...] = ()
    property_dependencies: dict[str, tuple[str, ...]] = {}
    asked: tuple[tuple[str, str], ...] = ()
    aliases: tuple[dict[str, Any], ...] = ()
    options: OptionsMessage = OptionsMessage()
    file: str = ""
    line: int = 0


class CallMessage(Struct, frozen=True):
    """A function call of a provider."""

    token: str
    args: dict[str, Any]


class RaisedMessage(Struct, frozen=True):
    """The program ended with an exception."""

    type: str
    message: str
    frames: tuple[tuple[str, int, str, str | None], ...] = ()


class LackingMessage(Struct, frozen=True):
    """The Pulumi SDK is not installed."""

    message: str


class EndedMessage(Struct, frozen=True):
    """The program ended normally."""


SHAPES: dict[str, type[Struct]] = {
    "register": RegisterMessage,
    "read": RegisterMessage,
    "call": CallMessage,
    "raised": RaisedMessage,
    "lacking": LackingMessage,
    "ended": EndedMessage,
}


def understood(line: str) -> Body | None:
    """A message of a recorder; None if the line is not one."""
    try:
        message = json.loads(line)
        msgspec.convert(message, SHAPES[message["do"]])
    except (ValueError, KeyError, TypeError, RecursionError):  # msgspec's own is a ValueError
        return None
    return dict(message)
