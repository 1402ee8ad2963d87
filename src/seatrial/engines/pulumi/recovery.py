"""The way out after a Pulumi that died while it created an object: the state does not have it, and the cluster does.

The next `up` warns of pending operations and goes on (pulumi/pulumi#9293). It creates the object again. The stack also
stays locked, until its lease ends or `pulumi cancel` ends it; that is not rehearsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from seatrial.engines.act import Up
from seatrial.engines.engine import PlannedStep, WayOut
from seatrial.engines.helm.recovery import as_typed, deleted_by_hand
from seatrial.engines.pulumi.helmrelease import name_in_cluster
from seatrial.engines.pulumi.refreshing import IMPORTS
from seatrial.helm.records import NAME, record_name
from seatrial.model.program import HELM_RELEASE, Registration
from seatrial.model.resource import Ref
from seatrial.model.trial import Step

RELEASES_MAX = 5
"""How many Releases of a program are tried as the one that was being created."""


def ways_out(steps: Sequence[PlannedStep[Any]], index: int, wrote: Ref) -> Iterator[WayOut]:
    """Import what was being created, or forget the release that was; and bring the program up again."""
    died = steps[index]
    if not isinstance(died.act, Up):  # A real one is not asked for its way out.
        return
    if died.step.action == "destroy":
        looks = replace(died, step=Step("refresh"), release=None)
        yield WayOut(("pulumi cancel", "pulumi refresh", "pulumi destroy"), (looks, died))
    if died.step.action != "up":
        return
    registrations = died.act.program.registrations
    if urn := next((one.urn for one in registrations if one.ref == wrote), ""):
        refresh = replace(died, step=Step("refresh", flags=(IMPORTS,)), release=None)
        known = f"{wrote.namespace}/{wrote.name}" if wrote.namespace else wrote.name
        yield WayOut(("pulumi cancel", f"pulumi refresh {IMPORTS} '{urn} {known}'", "pulumi up"), (refresh, died))
        return
    records = [wrote] if NAME.fullmatch(wrote.name) else list(_records(registrations)) if wrote.name else []
    for record in map(deleted_by_hand, records):
        yield WayOut(("pulumi cancel", as_typed(record), "pulumi up"), (record, died))


def _records(registrations: Sequence[Registration]) -> Iterator[Ref]:
    """The first records of the Releases of a program. The Helm in Pulumi refuses a name that has one."""
    releases = (one for one in registrations if one.type == HELM_RELEASE and not one.auto_named)
    for one in islice(releases, RELEASES_MAX):
        name, namespace = name_in_cluster(one)
        yield Ref("Secret", namespace, record_name(name, 1))
