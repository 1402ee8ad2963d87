"""Services: node ports and addresses that belong to another one, and what a change of the type leaves."""

from __future__ import annotations

import pytest
from asking import OK, Api

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec: SPEC
"""
PORT = "ports: [{port: 80, nodePort: 30080}]"


def service(name: str, spec: str) -> str:
    return SERVICE.replace("NAME", name).replace("SPEC", f"{{{spec}}}")


def test_a_node_port_belongs_to_one_service() -> None:
    api = Api(service("a", f"type: NodePort, {PORT}"))
    taken = 'Service "b" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated'
    assert api.create(service("b", f"type: NodePort, {PORT}")) == taken
    assert api.create(service("b", f"type: LoadBalancer, {PORT}")) == taken
    assert api.delete("Service", "a") == OK
    assert api.create(service("b", f"type: NodePort, {PORT}")) == OK
    assert api.apply(service("b", f"type: NodePort, {PORT}")) == OK


def test_a_change_may_not_take_a_node_port_of_another_service() -> None:
    api = Api(service("a", f"type: NodePort, {PORT}"))
    assert api.apply(service("b", "type: NodePort, ports: [{port: 80, nodePort: 30081}]")) == OK
    refusal = api.apply(service("b", f"type: NodePort, {PORT}"))
    assert refusal.endswith("spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated")


def test_a_node_port_is_in_the_usual_range() -> None:
    assert Api().create(service("a", "type: NodePort, ports: [{port: 80, nodePort: 80}]")) == (
        'Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 80: '
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    )


def test_an_address_belongs_to_one_service() -> None:
    api = Api(service("a", "clusterIP: 10.0.0.7, ports: [{port: 80}]"))
    assert api.create(service("b", "clusterIP: 10.0.0.7, ports: [{port: 80}]")) == (
        'Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.7"]: '
        "failed to allocate IP 10.0.0.7: provided IP is already allocated"
    )


@pytest.mark.parametrize("before", ["NodePort", "LoadBalancer"])
@pytest.mark.parametrize("after", ["ClusterIP", "ExternalName, externalName: db.example"])
def test_another_type_drops_what_only_the_old_one_has(before: str, after: str) -> None:
    api = Api()
    assert api.apply(service("a", f"type: {before}, ports: [{{port: 80}}]")) == OK
    assert api.apply(service("a", f"type: {after}, ports: [{{port: 80}}]")) == OK
    spec = api.get("Service", "a")["spec"]
    assert "externalTrafficPolicy" not in spec
    assert "allocateLoadBalancerNodePorts" not in spec
    assert "nodePort" not in spec["ports"][0]


def test_a_node_port_that_comes_with_another_type_is_refused() -> None:
    api = Api()
    assert api.apply(service("a", "type: NodePort, ports: [{port: 80, nodePort: 30080}]")) == OK
    refusal = api.apply(service("a", "type: ClusterIP, ports: [{port: 80, nodePort: 30081}]"))
    assert refusal.endswith("spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'")
