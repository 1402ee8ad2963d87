"""Webhook calls for a write. An unreachable webhook refuses the write, unless its failurePolicy is Ignore.

The response of a reachable webhook is not known: it is assumed to allow the write and to change nothing.
"""

from __future__ import annotations

from seatrial.cluster.admission import backend, policies
from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.cluster.refusal import Refused, bad_request, internal, missing_namespace
from seatrial.kinds import World
from seatrial.kinds.core.selection import fits
from seatrial.kinds.webhooks.matching import (
    EXEMPT,
    GROUP,
    NO_HOOKS,
    SIDE_EFFECTS_NONE,
    Hook,
    Stage,
    WriteTarget,
    policies_for,
    webhooks_for,
)
from seatrial.model.refusal import FailedCall
from seatrial.model.resource import Body, Ref, labels_of


def call_webhooks(request: AdmissionRequest, stage: Stage, world: World) -> None:
    """Call every webhook of a stage that matches this write, in order."""
    if request.hooks is NO_HOOKS or _is_exempt(request):
        return
    for hook in webhooks_for(request.hooks, stage, _target(request)):
        if _is_selected(hook, request, world):
            _call(hook, request, world)


def ask_policies(request: AdmissionRequest, world: World) -> None:
    """Evaluate every admission policy that matches this write, in the order of names."""
    if not request.hooks.policies or _is_exempt(request):
        return
    for policy in policies_for(request.hooks, _target(request)):
        if _is_selected(policy, request, world):
            policies.judge(policy, request, world)


def _is_exempt(request: AdmissionRequest) -> bool:
    return request.kind.group == GROUP and request.kind.kind in EXEMPT


def _target(request: AdmissionRequest) -> WriteTarget:
    kind = request.kind
    return WriteTarget(
        request.operation, kind.group, kind.version, kind.plural, request.subresource, kind.namespaced, request.versions
    )


def _is_selected(hook: Hook, request: AdmissionRequest, world: World) -> bool:
    if hook.namespaces and request.namespace and not fits(_namespace_labels(request, world), hook.namespaces):
        return False
    if not hook.objects:
        return True
    new = [request.body] if request.operation != "DELETE" else []
    return any(fits(labels_of(body), hook.objects) for body in (*new, *filter(None, [request.old])))


def _namespace_labels(request: AdmissionRequest, world: World) -> dict[str, str]:
    """For a namespace that is created or updated, its new labels."""
    if request.group_kind == ("", "Namespace") and not request.subresource and request.operation != "DELETE":
        return labels_of(request.body)
    namespace: Body | None = world.get(Ref("Namespace", "", request.namespace))
    if namespace is None:
        raise missing_namespace(request.namespace)
    return labels_of(namespace)


def _call(hook: Hook, request: AdmissionRequest, world: World) -> None:
    # A refused controller runs again when the configuration is deleted.
    world.get(hook.configuration)
    if hook.conditional:
        request.warn(f'seatrial: matchConditions of webhook "{hook.name}" are not evaluated; assumed to match')
    if request.dry_run and hook.side_effects not in SIDE_EFFECTS_NONE:
        raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
    if hook.client.get("url"):
        request.note(f'webhook "{hook.name}" is outside the cluster; assumed to respond')
    failed = backend.failure(hook.client, hook.timeout_seconds, world)
    if failed and not request.answers(hook.name, hook.client):
        refused = _failed(hook, failed)
        if not hook.ignores:
            raise refused
        request.note(f"ignored: {refused.message}")
        request.ignore(hook.name)


def _failed(hook: Hook, failed: backend.FailedBackendCall) -> Refused:
    called = "failed to call webhook: " if failed.message != backend.NO_CERTIFICATE else ""
    call = FailedCall(hook.name, untrusted=failed.untrusted)
    return internal(f'failed calling webhook "{hook.name}": {called}{failed.message}', call)
