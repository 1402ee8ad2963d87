"""The real cluster: the control plane, a kubelet, its objects, and how it is emptied after each run."""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from apiclient import Api
from realserver import kubeconfig, real_server

from lab.containers import Sandbox
from lab.kubelet import Kubelet
from lab.node_time import CLIENT, POLICY, NodeTime
from lab.resources import Resource, discovered, find
from lab.webhooks import Authority, Backends
from seatrial.engines import Stuck
from seatrial.kinds.core.conditions import is_true
from seatrial.kinds.operators.reconcile import CA_BUNDLE
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, Ref, dig, listed, metadata, name_of, ref_of, uid_of
from seatrial.model.timeline import Event
from seatrial.sandbox import Door

QUIET_SECONDS = 0.8
SETTLE_SECONDS_MAX = 12.0
EMPTY_SECONDS_MAX = 60.0
SERVED_SECONDS_MAX = 3.0
HANG_SECONDS_MAX = 60.0
"""How long a Helm that does not heed its own timeout may take."""
START_SECONDS_MAX = 60.0
NEVER_LISTED = frozenset(("Event", "Lease", "ComponentStatus", "Binding", "IPAddress", "ServiceCIDR", "APIService"))
"""Kinds of which the control plane keeps objects of its own. APIServices of others are listed apart."""


