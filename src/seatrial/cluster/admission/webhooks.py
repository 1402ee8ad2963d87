"""Webhooks are asked about a write; one that cannot be reached refuses it, or not, as its failurePolicy says.

What a webhook that is reached answers is not known: it is taken to allow, and to change nothing.
"""

from __future__ import annotations

from seatrial.cluster.admission import backend
from seatrial.cluster.admission.asked import Asked
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


def ask(asked: Asked, stage: Stage, world: World) -> None:
    """Ask every webhook of a stage that is about this write, in order."""
    if asked.hooks is NO_HOOKS or _is_exempt(asked):
        return
    for hook in webhooks_for(asked.hooks, stage, _target(asked)):
        if _is_selected(hook, asked, world):
            _call(hook, asked, world)


def note_policies(asked: Asked, world: World) -> None:
    """Say which admission policies are about a write: their expressions are not evaluated."""
    if not asked.hooks.policies or _is_exempt(asked):
        return
    for policy in policies_for(asked.hooks, _target(asked)):
        if _is_selected(policy, asked, world):
            asked.warn(f'seatrial: {policy.configuration.kind} "{policy.name}" is not evaluated, and taken to allow')


def _is_exempt(asked: Asked) -> bool:
    return asked.kind.group == GROUP and asked.kind.kind in EXEMPT


def _target(asked: Asked) -> WriteTarget:
    kind = asked.kind
    return WriteTarget(
        asked.operation, kind.group, kind.version, kind.plural, asked.subresource, kind.namespaced, asked.versions
    )


def _is_selected(hook: Hook, asked: Asked, world: World) -> bool:
    if hook.namespaces and asked.namespace and not fits(_namespace_labels(asked, world), hook.namespaces):
        return False
    if not hook.objects:
        return True
    new = [asked.body] if asked.operation != "DELETE" else []
    return any(fits(labels_of(body), hook.objects) for body in (*new, *filter(None, [asked.old])))


def _namespace_labels(asked: Asked, world: World) -> dict[str, str]:
    """Of a namespace that is made or changed, the labels it would have."""
    if asked.of == ("", "Namespace") and not asked.subresource and asked.operation != "DELETE":
        return labels_of(asked.body)
    namespace: Body | None = world.get(Ref("Namespace", "", asked.namespace))
    if namespace is None:
        raise missing_namespace(asked.namespace)
    return labels_of(namespace)


def _call(hook: Hook, asked: Asked, world: World) -> None:
    # Whoever is refused here tries again when the configuration goes away.
    world.get(hook.configuration)
    if hook.conditional:
        asked.warn(f'seatrial: matchConditions of webhook "{hook.name}" are not evaluated, and taken to match')
    if asked.dry_run and hook.side_effects not in SIDE_EFFECTS_NONE:
        raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
    if hook.client.get("url"):
        asked.note(f'webhook "{hook.name}" is outside the cluster, and taken to answer')
    failed = backend.failure(hook.client, hook.timeout_seconds, world)
    if failed:
        refused = _failed(hook, failed)
        if not hook.ignores:
            raise refused
        asked.note(f"ignored: {refused.message}")


def _failed(hook: Hook, failed: backend.Failed) -> Refused:
    called = "failed to call webhook: " if failed.words != backend.NO_CERTIFICATE else ""
    call = FailedCall(hook.name, untrusted=failed.untrusted)
    return internal(f'failed calling webhook "{hook.name}": {called}{failed.words}', call)
