"""Columns of `kubectl get` for Services, Ingresses and NetworkPolicies."""

from __future__ import annotations

from seatrial.cluster.tables.column import (
    AGE,
    NAME,
    NONE,
    Column,
    Columns,
    at,
    joined,
    labels_shown,
    selector,
)
from seatrial.model.resource import Body, dig, listed


def _external(body: Body, now: str) -> str:
    spec = body.get("spec") or {}
    own = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case "LoadBalancer":
            found = _balancer(body)
            return joined(([found] if found else []) + own, "<pending>")
    return joined(own)


def _balancer(body: Body) -> str:
    entries = listed(body, "status", "loadBalancer", "ingress")
    return ",".join(sorted({entry.get("ip") or entry.get("hostname") or "" for entry in entries} - {""}))


def _ports(body: Body, now: str) -> str:
    def written(port: Body) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{node}/{port.get('protocol') or 'TCP'}"

    return joined(map(written, listed(body, "spec", "ports")))


def _hosts(body: Body, now: str) -> str:
    rules = listed(body, "spec", "rules")
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    if len(hosts) > 3:
        return f"{','.join(hosts[:3])} + {len(rules) - 3} more..."
    return joined(hosts, "*")


def _endpoints(body: Body, now: str) -> str:
    found = [
        f"{address.get('ip')}:{port['port']}" if port else str(address.get("ip"))
        for subset in listed(body, "subsets")
        for port in subset.get("ports") or (None,)
        for address in subset.get("addresses") or ()
    ]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return joined(found[:3], NONE if not body.get("subsets") else "") + more


def _parameters(body: Body, now: str) -> str:
    parameters = dig(body, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters.get('kind')}{group}/{parameters.get('name')}"


COLUMNS: Columns = {
    ("", "Endpoints"): (NAME, Column("Endpoints", _endpoints), AGE),
    ("", "Service"): (
        NAME,
        Column("Type", at("spec", "type")),
        Column("Cluster-IP", at("spec", "clusterIP", default=NONE)),
        Column("External-IP", _external),
        Column("Port(s)", _ports),
        AGE,
        Column("Selector", lambda body, now: labels_shown(dig(body, "spec", "selector")), wide=True),
    ),
    ("networking.k8s.io", "Ingress"): (
        NAME,
        Column("Class", at("spec", "ingressClassName", default=NONE)),
        Column("Hosts", _hosts),
        Column("Address", lambda body, now: _balancer(body)),
        Column("Ports", lambda body, now: "80, 443" if listed(body, "spec", "tls") else "80"),
        AGE,
    ),
    ("networking.k8s.io", "IngressClass"): (
        NAME,
        Column("Controller", at("spec", "controller")),
        Column("Parameters", _parameters),
        AGE,
    ),
    ("networking.k8s.io", "NetworkPolicy"): (NAME, Column("Pod-Selector", selector("spec", "podSelector")), AGE),
}
