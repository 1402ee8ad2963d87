"""Which webhooks and policies match which writes. Read once from their configurations; calls nothing.

From k8s.io/apiserver, pkg/admission/plugin/webhook (generic, predicates) of 1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from seatrial.model.resource import Body, Ref, dig, listed, name_of

GROUP = "admissionregistration.k8s.io"
CONFIGURATIONS = (
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
"""Kinds whose changes require reading the configurations again."""

EXEMPT = frozenset(
    (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    )
)
"""Webhooks are never called for these: otherwise a webhook that is down could not be deleted."""

TIMEOUT_SECONDS = 10
SIDE_EFFECTS_NONE = ("None", "NoneOnDryRun")

Stage = Literal["mutating", "validating"]


class WebhookRule(Struct, frozen=True):
    """One rule of a webhook; `*` matches all."""

    operations: tuple[str, ...]
    groups: tuple[str, ...]
    versions: tuple[str, ...]
    resources: tuple[tuple[str, str], ...]
    """(resource, subresource)"""
    scope: str


class Hook(Struct, frozen=True):
    """One webhook of a configuration."""

    configuration: Ref
    name: str
    rules: tuple[WebhookRule, ...]
    namespaces: Body
    objects: Body
    exact: bool
    ignores: bool
    """Whether a failed call admits the object."""
    conditional: bool
    side_effects: str
    client: Body
    timeout_seconds: int


class Hooks(Struct, frozen=True, eq=False):
    """All webhooks, in call order. Compared by identity, because matches are cached by it."""

    mutating: tuple[Hook, ...] = ()
    validating: tuple[Hook, ...] = ()
    policies: tuple[Hook, ...] = ()


NO_HOOKS = Hooks()


class WriteTarget(Struct, frozen=True):
    """The target of a write, as rules see it."""

    operation: str
    group: str
    version: str
    plural: str
    subresource: str
    namespaced: bool
    versions: tuple[str, ...] = ()


def read(
    mutating: Iterable[Body], validating: Iterable[Body], policies: Iterable[Body], bindings: Iterable[Body]
) -> Hooks:
    """The webhooks of these configurations, which are sorted by name: that is the call order."""
    bound = {dig(binding, "spec", "policyName") for binding in bindings}
    return Hooks(
        mutating=tuple(hook for body in mutating for hook in _hooks(body)),
        validating=tuple(hook for body in validating for hook in _hooks(body)),
        # A policy without a binding matches nothing.
        policies=tuple(_policy(body) for body in policies if name_of(body) in bound),
    )


@lru_cache(maxsize=4096)
def webhooks_for(hooks: Hooks, stage: Stage, target: WriteTarget) -> tuple[Hook, ...]:
    """The webhooks whose rules match a write."""
    webhooks = hooks.mutating if stage == "mutating" else hooks.validating
    return tuple(hook for hook in webhooks if _is_about(hook, target))


@lru_cache(maxsize=4096)
def policies_for(hooks: Hooks, target: WriteTarget) -> tuple[Hook, ...]:
    return tuple(policy for policy in hooks.policies if _is_about(policy, target))


def _hooks(configuration: Body) -> Iterator[Hook]:
    ref = Ref(str(configuration.get("kind")), "", name_of(configuration), GROUP)
    for webhook in listed(configuration, "webhooks"):
        yield Hook(
            configuration=ref,
            name=str(webhook.get("name") or ""),
            rules=tuple(_rule(rule) for rule in listed(webhook, "rules")),
            namespaces=webhook.get("namespaceSelector") or {},
            objects=webhook.get("objectSelector") or {},
            exact=webhook.get("matchPolicy") == "Exact",
            ignores=webhook.get("failurePolicy") == "Ignore",
            conditional=bool(listed(webhook, "matchConditions")),
            side_effects=str(webhook.get("sideEffects") or ""),
            client=webhook.get("clientConfig") or {},
            timeout_seconds=int(webhook.get("timeoutSeconds") or TIMEOUT_SECONDS),
        )


def _policy(policy: Body) -> Hook:
    """A policy calls nothing, but has the same match rules as a webhook."""
    constraints = dig(policy, "spec", "matchConstraints") or {}
    return Hook(
        configuration=Ref(str(policy.get("kind")), "", name_of(policy), GROUP),
        name=name_of(policy),
        rules=tuple(_rule(rule) for rule in listed(constraints, "resourceRules")),
        namespaces=constraints.get("namespaceSelector") or {},
        objects=constraints.get("objectSelector") or {},
        exact=constraints.get("matchPolicy") == "Exact",
        ignores=True,
        conditional=True,
        side_effects="None",
        client={},
        timeout_seconds=0,
    )


def _rule(rule: Body) -> WebhookRule:
    resources = (str(resource).partition("/") for resource in listed(rule, "resources"))
    return WebhookRule(
        operations=tuple(listed(rule, "operations")),
        groups=tuple(listed(rule, "apiGroups")),
        versions=tuple(listed(rule, "apiVersions")),
        resources=tuple((resource, subresource) for resource, _, subresource in resources),
        scope=str(rule.get("scope") or "*"),
    )


def _is_about(hook: Hook, target: WriteTarget) -> bool:
    """An `Equivalent` webhook also matches writes of the same resource in another API version."""
    versions = (target.version,) if hook.exact else (target.version, *target.versions)
    return any(_names(rule, target, version) for rule in hook.rules for version in versions)


def _names(rule: WebhookRule, target: WriteTarget, version: str) -> bool:
    scope = "Namespaced" if target.namespaced else "Cluster"
    return (
        rule.scope in ("*", scope)
        and _has(rule.operations, target.operation)
        and _has(rule.groups, target.group)
        and _has(rule.versions, version)
        and any(
            resource in ("*", target.plural) and subresource in ("*", target.subresource)
            for resource, subresource in rule.resources
        )
    )


def _has(named: tuple[str, ...], wanted: str) -> bool:
    return "*" in named or wanted in named
