"""What is known while a script runs, what commands answer, and the ways in which one leaves it."""

from __future__ import annotations

import typing
from collections.abc import Callable

from msgspec import Struct

from seatrial.kinds.scripts.expansion import Scope
from seatrial.kinds.scripts.syntax import Node
from seatrial.model.resource import Ref


class Reply(Struct, frozen=True):
    """What a command comes to."""

    code: int | None = 0
    """None where only a run would tell."""
    says: str = ""
    missing: Ref | None = None
    """What it fails for as long as there is none of."""


class Course(Struct, frozen=True):
    """How a script goes."""

    code: int | None
    """With which it ends; None where it does not."""
    says: str = ""
    """The last words of a command that failed."""
    waits_for: tuple[Ref, ...] = ()
    """What it looks for again and again."""
    unset: str = ""
    """A variable that is compared before anything is put into it."""


Ask = Callable[[tuple[str, ...], str, tuple[str, ...]], Reply]
"""What comes of a command, by its words, what is fed to it, and the command that feeds it."""


class Exited(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


class Endless(Exception):
    """A loop came back to where it was."""


class Undecided(Exception):
    """Only a run would tell."""


class LoopLeft(Exception):
    """A loop was left, or goes on with its next turn."""

    def __init__(self, how: typing.Literal["break", "continue"]) -> None:
        self.how = how


class Returned(Exception):
    def __init__(self, code: int | None) -> None:
        self.code = code


class RunState(Struct):
    ask: Ask
    own: frozenset[str]
    """Variables that only the script itself sets."""
    scope: Scope
    exits: bool
    """`set -e`"""
    strict: bool = False
    """`set -u`"""
    guarded: bool = False
    """Whether `set -e` ignores failures here: in a condition, or before `&&` and `||`."""
    says: str = ""
    unset: str = ""
    blank: str = ""
    """The last variable that was read and is empty."""
    missing: list[Ref] = []
    functions: dict[str, Node] = {}
    hidden: dict[str, str | None] | None = None
    """What `local` variables of the function that is called hide; None outside of any."""
    ran: tuple[str, ...] = ()
    """The words of the last command."""
    last: int | None = 0
    turns: int = 0
    calls: int = 0
    depth: int = 0
