"""What uses an object in the cluster at some point of a rehearsal: running pods, Services, bindings, webhooks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from seatrial.graph import needs_of
from seatrial.helm import argocd_hooks, hooks
from seatrial.kinds.access.rbac import GROUP as RBAC
from seatrial.kinds.core.objectmeta import controller_of, is_terminating
from seatrial.kinds.workloads.pods import is_finished
from seatrial.model.release import Resource
from seatrial.model.resource import Body, Origin, Ref, dig, group_of, labels_of
from seatrial.model.timeline import Rehearsal

Live = dict[Ref, Body]
OWNERS_MAX = 4
ROLES = ("Role", "ClusterRole")
BINDINGS = ("RoleBinding", "ClusterRoleBinding")
WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService")


def live_at(rehearsal: Rehearsal, index: int) -> Live:
    """All objects just before an event."""
    live: Live = {}
    for event in rehearsal.timeline[:index]:
        if event.effect == "deleted":
            live.pop(event.object, None)
        elif event.after is not None and event.effect not in ("said", "refused"):
            live[event.object] = event.after
    return live


def running_users(live: Live, ref: Ref, keys: Collection[str] = ()) -> list[Ref]:
    """The workloads whose running pods use an object, without hooks; for a webhook, what answers it.

    With `keys`, those that read one of these keys of a ConfigMap or Secret, or all of it.
    """
    return sorted(set(_users(live, ref, keys)))


def _users(live: Live, ref: Ref, keys: Collection[str]) -> Iterator[Ref]:
    if ref.kind in WEBHOOKS and ref in live:
        yield from (need.object for need in needs_of(_resource(ref, live[ref])) if need.object in live)
        return
    accounts = _bound_accounts(live, ref)
    for pod, body in live.items():
        if pod.kind != "Pod" or pod.group or is_finished(body) or is_terminating(body):
            continue
        top = _top_owner(live, pod)
        named = {
            need.object
            for need in needs_of(_resource(pod, body))
            if not need.guess and (not keys or not need.key or need.key in keys)
        }
        if top not in live or _is_hook(live[top]):
            continue  # What has lost its owner is about to be deleted.
        if top == ref or ref in named or _account(body, pod) in accounts or _is_selected(live, ref, pod):
            yield top


def _top_owner(live: Live, ref: Ref) -> Ref:
    for _ in range(OWNERS_MAX):
        owner = controller_of(live.get(ref) or {})
        if owner is None:
            break
        ref = Ref(str(owner["kind"]), ref.namespace, str(owner["name"]), group_of(str(owner["apiVersion"])))
    return ref


def _is_hook(body: Body | None) -> bool:
    return body is not None and (hooks.is_hook(body) or argocd_hooks.is_hook(body))


def _account(pod: Body, ref: Ref) -> Ref:
    return Ref("ServiceAccount", ref.namespace, str(dig(pod, "spec", "serviceAccountName") or "default"))


def _bound_accounts(live: Live, ref: Ref) -> set[Ref]:
    """The ServiceAccounts that get their rights from a binding or a role."""
    if ref.group != RBAC:
        return set()
    if ref.kind in BINDINGS:
        bindings = [(ref, live[ref])] if ref in live else []
    else:
        bindings = [(other, body) for other, body in live.items() if _binds(other, body, ref)]
    needs = (need.object for other, body in bindings for need in needs_of(_resource(other, body)))
    return {need for need in needs if need.kind == "ServiceAccount"}


def _binds(binding: Ref, body: Body, role: Ref) -> bool:
    if binding.kind not in BINDINGS or binding.group != RBAC:
        return False
    here = role.kind == "ClusterRole" or binding.namespace == role.namespace
    named = dig(body, "roleRef", "kind"), dig(body, "roleRef", "name")
    return here and named == (role.kind, role.name)


def _is_selected(live: Live, ref: Ref, pod: Ref) -> bool:
    """Whether a Service, or a Service behind an Ingress, leads to a pod."""
    body = live.get(ref)
    if body is None or ref.namespace != pod.namespace:
        return False
    if ref.kind == "Service" and not ref.group:
        selector = dig(body, "spec", "selector") or {}
        return bool(selector) and selector.items() <= labels_of(live[pod]).items()
    if ref.kind == "Ingress":
        behind = {need.object for need in needs_of(_resource(ref, body)) if need.object.kind == "Service"}
        return any(_is_selected(live, service, pod) for service in behind)
    return False


def _resource(ref: Ref, body: Body) -> Resource:
    return Resource(ref, body, Origin(""))
