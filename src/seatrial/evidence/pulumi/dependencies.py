"""Which resources of a Pulumi program really depend on which, and how that differs between two programs."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.program import Program, Registration, short
from seatrial.model.release import Case
from seatrial.model.resource import Place
from seatrial.model.result import Dependence

PROVIDERS = "pulumi:providers:"


def dependences(case: Case) -> Iterator[Dependence]:
    """For the last program of a case, and the first if it differs."""
    given = [release.program for release in case.releases if release and release.program]
    if not given:
        return
    new, old = given[-1], given[0] if given[0] != given[-1] else None
    before = {_key(one): one for one in old.registrations} if old else {}
    for one in new.registrations:
        was = before.get(_key(one))
        depends = one.asked or one.dependencies or (was and was.dependencies) or new.recorded
        if one.custom and depends and not _is_inside(new, one) and not one.type.startswith(PROVIDERS):
            yield Dependence(
                resource=short(one.urn),
                asked=tuple(short(urn) for urn in one.asked),
                now=tuple(short(urn) for urn in one.dependencies),
                before=tuple(short(urn) for urn in was.dependencies) if was else None,
                place=one.place or Place("", 0),
            )


def _key(one: Registration) -> tuple[str, str]:
    """The identity of a resource without its parents."""
    return one.type, one.name


def _is_inside(program: Program, one: Registration) -> bool:
    """Whether it comes from a chart or YAML, which have no written dependencies."""
    parent = program.find(one.parent) if one.parent else None
    return parent is not None and parent.type.startswith("kubernetes:")
