"""What is known while a script runs, what commands answer, and the ways in which one leaves it."""

from __future__ import annotations

import typing
from collections.abc import Callable

from msgspec import Struct

from seatrial.kinds.scripts.expansion import UNKNOWN, Scope
from seatrial.kinds.scripts.process import Run
from seatrial.kinds.scripts.syntax import Block, Node
from seatrial.model.resource import Ref


class CommandReply(Struct, frozen=True):
    """What a command comes to."""

    code: int | None = 0
    """None where only a run would tell."""
    says: str = ""
    """What it prints as an error."""
    missing: Ref | None = None
    """What it fails for as long as there is none of."""
    out: str = UNKNOWN
    """What it prints."""
    in_time: bool = False
    """Whether it may succeed later, although no object is named that is missing."""


class Course(Struct, frozen=True):
    """How a script goes."""

    code: int | None
    """With which it ends; None where it does not, or not yet."""
    says: str = ""
    """The last words of a command that failed."""
    waits_for: tuple[Ref, ...] = ()
    """What it looks for again and again, or fails without."""
    unset: str = ""
    """A variable that is compared before anything is put into it."""
    until_seconds: float | None = None
    """When it goes on by itself, on the clock of the cluster."""
    in_time: bool = False
    """Whether a failure may be cured by time."""


class OuterCommand(Struct, frozen=True):
    """A command of a script that is not the shell's own."""

    words: tuple[str, ...]
    stdin: str = ""
    feeder: tuple[str, ...] = ()
    """The words of the command whose output it reads, if that is not known."""


Ask = Callable[[OuterCommand, "RunState"], CommandReply]
"""What comes of a command."""


class Exited(Exception):
    def __init__(self, code: int) -> None:
        self.code = code


class LoopLeft(Exception):
    """A loop was left, or goes on with its next turn."""

    def __init__(self, how: typing.Literal["break", "continue"], levels: int = 1) -> None:
        self.how = how
        self.levels = levels


class Returned(Exception):
    def __init__(self, code: int | None) -> None:
        self.code = code


class RunState(Struct):
    ask: Ask
    run: Run
    own: frozenset[str]
    """Variables that only the script itself sets."""
    scope: Scope
    block: Callable[[Block, RunState], int | None]
    """Runs commands of the tree."""
    node: Callable[[Node, RunState, tuple[str, ...]], int | None]
    exits: bool
    """`set -e`"""
    strict: bool = False
    """`set -u`"""
    pipefail: bool = False
    guarded: bool = False
    """Whether `set -e` ignores failures here: in a condition, or before `&&` and `||`."""
    says: str = ""
    unset: str = ""
    blank: str = ""
    """The last variable that was read and is empty."""
    missing: list[Ref] = []
    in_time: bool = False
    functions: dict[str, Node] = {}
    hidden: dict[str, str | None] | None = None
    """What `local` variables of the function that is called hide; None outside of any."""
    ran: tuple[str, ...] = ()
    """The words of the last command."""
    out: list[str] = []
    """What is printed here: to the container's log, into a pipe, a variable or a file."""
    stdin: str = ""
    """What a pipe feeds."""
    files: dict[str, str] = {}
    """What the script has written, by path."""
    mounted: Callable[[str], str | None] = lambda path: None
    """The text of a file that is mounted; None where there is none, or it is not known."""
    last: int | None = 0
    turns: int = 0
    sends: int = 0
    calls: int = 0
    depth: int = 0

    def file(self, path: str) -> str | None:
        return self.files[path] if path in self.files else self.mounted(path)
