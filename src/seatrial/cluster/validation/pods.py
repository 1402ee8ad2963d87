"""Validation of pods and pod templates. The order follows `ValidatePodSpec` in core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.validation import Rules, names
from seatrial.cluster.validation.causes import (
    duplicate,
    each,
    forbidden,
    invalid,
    required,
    unsupported,
)
from seatrial.cluster.validation.containers import (
    container_problems,
    host_port_conflicts,
    running_problems,
    waiting_problems,
)
from seatrial.cluster.validation.objectmeta import annotation_problems, label_problems
from seatrial.cluster.validation.scalars import IDS, one_of, selector
from seatrial.cluster.validation.volumes import volume_problems
from seatrial.model.resource import Body

RESTART_POLICIES = ("Always", "OnFailure", "Never")
DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")

_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_SPREAD_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_REQUIRED, _PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))


def template_problems(at: str, template: Body, claims: frozenset[str] = frozenset()) -> Iterator[str]:
    """`claims` are the volumes of a StatefulSet's volumeClaimTemplates."""
    meta = template.get("metadata") or {}
    yield from label_problems(f"{at}.labels", meta.get("labels") or {})
    yield from annotation_problems(f"{at}.annotations", meta.get("annotations") or {})
    spec = template.get("spec") or {}
    yield from pod_problems(f"{at}.spec", spec, claims)
    if spec.get("ephemeralContainers"):
        yield forbidden(f"{at}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def pod_problems(at: str, spec: Body, claims: frozenset[str] = frozenset()) -> Iterator[str]:
    volumes: set[str] = set(claims)
    # A claim replaces a volume of the same name.
    if given := [volume for volume in spec.get("volumes") or () if volume.get("name") not in claims]:
        yield from volume_problems(f"{at}.volumes", given, volumes)
    yield from _containers(at, spec, frozenset(volumes))
    if spec.get("hostNetwork"):
        yield from _host_ports(f"{at}.containers", spec.get("containers") or [])
    yield from one_of(f"{at}.restartPolicy", spec.get("restartPolicy"), RESTART_POLICIES)
    yield from one_of(f"{at}.dnsPolicy", spec.get("dnsPolicy"), DNS_POLICIES)
    if chosen := spec.get("nodeSelector"):
        yield from label_problems(f"{at}.nodeSelector", chosen)
    if context := spec.get("securityContext"):
        yield from _security_context(f"{at}.securityContext", context)
    if affinity := spec.get("affinity"):
        yield from _affinity(f"{at}.affinity", affinity)
    if spec.get("dnsPolicy") == "None" and not spec.get("dnsConfig"):
        yield required(f"{at}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    if constraints := spec.get("topologySpreadConstraints"):
        yield from _spread(f"{at}.topologySpreadConstraints", constraints)
    yield from _names(at, spec, (("serviceAccountName", names.subdomain), ("nodeName", names.subdomain)))
    yield from _names(at, spec, (("hostname", names.label), ("subdomain", names.label)))
    for index, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _toleration(f"{at}.tolerations[{index}]", toleration)
    yield from _names(at, spec, (("priorityClassName", names.subdomain), ("runtimeClassName", names.subdomain)))
    yield from one_of(f"{at}.preemptionPolicy", spec.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"))
    yield from one_of(f"{at}.os", (spec.get("os") or {}).get("name"), ("linux", "windows"))


def _containers(at: str, spec: Body, volumes: frozenset[str]) -> Iterator[str]:
    containers = spec.get("containers") or []
    if not containers:
        yield required(f"{at}.containers")
    seen = set()
    for index, container in enumerate(containers):
        here = f"{at}.containers[{index}]"
        yield from container_problems(here, container, volumes)
        name = container.get("name") or ""
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        yield from running_problems(here, container)
    yield from host_port_conflicts(f"{at}.containers", containers)
    for index, container in enumerate(spec.get("initContainers") or ()):
        here = f"{at}.initContainers[{index}]"
        yield from container_problems(here, container, volumes)
        name = container.get("name") or ""
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        yield from waiting_problems(here, container)


def _host_ports(at: str, containers: list[Body]) -> Iterator[str]:
    for place, container in enumerate(containers):
        for index, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                detail = "must match `containerPort` when `hostNetwork` is true"
                yield invalid(f"{at}[{place}].ports[{index}].hostPort", port["hostPort"], detail)


def _names(at: str, spec: Body, rules: tuple[tuple[str, names.NameRule], ...]) -> Iterator[str]:
    for key, rule in rules:
        if (value := spec.get(key)) and (problems := rule(value)):
            yield from each(f"{at}.{key}", value, problems)


def _security_context(at: str, context: Body) -> Iterator[str]:
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        number = context.get(key)
        if number is not None and not 0 <= number < 2**31:
            yield invalid(f"{at}.{key}", number, IDS)
    yield from one_of(f"{at}.fsGroupChangePolicy", context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"))


def _affinity(at: str, affinity: Body) -> Iterator[str]:
    if node := affinity.get("nodeAffinity"):
        yield from _node_affinity(f"{at}.nodeAffinity", node)
    for key in ("podAffinity", "podAntiAffinity"):
        if pod := affinity.get(key):
            yield from _pod_affinity(f"{at}.{key}", pod)


def _node_affinity(at: str, affinity: Body) -> Iterator[str]:
    needed = affinity.get(_REQUIRED)
    if needed is not None:
        here = f"{at}.{_REQUIRED}.nodeSelectorTerms"
        if not needed.get("nodeSelectorTerms"):
            yield required(here, "must have at least one node selector term")
        for index, term in enumerate(needed.get("nodeSelectorTerms") or ()):
            yield from _node_term(f"{here}[{index}]", term)
    for index, wish in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _weight(f"{at}.{_PREFERRED}[{index}].weight", wish)
        yield from _node_term(f"{at}.{_PREFERRED}[{index}].preference", wish.get("preference") or {})


def _node_term(at: str, term: Body) -> Iterator[str]:
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        here = f"{at}.matchExpressions[{index}]"
        operator, values = expression.get("operator") or "", expression.get("values")
        if operator not in _NODE_OPERATORS:
            yield invalid(f"{here}.operator", operator, "not a valid selector operator")
        elif operator in ("In", "NotIn") and not values:
            yield required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            yield forbidden(f"{here}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator in ("Gt", "Lt") and len(values or ()) != 1:
            yield required(f"{here}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        key = expression.get("key") or ""
        yield from each(f"{here}.key", key, names.qualified_name(key))


def _pod_affinity(at: str, affinity: Body) -> Iterator[str]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _pod_term(f"{at}.{_REQUIRED}[{index}]", term)
    for index, wish in enumerate(affinity.get(_PREFERRED) or ()):
        yield from _weight(f"{at}.{_PREFERRED}[{index}].weight", wish)
        yield from _pod_term(f"{at}.{_PREFERRED}[{index}].podAffinityTerm", wish.get("podAffinityTerm") or {})


def _pod_term(at: str, term: Body) -> Iterator[str]:
    yield from selector(f"{at}.labelSelector", term.get("labelSelector") or {})
    key = term.get("topologyKey") or ""
    if not key:
        yield required(f"{at}.topologyKey", "can not be empty")
    yield from each(f"{at}.topologyKey", key, names.qualified_name(key))


def _weight(at: str, wish: Body) -> Iterator[str]:
    weight = wish.get("weight") or 0
    if not 1 <= weight <= 100:
        yield invalid(at, weight, "must be in the range 1-100")


def _spread(at: str, constraints: list[Body]) -> Iterator[str]:
    seen = set()
    for index, constraint in enumerate(constraints):
        here = f"{at}[{index}]"
        skew = constraint.get("maxSkew") or 0
        key, action = constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            yield invalid(f"{here}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{here}.topologyKey", "can not be empty")
        if action not in _SPREAD_ACTIONS:
            yield unsupported(f"{here}.whenUnsatisfiable", action, _SPREAD_ACTIONS)
        if (key, action) in seen:
            # The server names the first of them by the index of the first constraint.
            yield duplicate(f"{at}[{index - 1}].{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        seen.add((key, action))
        yield from selector(f"{here}.labelSelector", constraint.get("labelSelector") or {})


def _toleration(at: str, toleration: Body) -> Iterator[str]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from each(f"{at}.key", key, names.qualified_name(key))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{at}.operator", operator, detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{at}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    match operator:
        case "Equal" | "":
            yield from each(f"{at}.operator", value, names.label_value(value))
        case "Exists" if value:
            yield invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
        case "Exists":
            pass
        case _:
            yield unsupported(f"{at}.operator", operator, ("Equal", "Exists"))
    yield from one_of(f"{at}.effect", effect, _TAINT_EFFECTS)


def _pod(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    yield from pod_problems("spec", spec)
    for key in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(key) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                detail = "must not have leading or trailing whitespace"
                yield invalid(f"spec.{key}[{index}].image", image, detail)


def _pod_template(body: Body) -> Iterator[str]:
    yield from template_problems("template", body.get("template") or {})


RULES: Rules = {("", "Pod"): _pod, ("", "PodTemplate"): _pod_template}
