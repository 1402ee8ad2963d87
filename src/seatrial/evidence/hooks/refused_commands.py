"""Commands in pods that RBAC denied: which ServiceAccount, what, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.evidence.hooks.runs import acted_on
from seatrial.evidence.webhooks.calls import World, state
from seatrial.helm import hooks
from seatrial.kinds.access.rbac import GROUP
from seatrial.kinds.core.objectmeta import controller_of
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, group_of, listed
from seatrial.model.timeline import Event, Rehearsal

BINDINGS = ("RoleBinding", "ClusterRoleBinding")

Cause = Literal["unbound", "later", "gone", "role"]


class Refused(Struct, frozen=True):
    """A command in a pod that RBAC denied."""

    step: int
    said: Event
    owner: Resource
    """The Job, Pod or workload of the release that owns the pod."""
    account: Ref
    verbs: tuple[str, ...]
    resource: str
    """`deployments.apps`"""
    cause: Cause
    about: Resource | None
    """The binding or role that is missing, or does not allow it."""


def refused_commands(rehearsal: Rehearsal, case: Case) -> Iterator[Refused]:
    """Denied commands of a release's pods, once per owner and step."""
    seen: set[tuple[int, Ref]] = set()
    for event in rehearsal.timeline:
        verbs, resource = _right(event) if event.effect == "said" and event.object.kind == "Pod" else ((), "")
        release = acted_on(case, event.step) if verbs and event.step >= 0 else None
        if release is None:
            continue
        world = state(rehearsal, event)
        owner = release.find(_owner(world, event.object))
        if owner is None or (event.step, owner.ref) in seen:
            continue
        seen.add((event.step, owner.ref))
        name = str(dig(world[event.object], "spec", "serviceAccountName") or "default")
        account = Ref("ServiceAccount", event.object.namespace, name)
        cause, about = _why(release, world, account, gone=rehearsal.steps[event.step].action == "uninstall")
        if about is not None and _is_taken_away(rehearsal, event, about.ref):
            continue  # It had the right when it began: hook-credentials-deleted-before-job tells of it.
        yield Refused(event.step, event, owner, account, verbs, resource, cause, about)


def _is_taken_away(rehearsal: Rehearsal, refused: Event, ref: Ref) -> bool:
    """Whether an object was deleted after the pod was created and before the command was denied."""
    since = [e for e in rehearsal.of_step(refused.step) if e.index < refused.index]
    made = next((e.index for e in since if e.object == refused.object and e.effect == "created"), refused.index)
    return any(e.index > made and e.object == ref and e.effect == "deleted" for e in since)


def _right(event: Event) -> tuple[tuple[str, ...], str]:
    """(verbs, resource) that the pod's message says it may not use."""
    denied = event.refusal.denied if event.refusal else None
    if denied is None:
        return (), ""
    return denied.verbs, f"{denied.resource}.{denied.group}" if denied.group else denied.resource


def _owner(world: World, ref: Ref) -> Ref:
    """The top-level owner of an object: the Deployment of a pod's ReplicaSet."""
    owner = controller_of(world.get(ref) or {})
    if owner is None:
        return ref
    above = Ref(str(owner["kind"]), ref.namespace, str(owner["name"]), group_of(str(owner["apiVersion"])))
    return _owner(world, above) if above in world else above


def _why(release: Release, world: World, account: Ref, *, gone: bool) -> tuple[Cause, Resource | None]:
    """The binding or role of the release that should grant the right, but is missing or insufficient."""
    bindings = [r for r in release.resources if r.ref.kind in BINDINGS and _binds(r.body, r.ref, account)]
    roles = [role for binding in bindings if (role := release.find(_role(binding))) is not None]
    for resource in (*bindings, *roles):
        if resource.ref not in world:
            return ("gone" if gone and not hooks.is_hook(resource.body) else "later"), resource
    if roles:
        return "role", roles[0]
    others = [r for r in release.resources if r.ref.kind in BINDINGS and _is_dangling(release, r)]
    return "unbound", bindings[0] if bindings else others[0] if others else None


def _binds(binding: Body, ref: Ref, account: Ref) -> bool:
    return account in _subjects(binding, ref)


def _subjects(binding: Body, ref: Ref) -> list[Ref]:
    return [
        Ref("ServiceAccount", str(subject.get("namespace") or ref.namespace), str(subject.get("name")))
        for subject in listed(binding, "subjects")
        if subject.get("kind") == "ServiceAccount"
    ]


def _is_dangling(release: Release, binding: Resource) -> bool:
    """Whether a binding names ServiceAccounts that the release does not have: probably a wrong name."""
    subjects = _subjects(binding.body, binding.ref)
    return bool(subjects) and all(release.find(ref) is None for ref in subjects)


def _role(binding: Resource) -> Ref:
    role = binding.body.get("roleRef") or {}
    kind = str(role.get("kind"))
    return Ref(kind, binding.ref.namespace if kind == "Role" else "", str(role.get("name")), GROUP)
