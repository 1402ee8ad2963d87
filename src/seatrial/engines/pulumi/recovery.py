"""The way out after a Pulumi that died while it created an object: the state does not have it, and the cluster does.

The next `up` warns of pending operations and goes on (pulumi/pulumi#9293). It creates the object again. The stack also
stays locked, until its lease ends or `pulumi cancel` ends it; that is not rehearsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.engines.engine import PlannedStep, WayOut
from seatrial.engines.pulumi.refreshing import IMPORTS
from seatrial.model.resource import Ref
from seatrial.model.trial import Step


def ways_out(steps: Sequence[PlannedStep[Any]], index: int, wrote: Ref) -> Iterator[WayOut]:
    """Import what was being created, and bring the program up again."""
    died = steps[index]
    urn = next((one.urn for one in died.act.program.registrations if one.ref == wrote), "")
    if died.step.action != "up" or not urn:
        return
    refresh = replace(died, step=Step("refresh", flags=(IMPORTS,)), release=None)
    known = f"{wrote.namespace}/{wrote.name}" if wrote.namespace else wrote.name
    yield WayOut(("pulumi cancel", f"pulumi refresh {IMPORTS} '{urn} {known}'", "pulumi up"), (refresh, died))
