"""Commands in pods that RBAC denied: which ServiceAccount, what, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.evidence.hooks.runs import acted_on
from seatrial.evidence.moment import Moment
from seatrial.evidence.webhooks.calls import World, state, state_after
from seatrial.helm import hooks
from seatrial.kinds.access.authorizer import decide, denied, service_account
from seatrial.kinds.access.rbac import GROUP
from seatrial.kinds.core.objectmeta import controller_of
from seatrial.kinds.scripts.commands import ANY_RIGHT, NeededRight, needed_in_branches, runs_scripts
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig, group_of, listed
from seatrial.model.timeline import Event, Rehearsal

BINDINGS = ("RoleBinding", "ClusterRoleBinding")

Cause = Literal["unbound", "later", "gone", "role", "elsewhere"]


class RefusedCommand(Struct, frozen=True):
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
    namespace: str = ""
    """Where the right is missing; empty at cluster scope."""
    command: str = ""
    """For a branch that was not taken: the command in it."""


class _Recorded(Struct, frozen=True):
    """The objects at some event, as the authorizer reads them."""

    objects: World

    def get(self, ref: Ref) -> Body | None:
        return self.objects.get(ref)

    def all(self, kind: str, namespace: str = "", group: str = "") -> list[Body]:
        found = sorted(r for r in self.objects if (r.kind, r.group) == (kind, group))
        return [self.objects[ref] for ref in found if not namespace or ref.namespace == namespace]


def refused_commands(rehearsal: Rehearsal, case: Case) -> Iterator[RefusedCommand]:
    """Denied commands of a release's pods, once per owner and step."""
    seen: set[tuple[int, Ref]] = set()
    for event in rehearsal.timeline:
        denial = event.refusal.denied if event.refusal and event.effect == "said" else None
        release = acted_on(case, event.step) if denial and event.step >= 0 else None
        if release is None or denial is None or event.object.kind != "Pod":
            continue
        world = state(rehearsal, event)
        owner = release.find(_owner(world, event.object))
        if owner is None or (event.step, owner.ref) in seen:
            continue
        seen.add((event.step, owner.ref))
        name = str(dig(world[event.object], "spec", "serviceAccountName") or "default")
        account = Ref("ServiceAccount", event.object.namespace, name)
        is_removed = rehearsal.steps[event.step].action == "uninstall"
        cause, about = _why(release, world, account, denial.namespace, gone=is_removed)
        if about is not None and _is_taken_away(rehearsal, event, about.ref):
            continue  # It had the right when it began: hook-credentials-deleted-before-job tells of it.
        resource = f"{denial.resource}.{denial.group}" if denial.group else denial.resource
        yield RefusedCommand(event.step, event, owner, account, denial.verbs, resource, cause, about, denial.namespace)


def refused_in_branches(rehearsal: Rehearsal, case: Case) -> Iterator[RefusedCommand]:
    """Commands that RBAC would deny, in branches of scripts that ran otherwise; once per owner."""
    seen = {refused.owner.ref for refused in refused_commands(rehearsal, case)}
    last = {event.object: event for event in rehearsal.timeline if event.object.kind == "Pod"}
    looked: set[tuple[int, str]] = set()
    for event in rehearsal.timeline:
        made = event.object.kind == "Pod" and event.effect == "created" and event.step >= 0
        release = acted_on(case, event.step) if made else None
        name = str(dig(event.after, "spec", "serviceAccountName") or "default")
        if release is None or event.after is None or name == "default":
            continue
        by = event.step, str((controller_of(event.after) or {}).get("uid") or event.object)
        if by in looked:
            continue  # One pod of a thousand is enough.
        looked.add(by)
        if not runs_scripts(event.after.get("spec") or {}, event.object.namespace):
            continue
        world = {**state(rehearsal, last[event.object]), event.object: event.after}
        owner = release.find(_owner(world, event.object))
        account = Ref("ServiceAccount", event.object.namespace, name)
        if owner is None or owner.ref in seen or account not in world:
            continue
        if ANY_RIGHT in annotations_of(world[account]):
            continue
        later = state_after(Moment(rehearsal, case, event.step))
        need = _denied_in_branch(event.after, account, world)
        if need is not None and _denied_in_branch(event.after, account, later) is not None:
            seen.add(owner.ref)
            cause, about = _why(release, world, account, need.access.namespace, gone=False)
            denial = denied(service_account(account.namespace, name), need.access)
            resource = f"{denial.resource}.{denial.group}" if denial.group else denial.resource
            right = (denial.verbs, resource, cause, about, denial.namespace, need.command)
            yield RefusedCommand(event.step, event, owner, account, *right)


def _denied_in_branch(pod: Body, account: Ref, world: World) -> NeededRight | None:
    spec, namespace, recorded = pod.get("spec") or {}, account.namespace, _Recorded(world)
    crds = recorded.all("CustomResourceDefinition", group="apiextensions.k8s.io")
    user = service_account(namespace, account.name)
    needs = needed_in_branches(spec, namespace, crds, lambda name: world.get(Ref("ConfigMap", namespace, name)))
    return next((need for need in needs if not decide(user, need.access, recorded).allowed), None)


def _is_taken_away(rehearsal: Rehearsal, refused: Event, ref: Ref) -> bool:
    """Whether an object was deleted after the pod was created and before the command was denied."""
    since = [e for e in rehearsal.of_step(refused.step) if e.index < refused.index]
    made = next((e.index for e in since if e.object == refused.object and e.effect == "created"), refused.index)
    return any(e.index > made and e.object == ref and e.effect == "deleted" for e in since)


def _owner(world: World, ref: Ref) -> Ref:
    """The top-level owner of an object: the Deployment of a pod's ReplicaSet."""
    owner = controller_of(world.get(ref) or {})
    if owner is None:
        return ref
    above = Ref(str(owner["kind"]), ref.namespace, str(owner["name"]), group_of(str(owner["apiVersion"])))
    return _owner(world, above) if above in world else above


def _why(release: Release, world: World, account: Ref, namespace: str, *, gone: bool) -> tuple[Cause, Resource | None]:
    """The binding or role of the release that should grant the right, but is missing or insufficient."""
    every = [r for r in release.resources if r.ref.kind in BINDINGS and _binds(r.body, r.ref, account)]
    bindings = [r for r in every if r.ref.kind == "ClusterRoleBinding" or r.ref.namespace == namespace]
    if every and not bindings:
        return "elsewhere", every[0]
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
