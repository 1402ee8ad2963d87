"""Services: addresses, and endpoints that follow pods."""

from __future__ import annotations

from world import SmallWorld

from seatrial.model.resource import Body, dig, listed

SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: TARGET}]}
---
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: web}}
spec: {containers: [{name: main, image: web, ports: [{name: web, containerPort: 8080}]}]}
---
"""


def endpoints(world: SmallWorld) -> list[tuple[str, bool, list[int]]]:
    """(pod, ready, ports) by slice."""
    return [
        (dig(endpoint, "targetRef", "name"), dig(endpoint, "conditions", "ready"), [p["port"] for p in found["ports"]])
        for found in world.all("EndpointSlice", "demo", "discovery.k8s.io")
        for endpoint in listed(found, "endpoints")
    ]


def subsets(world: SmallWorld) -> list[Body]:
    return listed(world.object("Endpoints", "web"), "subsets")


def test_ready_pods_are_endpoints_of_a_service() -> None:
    world = SmallWorld(SERVICE.replace("TARGET", "8080") + POD.replace("NAME", "one")).run()
    assert endpoints(world) == [("one", True, [8080])]
    (found,) = world.all("EndpointSlice", "demo", "discovery.k8s.io")
    assert found["metadata"]["labels"] == {
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": "web",
    }
    pod = world.object("Pod", "one")
    assert subsets(world) == [
        {
            "addresses": [
                {
                    "ip": pod["status"]["podIP"],
                    "nodeName": "node-a",
                    "targetRef": {"kind": "Pod", "name": "one", "namespace": "demo", "uid": pod["metadata"]["uid"]},
                }
            ],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }
    ]


def test_an_unready_pod_gets_no_traffic() -> None:
    broken = POD.replace("NAME", "one").replace("image: web,", "image: web, envFrom: [{secretRef: {name: x}}],")
    world = SmallWorld(SERVICE.replace("TARGET", "8080") + broken).run()
    assert endpoints(world) == [("one", False, [8080])]
    assert "addresses" not in subsets(world)[0]


def test_the_pod_of_a_hook_job_that_matches_the_selector_gets_traffic() -> None:
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec: {template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: m, image: m}]}}}
"""
    world = SmallWorld(SERVICE.replace("TARGET", "8080") + job)
    seen = []
    for _ in range(6):
        world.step("Job", "migrate", group="batch").step("Pod", "migrate-1").step("Service", "web")
        seen.append(endpoints(world))
    assert [("migrate-1", True, [8080])] in seen
    assert seen[-1] == []


def test_a_named_port_is_looked_up_in_each_pod() -> None:
    other = POD.replace("NAME", "two").replace("name: web, containerPort", "name: other, containerPort")
    world = SmallWorld(SERVICE.replace("TARGET", "web") + POD.replace("NAME", "one") + other).run()
    assert sorted(endpoints(world)) == [("one", True, [8080]), ("two", True, [])]


def test_endpoints_are_deleted_with_their_service() -> None:
    world = SmallWorld(SERVICE.replace("TARGET", "8080") + POD.replace("NAME", "one")).run()
    world.delete("Service", "web").run()
    assert (world.names("Endpoints"), world.names("EndpointSlice", "discovery.k8s.io")) == ([], [])


def test_a_load_balancer_gets_an_external_address() -> None:
    world = SmallWorld(SERVICE.replace("TARGET", "8080").replace("spec: {", "spec: {type: LoadBalancer, ")).run()
    assert world.status("Service", "web") == {"loadBalancer": {"ingress": [{"ip": "203.0.113.224", "ipMode": "VIP"}]}}
    assert world.object("Service", "web")["spec"]["ports"][0]["nodePort"] == 31097
    world.apply(SERVICE.replace("TARGET", "8080").replace("spec: {", "spec: {type: ClusterIP, ")).run()
    assert world.status("Service", "web") == {"loadBalancer": {}}


def test_a_service_keeps_its_allocated_address() -> None:
    world = SmallWorld(SERVICE.replace("TARGET", "8080")).run()
    before = world.object("Service", "web")["spec"]
    world.apply(SERVICE.replace("TARGET", "9090"))
    after = world.object("Service", "web")["spec"]
    assert after["clusterIP"] == before["clusterIP"]
    assert after["clusterIPs"] == [before["clusterIP"]]


def test_a_service_keeps_the_address_it_names() -> None:
    named = SERVICE.replace("TARGET", "8080").replace("spec: {", "spec: {clusterIP: 10.96.0.77, ")
    world = SmallWorld(named).apply(SERVICE.replace("TARGET", "9090"))
    assert world.object("Service", "web")["spec"]["clusterIPs"] == ["10.96.0.77"]
