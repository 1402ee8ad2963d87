"""What the input pins and does not install."""

from __future__ import annotations

from seatrial.model.release import Pin


def is_installed_separately(pin: Pin) -> str:
    return (
        f"Values disable chart {pin.chart}, so it is installed separately; {pin.source} pins {pin.version}, which is "
        f"assumed. If it is another, set it in a trial file: assume: operators: [{pin.chart}@VERSION]."
    )
