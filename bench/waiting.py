"""How long `seatrial wait` takes beyond the moment when its target is usable, over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from bench import Figure
from bench.objects import configmap, deployment
from seatrial.cluster.cluster import Cluster
from seatrial.cluster.server.http import ApiServer
from seatrial.kinds.operators.reconcile import CA_BUNDLE
from seatrial.live.client import Client
from seatrial.live.fetching import Fetching
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.seen import Seen
from seatrial.live.waiting import Progress, wait_for
from seatrial.live.wanted import parse
from seatrial.model.resource import Body

RUNS = 21
SECONDS_MAX = 30.0
CRD: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
SERVICE: Body = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web"},
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 443}]},
}
WEBHOOK: Body = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "guard"},
    "webhooks": [
        {
            "name": "guard.example.com",
            "clientConfig": {"service": {"name": "web", "namespace": "default"}, "caBundle": CA_BUNDLE},
            "rules": [
                {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
            ],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}


def figures() -> Iterator[Figure]:
    cases: Sequence[tuple[str, str, Sequence[Body], Body]] = (
        ("ConfigMap", "configmap/app", (), configmap("app")),
        ("Deployment", "deployment/web", (), deployment("web")),
        ("CRD", "crd/widgets.example.com", (), CRD),
        ("webhook, with a dry run", "webhook/guard", (SERVICE, WEBHOOK), deployment("web")),
    )
    for what, target, before, last in cases:
        late = sorted(_late(target, before, last) for _ in range(RUNS))
        yield Figure(f"wait: {what}", f"{median(late):.3f} s", f"(worst of {RUNS}: {late[-1]:.3f} s)")


def _late(target: str, before: Sequence[Body], last: Body) -> float:
    """Seconds from the moment when the target is usable to the end of the wait."""
    cluster = Cluster()
    moment = [0.0]
    with ApiServer(cluster) as server, Client(ClusterAccess(server.url)) as hands:

        def put(body: Body) -> None:
            hands.apply(body, "bench")
            cluster.settle()

        def last_one() -> None:
            put(last)
            moment[0] = time.perf_counter()

        for body in before:
            put(body)
        with Client(ClusterAccess(server.url)) as client, Fetching(client, Seen(), SECONDS_MAX) as fetching:
            wanted = parse(target, "default", lambda kind: client.served().named(kind))
            thread = threading.Thread(target=last_one)
            found = wait_for([wanted], fetching, _once(thread.start))
            ended = time.perf_counter()
            thread.join()
    assert found[0].verdict.usable
    return max(0.0, ended - moment[0])


def _once(action: Callable[[], None]) -> Callable[[Sequence[Progress]], None]:
    """Act at the first report: then the target is watched."""
    left = [action]

    def report(_: Sequence[Progress]) -> None:
        if left:
            left.pop()()

    return report