class RealCluster:
    """A running control plane. It is `engines.Api` for a real Helm, which keeps its own time here."""

    def __init__(self, api: Api, kubelet: Kubelet, config: Callable[[str], str]) -> None:
        self.api = api
        self.kubelet = kubelet
        self._config = config
        self._deadline = 0.0
        self._own: set[tuple[Ref, str]] = set()
        self.provided: set[Ref] = set()
        """Prerequisites that come with their namespace."""

    def kubeconfig(self, namespace: str = "default", path: str = "") -> str:
        """Helm's discovery cache is in a folder of the lab (KUBECACHEDIR), so the path is not needed."""
        self._deadline = time.monotonic() + HANG_SECONDS_MAX
        return self._config(namespace)

    @contextmanager
    def client_acts(self) -> Iterator[None]:
        """While Helm or kubectl runs. Between steps no time passes on nodes, unless the cluster settles."""
        self.kubelet.time.begin_step()
        try:
            yield
        finally:
            self.kubelet.time.end_step()

    def door(self) -> Door:
        raise CannotContinue("the lab runs no process in the sandbox")

    def believes(
        self,
        content: Callable[[Body], bool | None],
        waits_for: Callable[[Iterable[Event]], list[Ref]],
        *,
        sleeps_seconds: float = 0,
    ) -> None:
        pass

    def stuck(self, patience_seconds: float) -> Stuck | None:
        late = time.monotonic() > self._deadline
        return Stuck("it does not heed its timeout", (), ()) if late else None

    def silent(self) -> bool:
        return False

    def hang_up(self) -> None:
        pass

    def resources(self) -> list[Resource]:
        """The kinds that can be listed, in the version that the API server prefers."""
        until = time.monotonic() + SERVED_SECONDS_MAX
        while True:
            found = list(discovered(self.api))
            served = {f"{one.plural}.{one.group}" for one in found}
            # A definition that was changed is not served for a moment.
            if served >= self._defined() or time.monotonic() > until:
                return found
            time.sleep(0.2)

    def _defined(self) -> set[str]:
        """The custom kinds that are established."""
        return {name_of(body) for body in self._definitions() if is_true(body, "Established")}

    def _definitions(self) -> list[Body]:
        return listed(self.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").body, "items")

    def objects(self) -> dict[Ref, Body]:
        """All objects, without those that the control plane keeps for itself."""
        found: dict[Ref, Body] = {}
        for resource in self.resources():
            if resource.kind in NEVER_LISTED or resource.group == "events.k8s.io":
                continue
            for body in self._items(resource.path()):
                of = {"apiVersion": resource.api_version, "kind": resource.kind}
                ref = Ref(resource.kind, str(metadata(body).get("namespace") or ""), name_of(body), resource.group)
                found[ref] = {**of, **body}
        for body in listed(self.api.get("/apis/apiregistration.k8s.io/v1/apiservices").body, "items"):
            if "kube-aggregator.kubernetes.io/automanaged" not in (metadata(body).get("labels") or {}):
                found[Ref("APIService", "", name_of(body), "apiregistration.k8s.io")] = body
        return found

    def _items(self, path: str) -> list[Body]:
        """A list. The storage of a definition that was changed is not ready for a moment (429)."""
        until = time.monotonic() + SERVED_SECONDS_MAX
        while (reply := self.api.get(path)).code != 200 and time.monotonic() < until:
            time.sleep(0.2)
        return listed(reply.body, "items")

    def put(self, body: Body, *, manager: str = "") -> str:
        """Create or apply an object; the error, if there is one."""
        body = json.loads(json.dumps(body).replace(CA_BUNDLE, self.kubelet.bundle))
        for _ in range(50):
            resource = find(self.api, body)
            if resource is not None:
                break
            time.sleep(0.1)  # A CRD is served a moment after it was created.
        else:
            return f"no kind {body.get('kind')} in {body.get('apiVersion')}"
        namespace = str(metadata(body).get("namespace") or "default") if resource.namespaced else ""
        if manager:
            reply = self.api.apply(resource.path(namespace, name_of(body)), body, manager, force="true")
        else:
            reply = self.api.post(resource.path(namespace), body)
        return "" if reply.code < 400 or reply.body.get("reason") == "AlreadyExists" else reply.refusal

    def settle(self) -> None:
        """Wait until nothing is written any more and no script runs, for a limited time."""
        self.kubelet.time.settle()
        until = time.monotonic() + SETTLE_SECONDS_MAX
        seen, since = self._revision(), time.monotonic()
        while time.monotonic() < until:
            time.sleep(0.2)
            now = self._revision()
            if now != seen or self.kubelet.is_busy or self._ends_a_namespace() or self._ends_a_definition():
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > QUIET_SECONDS:
                return

    def has_namespace(self, name: str) -> bool:
        return self.api.get(f"/api/v1/namespaces/{name}").code == 200

    def provide(self, body: Body) -> None:
        """Create an object as soon as its namespace exists."""
        self.provided.add(ref_of(body))
        self.kubelet.provides = (*self.kubelet.provides, body)

    def pass_time(self, seconds: float) -> bool:
        """Delete finished Jobs whose TTL ends in this time, as their controller would; whether there are any."""
        late = [
            body
            for body in listed(self.api.get("/apis/batch/v1/jobs").body, "items")
            if (limit := dig(body, "spec", "ttlSecondsAfterFinished")) is not None
            and limit <= seconds
            and (is_true(body, "Complete") or is_true(body, "Failed"))
        ]
        for body in late:
            path = f"/apis/batch/v1/namespaces/{metadata(body)['namespace']}/jobs/{name_of(body)}"
            self.api.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"})
        if late:
            self.settle()
        return bool(late)

    def forget_discovery(self) -> None:
        """Each run of Helm starts with an empty cache, as in the embedded cluster."""
        shutil.rmtree(os.environ["KUBECACHEDIR"], ignore_errors=True)

    def remember(self) -> None:
        """What is there now belongs to the cluster itself."""
        self._own = {(ref, uid_of(body)) for ref, body in self.objects().items()}

    def empty(self) -> bool:
        """Delete everything else; whether that worked."""
        self.provided, self.kubelet.provides = set(), ()
        self.kubelet.operators.play(())
        until = time.monotonic() + EMPTY_SECONDS_MAX
        while time.monotonic() < until:
            left = [(ref, body) for ref, body in self.objects().items() if (ref, uid_of(body)) not in self._own]
            left = [(ref, body) for ref, body in left if not _comes_by_itself(ref)]
            if not left:
                return True
            kinds = {(one.group, one.kind): one for one in self.resources()}
            kinds["apiregistration.k8s.io", "APIService"] = Resource(
                "apiregistration.k8s.io", "v1", "APIService", "apiservices", False
            )
            for ref, _ in sorted(left, key=lambda one: _last(one[0])):
                if resource := kinds.get((ref.group, ref.kind)):
                    self._delete(resource.path(ref.namespace, ref.name), ref)
            time.sleep(0.3)
        return False

    def _delete(self, path: str, ref: Ref) -> None:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        reply = self.api.delete(path, {**options, "propagationPolicy": "Background"})
        if listed(reply.body, "metadata", "finalizers") and ref.kind not in ("Namespace", "CustomResourceDefinition"):
            self.api.patch(path, {"metadata": {"finalizers": None}})

    def _ends_a_namespace(self) -> bool:
        """Whether a namespace is being emptied, which the controller does with pauses of seconds."""
        found = listed(self.api.get("/api/v1/namespaces").body, "items")
        return any(metadata(body).get("deletionTimestamp") for body in found)

    def _ends_a_definition(self) -> bool:
        """Whether a CRD without objects is being deleted: its controller looks again after some seconds."""
        ending = [body for body in self._definitions() if metadata(body).get("deletionTimestamp")]
        return any(not self._has_objects(body) for body in ending)

    def _has_objects(self, definition: Body) -> bool:
        served = next((one["name"] for one in definition["spec"]["versions"] if one["served"]), "")
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        return bool(listed(self.api.get(f"/apis/{group}/{served}/{plural}", limit=1).body, "items"))

    def _revision(self) -> str:
        return str(self.api.get("/api/v1/pods", limit=1).body["metadata"]["resourceVersion"])


@contextmanager
def real_cluster(assets: Path, authority: Authority) -> Iterator[RealCluster]:
    """A control plane from `assets` with a kubelet. Everything is stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="seatrial-lab-"))
    try:
        with real_server(assets, folder, users=(CLIENT,), audit_policy=POLICY) as api:
            certificate = folder / "certificates" / "apiserver.crt"
            tokens = {user: token for token, user, *_ in csv.reader((folder / "tokens.csv").open())}

            def config(token: str, namespace: str) -> str:
                return kubeconfig(api.port, token or tokens["admin"], certificate, namespace)

            with Api(api.url, token=tokens["admin"], tls=api.tls) as own:
                sandbox, clock = Sandbox(folder / "kubelet", own, config), NodeTime(folder / "audit.log")
                kubelet = Kubelet(own, sandbox, Backends(authority), clock)
                _await_controllers(api)
                kubelet.start()
                cluster = RealCluster(api, kubelet, lambda namespace: config(tokens[CLIENT], namespace))
                cluster.settle()
                cluster.remember()
                try:
                    yield cluster
                finally:
                    kubelet.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _await_controllers(api: Api) -> None:
    until = time.monotonic() + START_SECONDS_MAX
    while api.get("/api/v1/namespaces/default/serviceaccounts/default").code != 200:
        if time.monotonic() > until:
            raise TimeoutError(f"the controllers did not start within {START_SECONDS_MAX:.0f} seconds")
        time.sleep(0.2)


def _comes_by_itself(ref: Ref) -> bool:
    return (ref.kind, ref.name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")) or ref.kind in (
        "Endpoints",
        "EndpointSlice",
    )


def _last(ref: Ref) -> int:
    """Webhooks go first, then workloads; definitions and namespaces go last."""
    order: Iterable[tuple[str, ...]] = (
        ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService"),
        ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "ReplicaSet"),
    )
    for number, kinds in enumerate(order):
        if ref.kind in kinds:
            return number
    return 9 if ref.kind in ("CustomResourceDefinition", "Namespace") else 5
