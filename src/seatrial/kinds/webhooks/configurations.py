"""Webhook configurations and admission policies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.kinds import Acts, Kind, Need, Status, World, always
from seatrial.kinds.core.entries import entries
from seatrial.kinds.core.objectmeta import generation_of
from seatrial.kinds.operators.cert_manager import injection_needs
from seatrial.kinds.webhooks import cabundle
from seatrial.model.resource import Body, Ref, dig, listed, uid_of

GROUP = "admissionregistration.k8s.io"

IN_FORCE = "in force"
DEFAULTS: Body = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}


def needs(configuration: Body) -> Iterator[Need]:
    yield from injection_needs(configuration)
    for index, webhook in entries(configuration, "webhooks"):
        service = dig(webhook, "clientConfig", "service") or {}
        if service.get("name"):
            ref = Ref("Service", str(service.get("namespace") or ""), str(service["name"]))
            yield Need(ref, "serve", ("webhooks", index, "clientConfig", "service", "name"))


def binding_needs(binding: Body) -> Iterator[Need]:
    kind = str(binding.get("kind")).removesuffix("Binding")
    if name := dig(binding, "spec", "policyName"):
        yield Need(Ref(kind, "", str(name), GROUP), "serve", ("spec", "policyName"))


def default(configuration: Body) -> Body:
    webhooks = listed(configuration, "webhooks")
    if not webhooks:
        return configuration
    reinvocation = (
        {"reinvocationPolicy": "Never"} if configuration.get("kind") == "MutatingWebhookConfiguration" else {}
    )
    return {**configuration, "webhooks": [{**reinvocation, **_default_webhook(webhook)} for webhook in webhooks]}


def default_policy(policy: Body) -> Body:
    spec = {"failurePolicy": "Fail", **(policy.get("spec") or {})}
    if isinstance(spec.get("matchConstraints"), dict):
        spec["matchConstraints"] = _default_constraints(spec["matchConstraints"])
    return {**policy, "spec": spec}


def behave_policy(policy: Body, world: World) -> Acts:
    """Its expressions are assumed to be valid."""
    yield Status(policy, {"observedGeneration": generation_of(policy), "typeChecking": {}})


def behave_binding(binding: Body, world: World) -> Acts:
    """The API server reads policies and bindings once a second (policy_source.go): they hold from then on."""
    name = str(dig(binding, "spec", "policyName") or "")
    policy = world.get(Ref("ValidatingAdmissionPolicy", "", name, GROUP))
    if policy is not None:
        world.memory(uid_of(binding))[IN_FORCE] = (generation_of(binding), uid_of(policy), generation_of(policy))
    yield from ()


def is_in_force(binding: Body, policy: Body, world: World) -> bool:
    """Whether the API server has read a binding and its policy as they are now."""
    read = (generation_of(binding), uid_of(policy), generation_of(policy))
    return bool(world.memory(uid_of(binding)).get(IN_FORCE) == read)


def _default_webhook(webhook: Body) -> Body:
    filled = {**DEFAULTS, **webhook}
    if service := dig(webhook, "clientConfig", "service"):
        filled["clientConfig"] = {**webhook["clientConfig"], "service": {"port": 443, **service}}
    if rules := listed(webhook, "rules"):
        filled["rules"] = [{"scope": "*", **rule} for rule in rules]
    return filled


def _default_constraints(constraints: Body) -> Body:
    filled: dict[str, Any] = {key: DEFAULTS[key] for key in ("matchPolicy", "namespaceSelector", "objectSelector")}
    filled.update(constraints)
    if rules := listed(constraints, "resourceRules"):
        filled["resourceRules"] = [{"scope": "*", **rule} for rule in rules]
    return filled


KINDS = (
    Kind("ValidatingWebhookConfiguration", GROUP, needs=needs, default=default, behave=cabundle.behave),
    Kind("MutatingWebhookConfiguration", GROUP, needs=needs, default=default, behave=cabundle.behave),
    Kind(
        "ValidatingAdmissionPolicy",
        GROUP,
        actor="validatingadmissionpolicy-status-controller",
        default=default_policy,
        behave=behave_policy,
        quick=always,
    ),
    Kind("ValidatingAdmissionPolicyBinding", GROUP, needs=binding_needs, behave=behave_binding),
    Kind("MutatingAdmissionPolicy", GROUP, default=default_policy),
    Kind("MutatingAdmissionPolicyBinding", GROUP, needs=binding_needs),
)
