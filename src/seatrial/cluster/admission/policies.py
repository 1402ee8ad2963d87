"""ValidatingAdmissionPolicies: evaluated for a write, in the words of the API server.

Upstream: pkg/admission/plugin/policy/validating (dispatcher.go, validator.go) of k8s.io/apiserver 1.34. A policy with
parameters, or with expressions that seatrial cannot evaluate as Kubernetes does, is assumed to allow the write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from seatrial import cel
from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.cluster.refusal import Refused
from seatrial.cluster.validation.expressions import is_evaluated_text
from seatrial.kinds import World
from seatrial.kinds.webhooks.configurations import is_in_force
from seatrial.kinds.webhooks.matching import GROUP, Hook
from seatrial.model import lazy_re
from seatrial.model.resource import Body, Ref, dig, listed, name_of

BINDING = "ValidatingAdmissionPolicyBinding"
CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}
"""Of the reasons that a validation may have; Invalid (422) is the default."""
UNKNOWN = lazy_re.compile(r"\b(?:params|authorizer|userInfo|uid|options|dryRun|requestKind|requestResource)\b")
"""What seatrial does not know of a request."""
VARIABLE = lazy_re.compile(r"\bvariables\.([A-Za-z_]\w*)")
DEPTH_MAX = 8


class Verdict(Struct, frozen=True):
    """A validation that is false."""

    message: str
    reason: str


class NotEvaluated(Exception):
    """Seatrial cannot tell what the API server would decide."""


def judge(hook: Hook, request: AdmissionRequest, world: World) -> None:
    """Refuse the write, or warn of it, as each binding of a policy says."""
    policy = world.get(hook.configuration)
    bindings = [one for one in world.all(BINDING, group=GROUP) if dig(one, "spec", "policyName") == hook.name]
    in_force = [one for one in bindings if policy is not None and is_in_force(one, policy, world)]
    if policy is None or not in_force:
        return
    try:
        if any(_is_narrowed(one) for one in in_force):
            raise NotEvaluated
        verdicts = list(_verdicts(policy.get("spec") or {}, _data(request, world)))
    except NotEvaluated:
        words = f'{hook.configuration.kind} "{hook.name}" is not evaluated; assumed to allow the write'
        request.warn(f"seatrial: {words}")
        return
    refusals = list(_refusals(hook.name, in_force, verdicts, request))
    if refusals:
        raise refusals[0]


def is_evaluated(policy: Body, bindings: list[Body]) -> bool:
    """Whether a policy is evaluated for every object."""
    spec = policy.get("spec") or {}
    variables = _variables(spec)
    validations = listed(spec, "validations")
    conditions = [one.get("expression") for one in (*listed(spec, "matchConditions"), *validations)]
    messages = [one.get("messageExpression") for one in validations]
    try:
        for text in filter(None, (*conditions, *messages)):
            _whole(str(text), variables)
    except NotEvaluated:
        return False
    return not _has_parameters(spec) and not any(_is_narrowed(one) for one in bindings)


def _is_narrowed(binding: Body) -> bool:
    return bool(dig(binding, "spec", "matchResources") or dig(binding, "spec", "paramRef"))


def _has_parameters(spec: Body) -> bool:
    """Whether it has parameters, or matches less than its rules say."""
    constraints = spec.get("matchConstraints") or {}
    named = any(rule.get("resourceNames") for rule in listed(constraints, "resourceRules"))
    return bool(spec.get("paramKind") or listed(constraints, "excludeResourceRules") or named)


def _variables(spec: Body) -> dict[str, str]:
    return {str(one.get("name")): str(one.get("expression")) for one in listed(spec, "variables")}


def _refusals(
    policy: str, bindings: list[Body], verdicts: list[Verdict], request: AdmissionRequest
) -> Iterator[Refused]:
    for binding in bindings:
        named = f"ValidatingAdmissionPolicy '{policy}' with binding '{name_of(binding)}'"
        for verdict in verdicts:
            for action in listed(binding, "spec", "validationActions"):
                if action == "Warn":
                    request.warn(f"Validation failed for {named}: {verdict.message}")
                elif action == "Deny":
                    why = f"{named} denied request: {verdict.message}"
                    refused = request.refusal(why)
                    refused.code, refused.reason = CODES.get(verdict.reason, 422), verdict.reason
                    refused.details["causes"] = [{"message": why}]
                    yield refused


def _verdicts(spec: Body, data: dict[str, Any]) -> Iterator[Verdict]:
    """The validations that are false, if the match conditions are true."""
    if _has_parameters(spec):
        raise NotEvaluated
    variables = _variables(spec)
    if not all(_is_true(str(one.get("expression")), {}, data) for one in listed(spec, "matchConditions")):
        return
    for validation in listed(spec, "validations"):
        text = str(validation.get("expression"))
        if not _is_true(text, variables, data):
            yield Verdict(_message(validation, text, variables, data), str(validation.get("reason") or "Invalid"))


def _is_true(text: str, variables: dict[str, str], data: dict[str, Any]) -> bool:
    answer = cel.is_true(_whole(text, variables), data)
    if isinstance(answer, cel.CelError):
        raise NotEvaluated
    return answer


def _whole(text: str, variables: dict[str, str]) -> str:
    """An expression with its variables replaced by their expressions, which use only earlier ones."""
    for _ in range(DEPTH_MAX):
        replaced = VARIABLE.sub(lambda found: f"({variables[found[1]]})" if found[1] in variables else found[0], text)
        if replaced == text or len(replaced) > cel.LENGTH_MAX:
            break
        text = replaced
    if VARIABLE.search(text) or UNKNOWN.search(text) or not is_evaluated_text(text):
        raise NotEvaluated
    return text


def _message(validation: Body, text: str, variables: dict[str, str], data: dict[str, Any]) -> str:
    computed = ""
    if expression := str(validation.get("messageExpression") or ""):
        computed = (cel.text_of(_whole(expression, variables), data) or "").strip()
    given = str(validation.get("message") or "").strip()
    return (computed if "\n" not in computed else "") or given or f"failed expression: {text.strip()}"


def _data(request: AdmissionRequest, world: World) -> dict[str, Any]:
    kind = request.kind
    namespace = world.get(Ref("Namespace", "", request.ref.namespace)) if request.ref.namespace else None
    return {
        "object": request.body if request.operation != "DELETE" else None,
        "oldObject": request.old,
        "namespaceObject": namespace,
        "request": {
            "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
            "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
            "subResource": request.subresource,
            "name": request.ref.name,
            "namespace": request.namespace,
            "operation": request.operation,
        },
    }
