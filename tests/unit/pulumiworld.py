"""A small world for tests of Pulumi: a cluster, a stack, and resources to put into it."""

from __future__ import annotations

from typing import Any

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.deploying import destroy, up
from seatrial.engines.pulumi.refreshing import refresh
from seatrial.engines.script import Command, play
from seatrial.model.program import Program, RegisteredOptions, Registration, urn_of
from seatrial.model.resource import Body, Ref, ref_of
from seatrial.model.timeline import Event, Schedule
from seatrial.play.in_process import InProcess

CLUSTER_SCOPED = ("CustomResourceDefinition", "Namespace", "ValidatingWebhookConfiguration")


class World:
    """A cluster, and a stack that Pulumi remembers."""

    def __init__(self, schedule: Schedule = "eager") -> None:
        self.cluster = Cluster("1.34", schedule)
        self._checkpoint = Checkpoint()
        self._client = InProcess(self.cluster, "pulumi")
        self._other = InProcess(self.cluster, "another-team")
        self._begun: list[int] = []

    def up(self, *registrations: Registration) -> Ended:
        self._begun.append(len(self.cluster.timeline()))
        return play(up(Program("app", registrations, "dev"), self._checkpoint), self._client)

    def destroy(self) -> Ended:
        self._begun.append(len(self.cluster.timeline()))
        return play(destroy(self._checkpoint), self._client)

    def writes(self, step: int) -> list[str]:
        """What Pulumi made and deleted in a step, in order; without what Helm keeps for itself."""
        events = self.cluster.timeline()[self._begun[step] :]
        return [f"{e.verb} {e.object}" for e in events if _is_pulumis(e) and e.verb in ("create", "delete")]

    def made(self) -> list[str]:
        return [str(e.object) for e in self.cluster.timeline() if _is_pulumis(e) and e.effect == "created"]

    def said(self, name: str) -> list[str]:
        return [e.message for e in self.cluster.timeline() if e.effect == "said" and e.object.name == name]

    def status_of(self, release: str, revision: int) -> str:
        """What Helm has written of a revision of a release."""
        record = self.get("Secret", f"sh.helm.release.v1.{release}.v{revision}")
        return str(record["metadata"]["labels"]["status"]) if record else ""

    def get(self, kind: str, name: str, group: str = "") -> Body | None:
        return self.cluster.store.get(Ref(kind, "default", name, group))

    def refresh(self) -> Ended:
        self._begun.append(len(self.cluster.timeline()))
        return play(refresh(self._checkpoint), self._client)

    def put(self, body: Body) -> None:
        """Another client creates or changes an object."""
        meta = body["metadata"]
        named = body["apiVersion"], body["kind"], meta.get("namespace", ""), meta["name"]
        self._other.do(Command("apply", *named, body, "another-team", force=True))

    def remove(self, body: Body) -> None:
        """Another client deletes an object."""
        meta = body["metadata"]
        self._other.do(Command("delete", body["apiVersion"], body["kind"], meta.get("namespace", ""), meta["name"]))


def resource(
    body: Body,
    *,
    name: str = "",
    depends: list[Registration] | None = None,
    made_of: dict[str, list[Registration]] | None = None,
    options: RegisteredOptions | None = None,
    auto_named: bool = False,
) -> Registration:
    """A resource; `made_of` says from whose outputs each of its inputs is made."""
    version, called = str(body["apiVersion"]), name or str(body["metadata"]["name"])
    type_ = f"kubernetes:{version if '/' in version else f'core/{version}'}:{body['kind']}"
    return Registration(
        urn_of("dev", "app", "", type_, called),
        type_,
        called,
        inputs=body,
        dependencies=tuple(one.urn for one in (*(depends or ()), *(o for of in (made_of or {}).values() for o in of))),
        property_dependencies={key: tuple(one.urn for one in of) for key, of in (made_of or {}).items()},
        options=options or RegisteredOptions(),
        object=body,
        ref=ref_of(body, namespaced=body["kind"] not in CLUSTER_SCOPED, namespace="default"),
        auto_named=auto_named,
    )


def release(*bodies: Body, **inputs: Any) -> Registration:
    """A Release of a chart that holds these, and the definition of Gates in its crds/."""
    type_ = "kubernetes:helm.sh/v3:Release"
    return Registration(
        urn_of("dev", "app", "", type_, "keeper"),
        type_,
        "keeper",
        inputs={"name": "keeper", "namespace": "default", **inputs},
        contents=bodies,
        definitions=(DEFINITION,),
    )


def job(name: str, annotations: Body, **container: Any) -> Body:
    template = {"spec": {**pod(**container)["spec"], "restartPolicy": "Never"}}
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def config(
    name: str, *, namespace: str = "default", labels: Body | None = None, annotations: Body | None = None, **data: str
) -> Body:
    meta: Body = {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})}
    meta |= {"annotations": annotations} if annotations else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **({"data": data} if data else {})}


def namespace(name: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def pod(**container: Any) -> Body:
    spec = {"containers": [{"name": "c", "image": "registry.example/app:1", **container}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}, "spec": spec}


def pending(annotations: Body) -> Body:
    """A Pod that never starts."""
    body = pod(envFrom=[{"configMapRef": {"name": "nowhere"}}])
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def custom(name: str, *, annotations: Body | None = None) -> Body:
    meta: Body = {"name": name, "namespace": "default", "annotations": annotations or {}}
    return {"apiVersion": "example.com/v1", "kind": "Gate", "metadata": meta, "spec": {"size": 3}}


DEFINITION: Body = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gates.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gate", "plural": "gates"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
WEBHOOK: Body = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "gate"},
    "webhooks": [
        {
            "name": "gate.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"service": {"name": "gate", "namespace": "default"}},
            "objectSelector": {"matchLabels": {"gated": "yes"}},
            "rules": [
                {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
            ],
        }
    ],
}


def _is_pulumis(event: Event) -> bool:
    return event.actor == "pulumi" and not event.object.name.startswith("sh.helm.release.v1.")
