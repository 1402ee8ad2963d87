"""What a hook needs exists before the hook runs: a lower weight, a hook of its own, or a copy for the hook."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.copies import copied
from seatrial.fix.lines import annotated, with_suffix
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, joined
from seatrial.graph import users_of
from seatrial.helm import hooks
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.model.release import Resource
from seatrial.model.resource import Pointer
from seatrial.phrases.objects import users_beyond_hooks

GAP = 5
"""Between weights, so that others find room."""
BESIDE = (hooks.WEIGHT, hooks.HOOK)
SUFFIX = "-hook"
COPIED = ("ServiceAccount", "ConfigMap")
"""A copy of a Secret may have another random value."""
LEAVES_NOTHING = f"{hooks.BEFORE_CREATION},{hooks.SUCCEEDED}"


def propose(problem: Problem) -> Iterator[Proposal]:
    user, needed = (problem.newest(ref) for ref in problem.finding.objects[:2])
    if user is None or needed is None or not hooks.is_hook(user.body):
        return
    if hooks.is_hook(needed.body):
        yield from _earlier(user, needed)
    elif users_beyond_hooks(problem.release_of(needed), needed.ref):
        yield from _own_copy(problem, user, needed)
    else:
        yield from _hook(problem, user, needed)


def _earlier(user: Resource, needed: Resource) -> Iterator[Proposal]:
    """Both are hooks. A weight changes only their order."""
    if not set(hooks.events_of(user.body)) & set(hooks.events_of(needed.body)):
        return
    weight = str(hooks.weight_of(user.body) - GAP)
    yield Proposal(
        f'give {needed.ref} the weight "{weight}", lower than {hooks.weight_of(user.body)} of {user.ref}',
        annotated(needed, {hooks.WEIGHT: weight}, after=BESIDE),
    )


def _hook(problem: Problem, user: Resource, needed: Resource) -> Iterator[Proposal]:
    """Only hooks use it, so it can be one, which Helm deletes when the hooks of the event have succeeded."""
    users = [edge.user.body for edge in users_of(problem.release_of(needed), needed.ref)]
    yield Proposal(
        f"make {needed.ref} a hook that runs before {user.ref}",
        annotated(needed, _annotations(user, [body for body in users if hooks.is_hook(body)])),
        why_unsafe="" if needed.ref.kind == "ServiceAccount" else "it is deleted when the hooks have succeeded",
    )


def _own_copy(problem: Problem, user: Resource, needed: Resource) -> Iterator[Proposal]:
    """The app uses it as well: as a hook it would be deleted at every upgrade, so the hook gets a copy."""
    pointer = problem.finding.pointers[0]
    if needed.ref.kind not in COPIED or pointer.place is not None:
        return
    bound = any(edge.user.ref.group == RBAC for edge in users_of(problem.release_of(needed), needed.ref))
    yield Proposal(
        f"give {user.ref} its own {needed.ref.kind}, a hook that runs before it",
        _copy(user, needed, pointer),
        why_unsafe=f"what is granted to {needed.ref} is not granted to the copy" if bound else "",
    )


def _copy(user: Resource, needed: Resource, pointer: Pointer) -> Edits | ByHand:
    copy = copied(needed, SUFFIX, _annotations(user, [user.body]))
    return joined(copy, with_suffix(user, pointer.path, SUFFIX))


def _annotations(user: Resource, users: list[dict[str, object]]) -> dict[str, str]:
    events = dict.fromkeys(event for body in users for event in hooks.events_of(body) if event in hooks.KNOWN_EVENTS)
    return {
        hooks.HOOK: ",".join(events),
        hooks.WEIGHT: str(min([*map(hooks.weight_of, users), hooks.weight_of(user.body)]) - GAP),
        hooks.DELETE_POLICY: LEAVES_NOTHING,
    }


FIXER = Fixer(
    (
        "same-weight-hook-kind-order",
        "pre-hook-needs-release-serviceaccount",
        "pre-hook-needs-release-secret-or-configmap",
        "pre-hook-needs-release-priorityclass",
        "pre-upgrade-hook-needs-newly-added-resource",
    ),
    propose,
)
