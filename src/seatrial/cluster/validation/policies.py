"""Validation of bindings of admission policies.

Upstream: pkg/apis/admissionregistration/validation of Kubernetes 1.34. Expressions are not validated here.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.validation import Rules, names
from seatrial.cluster.validation.causes import duplicate, each, invalid, required, unsupported
from seatrial.model.resource import Body, listed

ACTIONS = ("Audit", "Deny", "Warn")
BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


def _binding(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    if name := spec.get("policyName"):
        yield from each("spec.policyName", name, names.subdomain(name))
    else:
        yield required("spec.policyName")
    at, actions = "spec.validationActions", listed(spec, "validationActions")
    for index, action in enumerate(actions):
        if action not in ACTIONS:
            yield unsupported(f"{at}[{index}]", action, ACTIONS)
        if action in actions[:index]:
            yield duplicate(f"{at}[{index}]", action)
    if {"Deny", "Warn"} <= set(actions):
        yield invalid(at, actions, BOTH)
    if not actions:
        yield required(at, "at least one validation action is required")


RULES: Rules = {("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): _binding}
