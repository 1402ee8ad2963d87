"""Obstacles that a rehearsal assumes to be repaired, to see what comes after them. Pure data."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct

from seatrial.model.refusal import GroupVersionKind
from seatrial.model.resource import Ref

T = TypeVar("T")


class Repairs(Struct, frozen=True, omit_defaults=True):
    """What no longer stops a trial, by what stopped it; the first obstacle comes first."""

    objects: tuple[Ref, ...] = ()
    """Objects that were refused or never became ready: they are accepted, and their pods start and succeed."""
    webhooks: tuple[str, ...] = ()
    """Webhooks that did not answer."""
    kinds: tuple[GroupVersionKind, ...] = ()
    """Kinds that were not served."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that did not exist."""
    names: tuple[str, ...] = ()
    """Each as a report names it, in the order in which they stop the trial."""

    def __bool__(self) -> bool:
        return bool(self.names)

    def shares(self, other: Repairs) -> bool:
        """Whether both repair the same obstacle."""
        return not set(self.names).isdisjoint(other.names)

    def __or__(self, other: Repairs) -> Repairs:
        return Repairs(
            _joined(self.objects, other.objects),
            _joined(self.webhooks, other.webhooks),
            _joined(self.kinds, other.kinds),
            _joined(self.namespaces, other.namespaces),
            _joined(self.names, other.names),
        )


NO_REPAIRS = Repairs()


def repairs(objects: set[Ref], webhooks: set[str], kinds: set[GroupVersionKind], namespaces: set[str]) -> Repairs:
    """Repairs of obstacles that stop the same step."""
    unserved = sorted(kinds, key=lambda one: (one.api_version, one.kind))
    names = (
        *(f"kind {one.kind} in {one.api_version}" for one in unserved),
        *(f"Namespace/{name}" for name in sorted(namespaces)),
        *(f'webhook "{name}"' for name in sorted(webhooks)),
        *(str(ref) for ref in sorted(objects)),
    )
    return Repairs(tuple(sorted(objects)), tuple(sorted(webhooks)), tuple(unserved), tuple(sorted(namespaces)), names)


def _joined(one: tuple[T, ...], other: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*one, *other)))
