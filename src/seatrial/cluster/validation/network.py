"""Validation of Services, Ingresses and NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network

from seatrial.cluster.validation import Rules, names
from seatrial.cluster.validation.causes import (
    duplicate,
    each,
    forbidden,
    internal,
    invalid,
    required,
    unsupported,
)
from seatrial.cluster.validation.containers import PROTOCOLS
from seatrial.cluster.validation.objectmeta import label_problems
from seatrial.cluster.validation.scalars import PORTS, one_of, port, selector
from seatrial.model.resource import Body

SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")

_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_RANGE = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_BAD_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_BAD_AT_PATH_ENDS = ("/..", "/.")
_only_balancers = "may only be used when `type` is 'LoadBalancer'"


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_range(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _service(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    kind = spec.get("type") or "ClusterIP"
    headless = spec.get("clusterIP") == "None" or "None" in (spec.get("clusterIPs") or ())
    ports = spec.get("ports") or []
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if headless and kind in ("LoadBalancer", "NodePort"):
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    yield from _service_ports(ports, headless)
    yield from label_problems("spec.selector", spec.get("selector") or {})
    yield from one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    yield from _service_addresses(spec, kind)
    yield from one_of("spec.type", kind, SERVICE_TYPES)
    yield from _for_one_type(spec, kind)
    yield from _distinct_ports(ports)
    if kind == "ClusterIP":
        for index, entry in enumerate(ports):
            if entry.get("nodePort"):
                yield forbidden(f"spec.ports[{index}].nodePort", "may not be used when `type` is 'ClusterIP'")


def _service_ports(ports: list[Body], headless: bool) -> Iterator[str]:
    seen = set()
    for index, entry in enumerate(ports):
        at = f"spec.ports[{index}]"
        name = entry.get("name") or ""
        if not name and len(ports) > 1:
            yield required(f"{at}.name")
        elif name:
            yield from each(f"{at}.name", name, names.label(name))
            if name in seen:
                yield duplicate(f"{at}.name", name)
            seen.add(name)
        number = entry.get("port") or 0
        if not 1 <= number <= 65535:
            yield invalid(f"{at}.port", number, PORTS)
        yield from one_of(f"{at}.protocol", entry.get("protocol"), PROTOCOLS)
        if not headless:
            # The default target is the port itself.
            yield from port(f"{at}.targetPort", entry.get("targetPort") or number)


def _service_addresses(spec: Body, kind: str) -> Iterator[str]:
    address = spec.get("clusterIP")
    if address and address != "None" and not is_address(address):
        yield invalid("spec.clusterIPs[0]", address, _ADDRESS)
    for index, family in enumerate(spec.get("ipFamilies") or ()):
        yield from one_of(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
    for index, text in enumerate(spec.get("externalIPs") or ()):
        if not is_address(text):
            yield invalid(f"spec.externalIPs[{index}]", text, _ADDRESS)


def _for_one_type(spec: Body, kind: str) -> Iterator[str]:
    """Fields that only make sense for one type of Service."""
    if kind == "ExternalName":
        name = (spec.get("externalName") or "").rstrip(".")
        if not name:
            yield required("spec.externalName")
        else:
            yield from each("spec.externalName", name, names.subdomain(name))
    if ranges := spec.get("loadBalancerSourceRanges"):
        if kind != "LoadBalancer":
            yield forbidden("spec.LoadBalancerSourceRanges", _only_balancers)
        for index, text in enumerate(ranges):
            if not is_range(text.strip()):
                yield invalid(f"spec.LoadBalancerSourceRanges[{index}]", text, _RANGE)
    if spec.get("loadBalancerClass") and kind != "LoadBalancer":
        yield forbidden("spec.loadBalancerClass", _only_balancers)
    policy = spec.get("externalTrafficPolicy")
    if policy and kind not in ("LoadBalancer", "NodePort") and not spec.get("externalIPs"):
        detail = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", policy, detail)
    number = spec.get("healthCheckNodePort")
    if number and not (kind == "LoadBalancer" and policy == "Local"):
        detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid("spec.healthCheckNodePort", number, detail)


def _distinct_ports(ports: list[Body]) -> Iterator[str]:
    seen = set()
    for index, entry in enumerate(ports):
        protocol = entry.get("protocol") or "TCP"
        key = protocol, entry.get("port") or 0
        if key in seen:
            fields = ("Name", "Protocol", "AppProtocol", "Port", "TargetPort", "NodePort")
            shown = {"name": "", "protocol": protocol, "port": key[1], "targetPort": 0, "nodePort": 0}
            yield duplicate(f"spec.ports[{index}]", internal(shown, fields))
        seen.add(key)


def _ingress(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    rules, backend = spec.get("rules"), spec.get("defaultBackend")
    if not rules and backend is None:
        yield invalid("spec", rules, "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _backend("spec.defaultBackend", backend)
    for index, rule in enumerate(rules or ()):
        yield from _ingress_rule(f"spec.rules[{index}]", rule)
    for index, entry in enumerate(spec.get("tls") or ()):
        for place, host in enumerate(entry.get("hosts") or ()):
            yield from each(f"spec.tls[{index}].hosts[{place}]", host, _host_rule(host)(host))
        if secret := entry.get("secretName"):
            yield from each(f"spec.tls[{index}].secretName", secret, names.subdomain(secret))
    if name := spec.get("ingressClassName"):
        yield from each("spec.ingressClassName", name, names.subdomain(name))


def _host_rule(host: str) -> names.NameRule:
    return names.wildcard_subdomain if "*" in host else names.subdomain


def _ingress_rule(at: str, rule: Body) -> Iterator[str]:
    if host := rule.get("host"):
        if is_address(host):
            yield invalid(f"{at}.host", host, "must be a DNS name, not an IP address")
        else:
            yield from each(f"{at}.host", host, _host_rule(host)(host))
    http = rule.get("http")
    if http is None:
        return
    if not http.get("paths"):
        yield required(f"{at}.http.paths")
    for index, path in enumerate(http.get("paths") or ()):
        yield from _ingress_path(f"{at}.http.paths[{index}]", path)


def _ingress_path(at: str, entry: Body) -> Iterator[str]:
    kind, path = entry.get("pathType"), entry.get("path") or ""
    if kind is None:
        yield required(f"{at}.pathType", "pathType must be specified")
        return
    if kind not in PATH_TYPES:
        yield unsupported(f"{at}.pathType", kind, PATH_TYPES)
    elif not path.startswith("/") and (path or kind != "ImplementationSpecific"):
        yield invalid(f"{at}.path", path, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in _BAD_IN_PATHS:
            if part in path:
                yield invalid(f"{at}.path", path, f"must not contain '{part}'")
        for part in _BAD_AT_PATH_ENDS:
            if path.endswith(part):
                yield invalid(f"{at}.path", path, f"cannot end with '{part}'")
    yield from _backend(f"{at}.backend", entry.get("backend") or {})


def _backend(at: str, backend: Body) -> Iterator[str]:
    service = backend.get("service")
    if service is None:
        if backend.get("resource") is None:
            yield invalid(at, "", "resource or service backend is required")
        return
    if backend.get("resource") is not None:
        yield invalid(at, "", "cannot set both resource and service backends")
        return
    name = service.get("name") or ""
    if not name:
        yield required(f"{at}.service.name")
    else:
        yield from each(f"{at}.service.name", name, names.label_1035(name))
    chosen = service.get("port") or {}
    if chosen.get("name") and chosen.get("number"):
        yield invalid(at, "", "cannot set both port name & port number")
    elif chosen.get("name"):
        yield from port(f"{at}.service.port.name", chosen["name"])
    elif chosen.get("number"):
        yield from port(f"{at}.service.port.number", chosen["number"])
    else:
        yield required(at, "port name or number is required")


def _network_policy(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    yield from selector("spec.podSelector", spec.get("podSelector") or {})
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            at = f"spec.{direction}[{index}]"
            for place, entry in enumerate(rule.get("ports") or ()):
                yield from _policy_port(f"{at}.ports[{place}]", entry)
            for place, peer in enumerate(rule.get(side) or ()):
                yield from _peer(f"{at}.{side}[{place}]", peer)
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        yield from one_of(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


def _policy_port(at: str, entry: Body) -> Iterator[str]:
    yield from one_of(f"{at}.protocol", entry.get("protocol"), ("TCP", "UDP", "SCTP"))
    number, last = entry.get("port"), entry.get("endPort")
    if number is not None:
        yield from port(f"{at}.port", number)
    if isinstance(number, int) and last is not None and last < number:
        yield invalid(f"{at}.endPort", number, "must be greater than or equal to `port`")


def _peer(at: str, peer: Body) -> Iterator[str]:
    given = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    for key in given[: -1 if "ipBlock" in given else None]:
        yield from selector(f"{at}.{key}", peer[key])
    if not given:
        yield required(at, "must specify a peer")
    elif "ipBlock" in given and len(given) > 1:
        yield forbidden(at, "may not specify both ipBlock and another peer")
    elif "ipBlock" in given:
        yield from _block(f"{at}.ipBlock", peer["ipBlock"])


def _block(at: str, block: Body) -> Iterator[str]:
    text = block.get("cidr") or ""
    if not text:
        yield required(f"{at}.cidr")
        return
    if not is_range(text):
        yield invalid(f"{at}.cidr", text, _RANGE)
        return
    whole = ip_network(text, strict=False)
    for index, part in enumerate(block.get("except") or ()):
        if not is_range(part):
            yield invalid(f"{at}.except[{index}]", part, _RANGE)
            continue
        inner = ip_network(part, strict=False)
        if inner.version != whole.version or not (inner != whole and inner.subnet_of(whole)):  # type: ignore[arg-type]
            yield invalid(f"{at}.except[{index}]", part, "must be a strict subset of `cidr`")


RULES: Rules = {
    ("", "Service"): _service,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
}
