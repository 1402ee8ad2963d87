"""ResourceQuota: whether a namespace has room for one more object. Counts objects; does not read the status.

From pkg/quota/v1 and k8s.io/apiserver, pkg/admission/plugin/resourcequota of 1.34.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from seatrial.cluster.admission.amounts import Amounts, amounts, of_pod, shown, total
from seatrial.cluster.admission.request import AdmissionRequest
from seatrial.cluster.refusal import qualified
from seatrial.kinds import World
from seatrial.kinds.core.quantities import amount
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.workloads.pod import qos_class
from seatrial.kinds.workloads.pods import is_finished
from seatrial.model.resource import Body, dig, listed, name_of

ALIASES = {
    ("", "ConfigMap"): "configmaps",
    ("", "ReplicationController"): "replicationcontrollers",
    ("", "ResourceQuota"): "resourcequotas",
    ("", "Secret"): "secrets",
}
"""Kinds whose count also has a name without `count/`."""

CHANGES_COUNT = frozenset((("", "PersistentVolumeClaim"), ("", "Service")))
"""Kinds whose usage may grow after creation."""

MUST_SPECIFY = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
"""A quota on one of these requires that every container of a pod sets it."""

OF_PODS = ("requests.", "limits.", "hugepages-", "ephemeral-storage")

BY_CLASS = ".storageclass.storage.k8s.io/"


def check(request: AdmissionRequest, world: World) -> None:
    """Refuse an object that exceeds a quota of its namespace."""
    if not request.kind.namespaced or request.subresource or not _counts(request):
        return
    quotas = world.all("ResourceQuota", request.namespace)
    if not quotas:
        return
    wanted = usage(request.kind, request.body)
    matching = [
        quota for quota in quotas if _is_about(request, quota, wanted) and _in_scope(request, request.body, quota)
    ]
    for quota in matching:
        if request.group_kind == ("", "Pod"):
            _refuse_unspecified(request, quota)
    before = usage(request.kind, request.old) if request.old else {}
    more = {name: much - before.get(name, Fraction(0)) for name, much in wanted.items()}
    for quota in matching:
        _refuse_exceeding(request, quota, {name: much for name, much in more.items() if much > 0}, world)


def usage(kind: ServedKind, body: Body) -> Amounts:
    """The usage of one object, by quota."""
    found = {f"count/{qualified(kind.plural, kind.group)}": Fraction(1)}
    match kind.group, kind.kind:
        case "", "Pod":
            return {**found, **({} if is_finished(body) else dict(_of_pod(body.get("spec") or {})))}
        case "", "Service":
            return {**found, **_of_service(body.get("spec") or {})}
        case "", "PersistentVolumeClaim":
            return {**found, **dict(_of_claim(body.get("spec") or {}))}
    if alias := ALIASES.get((kind.group, kind.kind)):
        found[alias] = Fraction(1)
    return found


def _counts(request: AdmissionRequest) -> bool:
    return request.operation == "CREATE" or (request.operation == "UPDATE" and request.group_kind in CHANGES_COUNT)


def _is_about(request: AdmissionRequest, quota: Body, wanted: Amounts) -> bool:
    """A quota on requests or limits applies to every pod, even to one without any."""
    if wanted.keys() & _hard(quota).keys():
        return True
    return request.group_kind == ("", "Pod") and any(
        name in MUST_SPECIFY or name.startswith(OF_PODS) for name in _hard(quota) if name != "requests.storage"
    )


def _hard(quota: Body) -> Body:
    found = dig(quota, "spec", "hard")
    return found if isinstance(found, dict) else {}


def _of_pod(spec: Body) -> Iterator[tuple[str, Fraction]]:
    yield "pods", Fraction(1)
    for name, much in of_pod(spec, "requests").items():
        yield f"requests.{name}", much
        yield name, much
    for name, much in of_pod(spec, "limits").items():
        yield f"limits.{name}", much


def _of_service(spec: Body) -> Amounts:
    """Node ports that will be allocated count as well."""
    ports, kind = listed(spec, "ports"), spec.get("type")
    explicit = [port for port in ports if port.get("nodePort")]
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = explicit
    node_ports = len(ports) if kind in ("NodePort", "LoadBalancer") else 0
    balancers = int(kind == "LoadBalancer")
    return {
        "services": Fraction(1),
        "services.loadbalancers": Fraction(balancers),
        "services.nodeports": Fraction(node_ports),
    }


def _of_claim(spec: Body) -> Iterator[tuple[str, Fraction]]:
    storage = amount(dig(spec, "resources", "requests", "storage"))
    storage_class = spec.get("storageClassName")
    for prefix in ("", *([f"{storage_class}{BY_CLASS}"] if storage_class else [])):
        yield f"{prefix}persistentvolumeclaims", Fraction(1)
        yield f"{prefix}requests.storage", storage


def _in_scope(request: AdmissionRequest, body: Body, quota: Body) -> bool:
    """Scopes select pods; other objects are in no scope."""
    return all(_fits_scope(request.group_kind, body, term) for term in _scopes(quota))


def _scopes(quota: Body) -> Iterable[Body]:
    yield from ({"scopeName": name, "operator": "Exists"} for name in listed(quota, "spec", "scopes"))
    yield from listed(quota, "spec", "scopeSelector", "matchExpressions")


def _fits_scope(of: tuple[str, str], body: Body, term: Body) -> bool:
    if of != ("", "Pod"):
        return False
    spec = body.get("spec") or {}
    terminating, best_effort = spec.get("activeDeadlineSeconds") is not None, qos_class(spec) == "BestEffort"
    match term.get("scopeName"):
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "PriorityClass":
            return _fits_class(str(spec.get("priorityClassName") or ""), term)
    return False


def _fits_class(name: str, term: Body) -> bool:
    match term.get("operator"):
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in (term.get("values") or ())
    return name not in (term.get("values") or ())


def _refuse_unspecified(request: AdmissionRequest, quota: Body) -> None:
    if dig(request.body, "spec", "resources"):
        return
    containers = [*listed(request.body, "spec", "containers"), *listed(request.body, "spec", "initContainers")]
    lacking = []
    for name in sorted(MUST_SPECIFY & _hard(quota).keys()):
        unset = sorted({str(container.get("name")) for container in containers if not _sets(container, name)})
        if unset:
            lacking.append(f"{name} for: {','.join(unset)}")
    if lacking:
        message = f"failed quota: {name_of(quota)}: must specify {'; '.join(lacking)}"
        raise request.refusal(message, by="quota-unspecified")


def _sets(container: Body, name: str) -> bool:
    field, _, resource = name.rpartition(".")
    return resource in (dig(container, "resources", field or "requests") or {})


def _refuse_exceeding(request: AdmissionRequest, quota: Body, more: Amounts, world: World) -> None:
    hard = amounts(_hard(quota))
    more = {name: much for name, much in more.items() if name in hard}
    if not more:
        return
    there = world.all(request.kind.kind, request.namespace, request.kind.group)
    used = total(usage(request.kind, body) for body in there if _in_scope(request, body, quota))
    over = sorted(name for name in more if used.get(name, Fraction(0)) + more[name] > hard[name])
    if over:
        requested, in_use, limited = (
            ",".join(f"{name}={shown(name, found.get(name, Fraction(0)))}" for name in over)
            for found in (more, used, hard)
        )
        message = f"exceeded quota: {name_of(quota)}, requested: {requested}, used: {in_use}, limited: {limited}"
        raise request.refusal(message, by="quota")
