"""Which resources Pulumi deletes along with one that it deletes before recreating it.

Upstream: `calculateDependentReplacements` in `pkg/resource/deploy/step_generator.go` of Pulumi 3.259, which asks the
provider what would become of a dependent if the input that is made of the other were not known. To pulumi-kubernetes
4.32 an unknown `spec` is one in which every field is gone, `spec.selector` among them, and an unknown `metadata` one
without a name: a resource that builds these from outputs is always replaced. A mere `dependsOn` is no input, and
an unknown `stringData` of a Secret replaces nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from seatrial.engines.pulumi.checkpoint import StackResource
from seatrial.engines.pulumi.diffing import covers, lost, path_of
from seatrial.engines.pulumi.replacing import makes_another
from seatrial.model.program import HELM_RELEASE, Registration


def taken_along(root: Registration, states: Iterable[StackResource], done: Collection[str]) -> list[Registration]:
    """The resources that are deleted before this one, dependents first; one that is `done` does not depend on it."""
    gone = {root.urn}
    found = []
    for one in (state.registration for state in states):
        if one.urn not in done and one.urn not in gone and _is_replaced(one, gone):
            gone.add(one.urn)
            found.append(one)
    return found


def _is_replaced(one: Registration, gone: set[str]) -> bool:
    if not one.custom or one.reads:
        return False
    if one.options.deleted_with in gone:
        return True
    made_of = {key: urns for key, urns in one.property_dependencies.items() if key != "stringData"}
    unknown = [key for key, urns in made_of.items() if not gone.isdisjoint(urns)]
    body = one.inputs if one.type == HELM_RELEASE else one.object or {}
    ignored = [path_of(path) for path in one.options.ignore_changes]
    seen = (change for change in lost(body, unknown) if not any(covers(path, change.path) for path in ignored))
    return any(makes_another(one, change) for change in seen)
