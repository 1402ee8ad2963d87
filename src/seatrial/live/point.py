"""One thing that a preflight looked at, and what it found. Data only."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from seatrial.model.resource import Place

State = Literal["ok", "fails", "unknown", "note"]
"""`fails`: the release does not deploy as it should. `unknown`: it may not be read. `note`: it does no harm now."""


class Point(Struct, frozen=True, omit_defaults=True):
    state: State
    what: str
    """`Secret/shop/license`"""
    why: str = ""
    place: Place | None = None
    """Where the input needs it."""
    command: str = ""
    """What helps, or what decides."""
