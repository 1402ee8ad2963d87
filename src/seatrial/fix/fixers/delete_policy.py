"""Hooks are deleted before they run again, and when they have succeeded if only hooks need them."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal, joined
from seatrial.graph import users_of
from seatrial.helm import hooks
from seatrial.model.release import Resource
from seatrial.phrases.objects import users_beyond_hooks

BESIDE = (hooks.WEIGHT, hooks.HOOK)
LEAVES_NOTHING = f"{hooks.BEFORE_CREATION},{hooks.SUCCEEDED}"
DEFINITION = "CustomResourceDefinition"
LOGS = "its objects, and the logs of its pods, are gone when it has succeeded"


def propose(problem: Problem) -> Iterator[Proposal]:
    found = (problem.newest(ref) for ref in problem.finding.objects)
    own = [resource for resource in found if resource is not None and hooks.is_hook(resource.body)]
    if not own or any(resource.ref.kind == DEFINITION for resource in own):
        return
    if any(users_beyond_hooks(problem.release_of(resource), resource.ref) for resource in own):
        return
    every = (*own, *(user for one in own for user in _users(problem, one)))
    changed = list({resource.ref: resource for resource in every}.values())
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    yield Proposal(
        f"set {hooks.DELETE_POLICY}: {LEAVES_NOTHING} on {changed[0].ref}{more}",
        joined(*(annotated(one, {hooks.DELETE_POLICY: LEAVES_NOTHING}, after=BESIDE) for one in changed)),
        why_unsafe="" if problem.finding.rule == "hook-resource-already-exists" else LOGS,
    )


def _users(problem: Problem, needed: Resource) -> Iterator[Resource]:
    """Hooks that mount it: they hold it, so they must be deleted as well."""
    if problem.finding.rule == "hook-recreate-races-finalizer":
        edges = users_of(problem.release_of(needed), needed.ref)
        yield from (edge.user for edge in edges if hooks.is_hook(edge.user.body))


FIXER = Fixer(("hook-resource-already-exists", "hook-orphan-on-uninstall", "hook-recreate-races-finalizer"), propose)
