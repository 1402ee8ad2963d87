"""Validation of roles, bindings, webhooks and priority classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from seatrial.cluster.validation import Rules, names
from seatrial.cluster.validation.causes import (
    duplicate,
    each,
    forbidden,
    invalid,
    required,
    unsupported,
)
from seatrial.cluster.validation.scalars import one_of
from seatrial.model.resource import Body, name_of

_RBAC = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_REVIEWS = ("v1", "v1beta1")
_PRIORITY_MAX = 1_000_000_000


def _role(body: Body) -> Iterator[str]:
    for index, rule in enumerate(body.get("rules") or ()):
        yield from _policy_rule(f"rules[{index}]", rule, namespaced=True)


def _cluster_role(body: Body) -> Iterator[str]:
    for index, rule in enumerate(body.get("rules") or ()):
        yield from _policy_rule(f"rules[{index}]", rule, namespaced=False)
    aggregation = body.get("aggregationRule")
    if aggregation is not None and not aggregation.get("clusterRoleSelectors"):
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield required("aggregationRule.clusterRoleSelectors", detail)


def _policy_rule(at: str, rule: Body, *, namespaced: bool) -> Iterator[str]:
    if not rule.get("verbs"):
        yield required(f"{at}.verbs", "verbs must contain at least one value")
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            yield invalid(f"{at}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs")
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid(f"{at}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        yield required(f"{at}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{at}.resources", "resource rules must supply at least one resource")


def _binding(kinds: tuple[str, ...], *, namespaced: bool) -> Callable[[Body], Iterator[str]]:
    def problems(body: Body) -> Iterator[str]:
        role = body.get("roleRef") or {}
        yield from one_of("roleRef.apiGroup", role.get("apiGroup"), (_RBAC,))
        if role.get("kind") not in kinds:
            yield unsupported("roleRef.kind", role.get("kind") or "", kinds)
        name = role.get("name") or ""
        if not name:
            yield required("roleRef.name")
        else:
            yield from each("roleRef.name", name, names.path_segment(name))
        for index, subject in enumerate(body.get("subjects") or ()):
            yield from _subject(f"subjects[{index}]", subject, namespaced)

    return problems


def _subject(at: str, subject: Body, namespaced: bool) -> Iterator[str]:
    kind, name, group = (subject.get(key) or "" for key in ("kind", "name", "apiGroup"))
    if not name:
        yield required(f"{at}.name")
    match kind:
        case "ServiceAccount":
            if name:
                yield from each(f"{at}.name", name, names.subdomain(name))
            if group:
                yield unsupported(f"{at}.apiGroup", group, ("",))
            # The server fills in the binding's own namespace, if it has one.
            if not subject.get("namespace") and not namespaced:
                yield required(f"{at}.namespace")
        case "User" | "Group":
            yield from one_of(f"{at}.apiGroup", group, (_RBAC,))
        case _:
            yield unsupported(f"{at}.kind", kind, _SUBJECTS)


def _webhooks(body: Body) -> Iterator[str]:
    seen = set()
    for index, webhook in enumerate(body.get("webhooks") or ()):
        at = f"webhooks[{index}]"
        yield from _webhook(at, webhook)
        name = webhook.get("name") or ""
        if name and name in seen:
            yield duplicate(f"{at}.name", name)
        seen.add(name)


def _webhook(at: str, webhook: Body) -> Iterator[str]:
    yield from _webhook_name(f"{at}.name", webhook.get("name") or "")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from _webhook_rule(f"{at}.rules[{index}]", rule)
    yield from one_of(f"{at}.failurePolicy", webhook.get("failurePolicy"), ("Fail", "Ignore"))
    yield from one_of(f"{at}.matchPolicy", webhook.get("matchPolicy"), ("Equivalent", "Exact"))
    effects = webhook.get("sideEffects")
    if effects is None:
        yield required(f"{at}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from one_of(f"{at}.sideEffects", effects, ("None", "NoneOnDryRun"))
    seconds = webhook.get("timeoutSeconds")
    if seconds is not None and not 1 <= seconds <= 30:
        yield invalid(f"{at}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
    yield from _client(f"{at}.clientConfig", webhook.get("clientConfig") or {})
    yield from _reviews(f"{at}.admissionReviewVersions", webhook.get("admissionReviewVersions") or [])


def _webhook_name(at: str, name: str) -> Iterator[str]:
    if not name:
        yield required(at)
    elif problems := names.subdomain(name):
        yield invalid(at, name, ",".join(problems))
    elif name.count(".") < 2:
        yield invalid(at, name, "should be a domain with at least three segments separated by dots")


def _webhook_rule(at: str, rule: Body) -> Iterator[str]:
    if not rule.get("operations"):
        yield required(f"{at}.operations")
    for index, operation in enumerate(rule.get("operations") or ()):
        yield from one_of(f"{at}.operations[{index}]", operation, _OPERATIONS)
    for key in ("apiGroups", "apiVersions", "resources"):
        if not rule.get(key):
            yield required(f"{at}.{key}")


def _client(at: str, client: Body) -> Iterator[str]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(at, "exactly one of url or service is required")
    elif service is not None:
        for key in ("name", "namespace"):
            if not service.get(key):
                yield required(f"{at}.service.{key}")
    elif not str(url).startswith("https://"):
        scheme = str(url).partition("://")[0]
        detail = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
        yield invalid(f"{at}.url", scheme, detail)


def _reviews(at: str, versions: list[str]) -> Iterator[str]:
    if not versions:
        yield required(at, "must specify one of v1, v1beta1")
    elif not set(versions) & set(_REVIEWS):
        yield invalid(at, versions, "must include at least one of v1, v1beta1")


def _priority(body: Body) -> Iterator[str]:
    name, value = name_of(body), body.get("value") or 0
    if name.startswith("system-") and name not in ("system-cluster-critical", "system-node-critical"):
        detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
        yield forbidden("metadata.name", f"{detail}{name} is not a known system priority class")
    elif value > _PRIORITY_MAX and not name.startswith("system-"):
        yield forbidden("value", f"maximum allowed value of a user defined priority is {_PRIORITY_MAX}")
    yield from one_of("preemptionPolicy", body.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"))


RULES: Rules = {
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks,
    (_RBAC, "ClusterRole"): _cluster_role,
    (_RBAC, "ClusterRoleBinding"): _binding(("ClusterRole",), namespaced=False),
    (_RBAC, "Role"): _role,
    (_RBAC, "RoleBinding"): _binding(("Role", "ClusterRole"), namespaced=True),
    ("scheduling.k8s.io", "PriorityClass"): _priority,
}
