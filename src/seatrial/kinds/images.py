"""Whether an image can be had. Every image can, as long as nobody says that it is made in the same release."""

from __future__ import annotations

from seatrial.kinds import World


def pull_failure(image: str, world: World) -> str:
    """What the container runtime says of an image that is not there; empty where it is."""
    return ""
