"""A schedule between the bounds: a fast cluster with some slow objects, or a slow one with some fast ones. Data."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.model.timeline import ORDINARY, Schedule

Base = Literal["eager", "lazy"]


class Mix(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which objects are as slow, or as fast, as no other."""

    base: Base
    slow: tuple[str, ...] = ()
    """With base eager: objects, `Kind/namespace/name`, whose controllers and pods only act when the engine waits for
    them."""
    fast: tuple[str, ...] = ()
    """With base lazy: objects whose controllers and pods act at once."""

    @property
    def swaps(self) -> tuple[str, ...]:
        """The objects that differ from the base."""
        return self.slow if self.base == "eager" else self.fast

    def without(self, name: str) -> Mix:
        return mixed(self.base, tuple(other for other in self.swaps if other != name))

    def is_fast(self, name: str) -> bool:
        return (name in self.fast) if self.base == "lazy" else (name not in self.slow)

    def __str__(self) -> str:
        """As in a file, on one line: `{base: eager, slow: [Deployment/default/web]}`."""
        listed = ", ".join(self.swaps)
        return f"{{base: {self.base}, {'slow' if self.base == 'eager' else 'fast'}: [{listed}]}}"


class Pacing(Struct, frozen=True):
    """How fast a cluster is."""

    schedule: Schedule = ORDINARY
    seed: int = 0
    """Of the schedule `seeded`."""
    mix: Mix | None = None
    """The schedule `mixed`."""


def mixed(base: Base, swaps: tuple[str, ...]) -> Mix:
    return Mix(base, slow=swaps) if base == "eager" else Mix(base, fast=swaps)


def parse(text: bytes, place: str) -> Mix:
    """Read a schedule file; `place` names it in errors."""
    try:
        mix = msgspec.yaml.decode(text, type=Mix)
    except (msgspec.ValidationError, msgspec.DecodeError) as wrong:
        raise CannotContinue(f"{place}: {wrong}") from None
    if (mix.base == "eager" and mix.fast) or (mix.base == "lazy" and mix.slow):
        raise CannotContinue(f"{place}: base eager takes `slow`, base lazy takes `fast`")
    return mix
