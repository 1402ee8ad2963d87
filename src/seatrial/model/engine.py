"""Which engine, in which version. Knows no engine by name."""

from __future__ import annotations

from msgspec import Struct


class EngineId(Struct, frozen=True, order=True):
    """An engine as users write it: `helm@4.2.3`, or `helm` for the default version."""

    name: str
    version: str = ""

    def __str__(self) -> str:
        return f"{self.name}@{self.version}" if self.version else self.name

    @property
    def major(self) -> str:
        return self.version.removeprefix("v").partition(".")[0]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version to compare with: `(4, 2, 3)`."""
        parts = self.version.removeprefix("v").split(".")[:3]
        return tuple(int(digits) for part in parts if (digits := part.partition("-")[0]).isdigit())


def engine_id(text: str) -> EngineId:
    """Read `helm@4.2.3` or `helm`."""
    name, _, version = text.partition("@")
    return EngineId(name, version)
