"""Hooks are deleted before they run again, and when they have succeeded if only Jobs and Pods of hooks need them.

What no Job or Pod of a hook needs has no reason to be a hook: it becomes a regular resource, which Helm deletes.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.fixers.regular_resource import ADOPTION, DEFINITION, for_runs, without_hook
from seatrial.fix.lines import annotated
from seatrial.fix.proposal import Fixer, Problem, Proposal, joined
from seatrial.graph import users_of
from seatrial.helm import hooks
from seatrial.model.release import Release, Resource
from seatrial.model.resource import Ref
from seatrial.phrases.objects import users_beyond_hooks

BESIDE = (hooks.WEIGHT, hooks.HOOK)
LEAVES_NOTHING = f"{hooks.BEFORE_CREATION},{hooks.SUCCEEDED}"
LOGS = "its objects, and the logs of its pods, are gone when it has succeeded"
EXISTS = "hook-resource-already-exists"


def propose(problem: Problem) -> Iterator[Proposal]:
    found = (problem.newest(ref) for ref in problem.finding.objects)
    own = [resource for resource in found if resource is not None and hooks.is_hook(resource.body)]
    if not own or any(resource.ref.kind == DEFINITION for resource in own):
        return
    ended = [one for one in own if _only_for_runs(problem.release_of(one), one.ref)]
    stay = [one for one in own if one not in ended]
    every = (*ended, *(user for one in ended for user in _users(problem, one)))
    changed = list({resource.ref: resource for resource in every}.values())
    titles = (
        f"set {hooks.DELETE_POLICY}: {LEAVES_NOTHING} on {_first(changed)}" if changed else "",
        f"make {_first(stay)} a regular resource" if stay else "",
    )
    unsafe = (LOGS if changed and problem.finding.rule != EXISTS else "", ADOPTION if stay else "")
    yield Proposal(
        ", and ".join(filter(None, titles)),
        joined(
            *(annotated(one, {hooks.DELETE_POLICY: LEAVES_NOTHING}, after=BESIDE) for one in changed),
            *(without_hook(problem, one) for one in stay),
        ),
        why_unsafe="; ".join(filter(None, unsafe)),
    )


def _first(resources: list[Resource]) -> str:
    more = f" and {len(resources) - 1} more" if len(resources) > 1 else ""
    return f"{resources[0].ref}{more}"


def _only_for_runs(release: Release, ref: Ref) -> bool:
    return ref in for_runs(release) and not users_beyond_hooks(release, ref)


def _users(problem: Problem, needed: Resource) -> Iterator[Resource]:
    """Hooks that mount it: they hold it, so they must be deleted as well."""
    if problem.finding.rule == "hook-recreate-races-finalizer":
        edges = users_of(problem.release_of(needed), needed.ref)
        yield from (edge.user for edge in edges if hooks.is_hook(edge.user.body))


FIXER = Fixer((EXISTS, "hook-orphan-on-uninstall", "hook-recreate-races-finalizer"), propose)
