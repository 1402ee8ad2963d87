"""Which engine, in which version, and what its actions are. Knows no engine by name."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Role = Literal["install", "replace", "back", "remove", "other"]
"""What an action does to a release: deploy it where there is none, deploy it over an existing one (or where there is
none), return to an earlier revision, remove it; or none of these."""
Takes = Literal["source", "optional source", "revision", "nothing"]


class EngineId(Struct, frozen=True, order=True, omit_defaults=True):
    """An engine as users write it: `helm@4.2.3`, or `helm` for the default version; `kubectl@1.34.2 (real)`."""

    name: str
    version: str = ""
    real: bool = False
    """Whether a binary of the user ran in place of the one that is built in or simulated."""

    def __str__(self) -> str:
        text = f"{self.name}@{self.version}" if self.version else self.name
        return f"{text} (real)" if self.real else text

    @property
    def major(self) -> str:
        return self.version.removeprefix("v").partition(".")[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version to compare with: `(4, 2, 3)`."""
        parts = self.version.removeprefix("v").split(".")[:3]
        return tuple(int(digits) for part in parts if (digits := part.partition("-")[0]).isdigit())


class Action(Struct, frozen=True):
    """One action of an engine: a step of a trial."""

    name: str
    """As in a trial file: `upgrade`."""
    role: Role
    words: str
    """As in sentences: `helm upgrade`, `the sync`."""
    takes: Takes = "source"
    """What follows the name in a trial file."""
    shows: tuple[str, ...] = ()
    """Flags that are named with the action: `kubectl apply --prune`."""
    unordered: tuple[str, ...] = ()
    """Requests that are sent concurrently for all objects of a kind."""

    def called(self, flags: tuple[str, ...]) -> str:
        """The name in sentences, with these flags."""
        return " ".join((self.words, *(flag for flag in self.shows if flag in flags)))


def engine_id(text: str) -> EngineId:
    """Read `helm@4.2.3` or `helm`."""
    name, _, version = text.partition("@")
    return EngineId(name, version)
