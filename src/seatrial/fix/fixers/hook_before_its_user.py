"""What a hook needs exists before the hook runs: a lower weight, a hook of its own, or a copy for the hook."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.fix.copies import copied
from seatrial.fix.lines import annotated, document_of, key_line, plain_or_quoted, with_suffix
from seatrial.fix.proposal import ByHand, Edits, Fixer, Problem, Proposal, TextEdit, joined
from seatrial.graph import users_of
from seatrial.helm import hooks
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.model.release import Resource
from seatrial.model.resource import Pointer
from seatrial.phrases.objects import users_beyond_hooks
from seatrial.text.source import Edit, Span

GAP = 5
"""Between weights, so that others find room."""
BESIDE = (hooks.WEIGHT, hooks.HOOK)
SUFFIX = "-hook"
ACCOUNT = "ServiceAccount"
COPIED = (ACCOUNT, "ConfigMap")
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
    every = [edge.user.body for edge in users_of(problem.release_of(needed), needed.ref)]
    users = [body for body in every if hooks.is_hook(body)]
    title = f"make {needed.ref} a hook that runs before {user.ref}"
    yield Proposal(
        title,
        annotated(needed, _annotations(user, users)),
        why_unsafe="" if needed.ref.kind == "ServiceAccount" else "it is deleted when the hooks have succeeded",
    )
    yield Proposal(
        f"{title}, and stays until its next run",
        annotated(needed, {**_annotations(user, users), hooks.DELETE_POLICY: hooks.BEFORE_CREATION}),
        why_unsafe="uninstalling leaves it in the cluster",
    )


def _own_copy(problem: Problem, user: Resource, needed: Resource) -> Iterator[Proposal]:
    """The app uses it as well: as a hook it would be deleted at every upgrade, so the hook gets a copy."""
    pointer = problem.finding.pointers[0]
    if needed.ref.kind not in COPIED or pointer.place is not None:
        return
    bound = any(edge.user.ref.group == RBAC for edge in users_of(problem.release_of(needed), needed.ref))
    granted = f"what is granted to {needed.ref} is not granted to the copy" if bound else ""
    title, copy = f"give {user.ref} its own {needed.ref.kind}, a hook that runs before it", _copy(user, needed, pointer)
    if isinstance(copy, ByHand) and needed.ref.kind == ACCOUNT:
        lacks = f"it has neither the labels nor the pull secrets of {needed.ref}"
        made = _new_account(user, pointer)
        if not isinstance(made, ByHand):
            yield Proposal(title, made, why_unsafe="; ".join(filter(None, (granted, lacks))))
            return
    yield Proposal(title, copy, why_unsafe=granted)


def _copy(user: Resource, needed: Resource, pointer: Pointer) -> Edits | ByHand:
    copy = copied(needed, SUFFIX, _annotations(user, [user.body]))
    return joined(copy, with_suffix(user, pointer.path, SUFFIX))


def _new_account(user: Resource, pointer: Pointer) -> Edits | ByHand:
    """A ServiceAccount beside the hook, where the text of the other one cannot be copied."""
    line, document = key_line(user, *pointer.path), document_of(user)
    if isinstance(line, ByHand):
        return line
    if isinstance(document, ByHand):
        return document
    text, span = document
    if line.template is not None or not span.start <= line.start < span.end:
        return ByHand(f"{line.text.path}:{line.number} is in a named template, which other objects may use")
    given = _annotations(user, [user.body])
    words = [
        "apiVersion: v1",
        f"kind: {ACCOUNT}",
        "metadata:",
        f"  name: {line.rest.split(' #')[0].strip()}{SUFFIX}",
        "  annotations:",
        *(f"    {key}: {plain_or_quoted(text, value)}" for key, value in given.items()),
        "---",
    ]
    new = TextEdit(text, Edit(Span(span.start, span.start), "".join(f"{one}\n" for one in words)))
    return joined((new,), with_suffix(user, pointer.path, SUFFIX))


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
