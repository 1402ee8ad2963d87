"""What is known while a script runs, what commands answer, and the ways in which one leaves it."""

from __future__ import annotations

import posixpath
import typing
from collections.abc import Callable

from msgspec import Struct

from seatrial.kinds.scripts.expansion import UNKNOWN, Scope
from seatrial.kinds.scripts.process import Run
from seatrial.kinds.scripts.syntax import Block, Node
from seatrial.model.resource import Ref
from seatrial.model.timeline import ScriptLine


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
    unfollowed: typing.Literal["", "program", "change"] = ""
    """Whether an unknown program ran that may do anything, or a request to change objects was not sent."""


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
    files: dict[str, str] = {}
    """What it has written, by path."""


class OuterCommand(Struct, frozen=True):
    """A command of a script that is not the shell's own."""

    words: tuple[str, ...]
    stdin: str = ""
    feeder: tuple[str, ...] = ()
    """The words of the command whose output it reads, if that is not known."""


Ask = Callable[[OuterCommand, "RunState"], CommandReply]
"""What comes of a command."""


Unfollowed = dict[ScriptLine, bool]
"""Lines that are not followed, and whether something that they do to objects is not rehearsed."""


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
    where: str = ""
    """The working directory after `cd`; empty for that of the image."""
    patterns: tuple[str, ...] = ()
    """The words of `[[` as patterns."""
    unfollowed: Unfollowed = {}
    last: int | None = 0
    turns: int = 0
    printed: int = 0
    """How many characters its commands have printed."""
    sends: int = 0
    calls: int = 0
    depth: int = 0

    def file(self, path: str) -> str | None:
        full = self.path(path)
        return self.files[full] if full in self.files else self.mounted(full)

    def path(self, path: str) -> str:
        """A path without `.`, from the root or from the working directory of the image."""
        full = path if path.startswith("/") or not self.where else f"{self.where}/{path}"
        return posixpath.normpath(full) if full else ""

    def gives_up(self, line: ScriptLine | None = None, *, is_change: bool = True) -> None:
        """A command is not followed; `is_change`: what it, or the rest of the script, does to objects is not known."""
        found = line or self.scope.blamed or self.scope.line
        if found is not None:
            self.unfollowed[found] = is_change or self.unfollowed.get(found, False)
