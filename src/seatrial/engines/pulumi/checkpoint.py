"""The state of a stack between two runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engines.helm.v3 import Shelf
from seatrial.engines.pulumi.autoname import called
from seatrial.model.program import HELM_RELEASE, Registration
from seatrial.model.resource import metadata, with_metadata


class StackResource(Struct, frozen=True):
    """One resource as it was last made or changed."""

    registration: Registration
    unready: bool = False
    """It was created, and awaiting it failed: the next run retries."""
    pending: bool = False
    """It was deleted so that another could take its place, which has not been made so far."""


class Checkpoint:
    """The state of one stack, while trials change it: each resource after those that it depends on."""

    def __init__(self) -> None:
        self._states: dict[str, StackResource] = {}
        self._replaced: list[Registration] = []
        self.creating: dict[str, Registration] = {}
        """What is being created: pending operations, which a run that dies leaves behind."""
        self._left: dict[str, Registration] = {}
        """What a run that died was creating, while it is created again."""
        self.releases: Shelf = {}
        """What Helm has recorded of the Releases among them."""

    def get(self, urn: str) -> StackResource | None:
        return self._states.get(urn)

    def adopt(self, one: Registration) -> None:
        """A resource that is known under one of its aliases goes by its new URN from now on, with all who name it."""
        known = next((urn for urn in one.aliases if urn in self._states), None)
        if one.urn in self._states or known is None:
            return
        self._states = {
            one.urn if urn == known else urn: replace(state, registration=_renamed(state.registration, known, one.urn))
            for urn, state in self._states.items()
        }

    def put(self, registration: Registration, *, unready: bool = False) -> None:
        self._states.pop(registration.urn, None)  # It may depend on others than before: its place is the last one.
        self._states[registration.urn] = StackResource(registration, unready)

    def begin(self, one: Registration) -> Registration:
        """Note that a resource is being created. If an earlier run died while it created it, it gets another name.

        Only a name that the program leaves to Pulumi does: the provider makes it from a new random seed.
        """
        died = self.creating.get(one.urn)
        if died is not None and one.auto_named and one.object is not None and died.object is not None:
            name = (
                f"{str(metadata(one.object)['name']).rpartition('-')[0]}-{_suffix(str(metadata(died.object)['name']))}"
            )
            one = replace(one, object=with_metadata(one.object, name=name), ref=one.ref and replace(one.ref, name=name))
        if died is not None and one.auto_named and one.type == HELM_RELEASE:
            one = called(one, f"{one.name}-{_suffix(str(died.inputs.get('name') or died.name))}")
        self.creating[one.urn] = one
        if died is not None:
            self._left[one.urn] = died
        return one

    def refused(self, urn: str) -> None:
        """Note that a resource was not created. What an earlier run left pending stays so."""
        left = self._left.pop(urn, None)
        if left is None:
            self.creating.pop(urn, None)
        else:
            self.creating[urn] = left

    def ready(self, urn: str) -> None:
        self._states[urn] = replace(self._states[urn], unready=False)

    def refreshed(self, registration: Registration, *, unready: bool) -> None:
        """Store the state that a refresh has read; its position stays."""
        self._states[registration.urn] = StackResource(registration, unready)

    def pend(self, urn: str) -> None:
        """It is deleted, and another one is to be made in its place."""
        self._states[urn] = replace(self._states[urn], pending=True)

    def drop(self, registration: Registration) -> None:
        if registration in self._replaced:
            self._replaced.remove(registration)
        elif (state := self._states.get(registration.urn)) and state.registration.object == registration.object:
            del self._states[registration.urn]

    def replaced(self, registration: Registration) -> None:
        """A new object has its place; this one is to be deleted at the end."""
        self._replaced.append(registration)

    def not_in(self, urns: Iterable[str]) -> list[Registration]:
        """What is to be deleted when a program that registers these has ended; what is gone already is forgotten."""
        wanted = set(urns)
        for urn in [urn for urn, state in self._states.items() if state.pending and urn not in wanted]:
            del self._states[urn]
        gone = [state.registration for urn, state in self._states.items() if urn not in wanted]
        return [*gone, *self._replaced]

    def __iter__(self) -> Iterator[StackResource]:
        return iter(self._states.values())


def _renamed(one: Registration, known: str, urn: str) -> Registration:
    """A resource that names another by its new URN, or is that other one."""

    def new(named: str) -> str:
        return urn if named == known else named

    return replace(
        one,
        urn=new(one.urn),
        parent=new(one.parent),
        provider=new(one.provider),
        dependencies=tuple(map(new, one.dependencies)),
        property_dependencies={key: tuple(map(new, urns)) for key, urns in one.property_dependencies.items()},
        options=replace(one.options, deleted_with=new(one.options.deleted_with)),
    )


def _suffix(seed: str) -> str:
    """Eight hexadecimal digits, as the provider generates them; deterministic here."""
    return hashlib.sha256(seed.encode()).hexdigest()[:8]
