"""What happens to a registered resource: create, update, same, read, or replace.

Upstream: `pkg/resource/deploy/step_generator.go` of Pulumi 3.259 (`continueStepsFromImport`, `continueStepsFromDiff`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct

from seatrial.engines.pulumi import messages
from seatrial.engines.pulumi.autoname import called
from seatrial.engines.pulumi.checkpoint import Checkpoint, StackResource
from seatrial.engines.pulumi.dependents import taken_along
from seatrial.engines.pulumi.replacing import deletes_first, replaces, without_ignored
from seatrial.model.program import HELM_RELEASE, Registration


class Decision(Struct, frozen=True):
    """What is to be done about one resource."""

    act: Literal["leave", "read", "make", "import", "change", "replace", "refuse", "fail"]
    """`refuse` is what a preview fails with already, `fail` is not."""
    new: Registration
    old: Registration | None = None
    first: bool = False
    """Whether the old one is deleted before the new one is made, rather than at the end."""
    along: tuple[Registration, ...] = ()
    """Who is deleted before the old one, each after those that it depends on."""
    gone: bool = False
    """Whether an earlier run has deleted the old one."""
    words: str = ""
    """Why it is refused."""


def decide(
    one: Registration,
    checkpoint: Checkpoint,
    done: Collection[str] = (),
    condemned: Collection[str] = (),
    recreated: Collection[str] = (),
) -> Decision:
    """`done` are registered in this run, `condemned` are deleted in it to be recreated.

    `recreated` are all that it replaces: a resource that is `deletedWith` one of them is replaced too, and not deleted
    first for that.
    """
    checkpoint.adopt(one)
    if one.reads:
        return Decision("read", one)
    if one.object is None and one.type != HELM_RELEASE:
        return Decision("leave", one)
    state = checkpoint.get(one.urn)
    if one.options.imports and (state is None or one.options.imports not in _ids(state.registration)):
        return Decision("import", one)
    if state is None or not _is_something(state.registration) or one.urn in condemned:
        return Decision("make", one)
    old, new = state.registration, without_ignored(state.registration, one)
    if new.type == HELM_RELEASE and new.auto_named:
        new = called(new, str(old.inputs.get("name") or old.name))
    goes_with = new.options.deleted_with in recreated
    replaced = replaces(old, new, unready=state.unready)
    if state.pending or replaced or goes_with:
        return _replacement(state, new, replaced and not goes_with, checkpoint, done)
    # Of a Release only the inputs are looked at, the version of its chart among them: not what the chart renders to.
    same = old.inputs == new.inputs if new.type == HELM_RELEASE else old.object == new.object
    if same and not state.unready:
        return Decision("leave", new)
    return Decision("change", new, old)


def _ids(one: Registration) -> tuple[str, ...]:
    """The id under which it was taken over, and that which it has."""
    if one.ref is None:
        return (one.options.imports,)
    own = f"{one.ref.namespace}/{one.ref.name}" if one.ref.namespace else one.ref.name
    return (one.options.imports, own)


def _is_something(one: Registration) -> bool:
    return one.object is not None or one.type == HELM_RELEASE


def _replacement(
    state: StackResource, new: Registration, replaced: bool, checkpoint: Checkpoint, done: Collection[str]
) -> Decision:
    """What was deleted in an earlier run and not made since is replaced, whatever the program now says of it.

    Only a change that asks for it says that the old one is to go first. Without one Pulumi makes the new object and, at
    the end, deletes the old one, which it has deleted already: of Kubernetes that is the new one, under the same name.
    """
    old = state.registration
    if old.options.protect and new.options.protect:
        return Decision("refuse", new, words=messages.not_replaced(new))
    if new.options.imports:
        return Decision("fail", new, words=messages.IMPORTED)
    asked = new.options.delete_before_replace
    first = asked if asked is not None else replaced and deletes_first(old, new)
    along = taken_along(old, checkpoint, done) if first else []
    protected = next((other for other in reversed(along) if other.options.protect), None)
    if protected is not None:
        return Decision("refuse", new, words=messages.not_replaced_along(protected, new))
    return Decision("replace", new, old, first, tuple(along), state.pending)
