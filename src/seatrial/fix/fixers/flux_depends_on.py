"""A Kustomization or HelmRelease comes after the one that has what it needs: `dependsOn`, with `wait: true` there.

`dependsOn` names objects of the same kind, so a HelmRelease and a Kustomization are ordered by the Kustomizations that
contain them.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import Line, key_line, with_children, with_value
from seatrial.fix.lists import replaced_item, with_item
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.model.release import Resource
from seatrial.model.resource import Path, Ref, dig, listed
from seatrial.model.timeline import Reconciled

KUSTOMIZATION, HELM_RELEASE = "Kustomization", "HelmRelease"
FLUX = "flux"
WEBHOOK = "webhook-not-ready-race"
OTHER_KIND = "flux-dependson-of-another-kind"


def propose(problem: Problem) -> Iterator[Proposal]:
    if any(engine.name != FLUX for engine in problem.finding.engines):
        return
    if problem.finding.rule == OTHER_KIND:
        yield from _renamed(problem)
        return
    own, other = _pair(problem)
    user, first = (problem.newest(ref) if ref else None for ref in (own, other))
    if user is None or first is None or user.ref == first.ref:
        return
    title = f"let {user.ref} depend on {first.ref}"
    depends = _depending(user, first.ref)
    if _waits(first):
        yield Proposal(title, depends)
        return
    if problem.finding.rule != WEBHOOK:
        yield Proposal(title, depends)
    yield Proposal(f"{title}, and set wait: true there", joined(depends, waiting(first)))


def waiting(resource: Resource) -> Edits | ByHand:
    """`wait: true` on a Kustomization."""
    if dig(resource.body, "spec", "wait") is not None:
        return with_value(resource, ("spec", "wait"), "true")
    return with_children(resource, ("spec",), ["wait: true"])


def _pair(problem: Problem) -> tuple[Ref | None, Ref | None]:
    """Which of two must come later, and which first; of the same kind."""
    needed = problem.finding.objects[0]
    pointed = problem.pointed_at()
    for reconciled in _reconciled(problem):
        own = (
            pointed.ref if pointed and _is_flux(pointed.ref) else _holder(reconciled, pointed.ref if pointed else None)
        )
        other = _holder(reconciled, needed)
        if own is None or other is None:
            continue
        if own.kind != other.kind:
            own, other = (one if one.kind == KUSTOMIZATION else _holder(reconciled, one) for one in (own, other))
        if own and other and own != other:
            return own, other
    return None, None


def _renamed(problem: Problem) -> Iterator[Proposal]:
    """A dependency on a HelmRelease becomes one on the Kustomization that contains it."""
    user = problem.pointed_at()
    path = problem.finding.pointers[0].path
    name = dig(user.body, *path) if user else None
    for reconciled in _reconciled(problem) if user else ():
        named = (one.object for one in reconciled if one.object.kind == HELM_RELEASE and one.object.name == name)
        holder = next((found for ref in named if (found := _holder(reconciled, ref))), None)
        first = problem.newest(holder) if holder else None
        if user is None or first is None or first.ref.kind != user.ref.kind or first.ref == user.ref:
            continue
        named_instead = _named_instead(user, path, first.ref)
        changes = joined(named_instead, () if _waits(first) else waiting(first))
        waits = "" if _waits(first) else ", and set wait: true there"
        yield Proposal(f"let {user.ref} depend on {first.ref}, which contains {name}{waits}", changes)
        return


def _named_instead(user: Resource, path: Path, first: Ref) -> Edits | ByHand:
    """The name at `path`, and the namespace beside it, replaced by those of another object."""
    line = key_line(user, *path[:-2])
    if isinstance(line, Line) and line.rest.strip().startswith("["):
        return replaced_item(user, path[:-2], str(dig(user.body, *path)), _entry(user, first))
    given = dig(user.body, *path[:-1], "namespace") is not None
    spaced = with_value(user, (*path[:-1], "namespace"), first.namespace) if given else ()
    return joined(with_value(user, path, first.name), spaced)


def _reconciled(problem: Problem) -> Iterator[tuple[Reconciled, ...]]:
    for rehearsal in problem.rehearsals:
        if problem.finding.step < len(rehearsal.steps):
            yield rehearsal.steps[problem.finding.step].reconciled


def _holder(reconciled: tuple[Reconciled, ...], ref: Ref | None) -> Ref | None:
    """The Kustomization or HelmRelease that has an object."""
    return next((one.object for one in reconciled if ref in one.objects), None)


def _is_flux(ref: Ref) -> bool:
    return ref.kind in (KUSTOMIZATION, HELM_RELEASE) and "fluxcd.io" in ref.group


def _waits(resource: Resource) -> bool:
    """Whether it is Ready only when its objects are: a HelmRelease is, unless that is disabled."""
    return resource.ref.kind == HELM_RELEASE or dig(resource.body, "spec", "wait") is True


def _depending(user: Resource, first: Ref) -> Edits | ByHand:
    if any(one.get("name") == first.name for one in listed(user.body, "spec", "dependsOn")):
        return ByHand(f"{user.ref} names {first.name} in dependsOn already")
    return with_item(user, ("spec", "dependsOn"), _entry(user, first))


def _entry(user: Resource, first: Ref) -> dict[str, str]:
    return {"name": first.name, **({} if first.namespace == user.ref.namespace else {"namespace": first.namespace})}


FIXER = Fixer(("cross-release-order", WEBHOOK, OTHER_KIND), propose)
