"""What an object of an earlier wave needs comes before it: in a lower wave, or the user in a later one.

A ServiceAccount moves with what is granted to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal, joined
from seatrial.graph import needs_of, users_of
from seatrial.helm import hooks
from seatrial.helm.argocd_hooks import HOOK, WAVE
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref, annotations_of


def propose(problem: Problem) -> Iterator[Proposal]:
    user, needed = (problem.newest(ref) for ref in (*problem.finding.objects, None)[:2] if ref)
    if user is None or needed is None or not all(map(_is_synced, (user, needed))):
        return
    first, then = _wave(user), _wave(needed)
    if first is None or then is None or then < first:
        return
    granted = [one for one in _granted(problem.release_of(needed), needed.ref) if (_wave(one) or 0) >= first]
    beside = [one for one in granted if _wave(one) == then]
    for also in (beside, granted) if beside != granted else (granted,):
        more = f" and {len(also)} more" if also else ""
        yield Proposal(
            f'give {needed.ref}{more} the wave "{first - 1}", before {first} of {user.ref}',
            joined(*(annotated(one, {WAVE: str(first - 1)}, after=(WAVE,)) for one in (needed, *also))),
        )
    yield Proposal(
        f'give {user.ref} the wave "{then + 1}", after {then} of {needed.ref}',
        annotated(user, {WAVE: str(then + 1)}, after=(WAVE,)),
        why_unsafe="what waits for it waits longer",
    )


def _granted(release: Release, account: Ref) -> list[Resource]:
    """The bindings of an account, and their roles."""
    bindings = [edge.user for edge in users_of(release, account) if edge.user.ref.group == RBAC]
    roles = {need.object for one in bindings for need in needs_of(one) if need.object.group == RBAC}
    return [*bindings, *(one for one in release.resources if one.ref in roles)]


def _is_synced(resource: Resource) -> bool:
    """Whether it is applied in the Sync phase, where waves decide."""
    return not hooks.is_hook(resource.body) and annotations_of(resource.body).get(HOOK, "Sync") == "Sync"


def _wave(resource: Resource) -> int | None:
    written = str(annotations_of(resource.body).get(WAVE, "0"))
    return int(written) if written.lstrip("+-").isdigit() else None


FIXER = Fixer(("presync-needs-sync-phase-resource",), propose)
