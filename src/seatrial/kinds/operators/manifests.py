"""The objects an operator is installed with: CRDs, workloads, Services, webhook configurations.

The CRDs accept any object that has the types that seatrial relies on: the operators' own schemas are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.kinds.operators.reconcile import CA_BUNDLE
from seatrial.kinds.operators.table import (
    OperatorEntry,
    OperatorKind,
    OperatorWebhook,
    OperatorWorkload,
    operator_kinds,
    release_number,
)
from seatrial.kinds.tables.shapes import schema_of
from seatrial.model.resource import Body

ANYTHING: Body = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
SUBRESOURCES: dict[str, Body] = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
}
REQUIRED = {("argoproj.io", "Application"): ("destination", "project")}
"""By group and kind, the fields of `spec` without which the API server refuses an object.

Upstream: `manifests/crds/application-crd.yaml` of Argo CD 3.5.
"""
LABEL = "app.kubernetes.io/name"
PROTECTED = ("k8s.io", "kubernetes.io")
APPROVAL = {"api-approved.kubernetes.io": "unapproved, assumed to be there"}
"""Required for CRDs in groups of Kubernetes."""


def install_manifests(operator: OperatorEntry, version: str = "") -> Iterator[Body]:
    """All objects that a working operator needs, in creation order."""
    if operator.workloads:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": operator.namespace}}
    yield from crds(operator, version)
    yield from workloads(operator, version, operator.namespace)
    yield from _services(operator)
    yield from configurations(operator, operator.namespace)


def crds(operator: OperatorEntry, version: str = "") -> Iterator[Body]:
    """The CRDs of a release, with the versions it serves."""
    release = release_number(version, operator)
    for kind in operator.kinds:
        served = kind.served(release)
        if served:
            yield crd_of(kind, served, kind.stored(release))


def crd_of(kind: OperatorKind, served: Iterable[str], stored: str) -> Body:
    subresources = {name: SUBRESOURCES[name] for name in kind.subresources}
    versions = [
        {"name": name, "served": True, "storage": name == stored, "schema": _schema(kind), "subresources": subresources}
        for name in served
    ]
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
    }
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{kind.plural}.{kind.group}",
            **({"annotations": APPROVAL} if kind.group.endswith(PROTECTED) else {}),
        },
        "spec": {"group": kind.group, "scope": scope, "names": names, "versions": versions},
    }


def _schema(kind: OperatorKind) -> Body:
    """A schema with the types and the required fields that are known."""
    if (kind.group, kind.kind) not in operator_kinds():
        return ANYTHING
    found = schema_of(kind.group, kind.kind)
    required = REQUIRED.get((kind.group, kind.kind))
    if required is not None:
        spec = {**found["properties"]["spec"], "required": list(required), "nullable": False}
        found = {**found, "required": ["metadata", "spec"], "properties": {**found["properties"], "spec": spec}}
    return {"openAPIV3Schema": found}


def workloads(operator: OperatorEntry, version: str, namespace: str) -> Iterator[Body]:
    number = ".".join(map(str, release_number(version, operator)))
    for workload in operator.workloads:
        yield workload_of(workload.name, namespace, f"{workload.image}:v{number}", workload.argument, workload.kind)


def workload_of(name: str, namespace: str, image: str, argument: str = "", kind: str = "Deployment") -> Body:
    """A Deployment, or another workload, with one pod that is ready once started."""
    container: Body = {"name": name, "image": image}
    if argument:
        container["args"] = [argument]
    labels = {LABEL: name}
    spec: Body = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if kind == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    }


def _services(operator: OperatorEntry) -> Iterator[Body]:
    for name in dict.fromkeys(webhook.service for webhook in operator.webhooks):
        spec = {"selector": {LABEL: _webhook_workload(operator).name}, "ports": [{"port": 443, "targetPort": 9443}]}
        meta = {"name": name, "namespace": operator.namespace}
        yield {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


def _webhook_workload(operator: OperatorEntry) -> OperatorWorkload:
    """The workload that serves webhooks."""
    return next((workload for workload in operator.workloads if workload.role == "webhook"), operator.workloads[0])


def configurations(operator: OperatorEntry, namespace: str, service: str = "") -> Iterator[Body]:
    """The webhook configurations of an operator in a namespace; `service` is another name of its Service."""
    for mutating, name in dict.fromkeys((webhook.mutating, webhook.configuration) for webhook in operator.webhooks):
        webhooks = [w for w in operator.webhooks if (w.mutating, w.configuration) == (mutating, name)]
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration",
            "metadata": {"name": name, **({"labels": operator.webhook_labels} if operator.webhook_labels else {})},
            "webhooks": [_webhook(webhook, namespace, service or webhook.service) for webhook in webhooks],
        }


def _webhook(webhook: OperatorWebhook, namespace: str, name: str) -> Body:
    service = {"name": name, "namespace": namespace, **({"path": webhook.path} if webhook.path else {})}
    return {
        "name": webhook.name,
        "clientConfig": {"caBundle": CA_BUNDLE, "service": service},
        "rules": [
            {
                "apiGroups": [resource.partition(".")[2]],
                "apiVersions": list(webhook.versions),
                "operations": list(webhook.operations),
                "resources": [resource.partition(".")[0]],
            }
            for resource in webhook.resources
        ],
        "failurePolicy": webhook.failure_policy,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **({"namespaceSelector": webhook.namespaces} if webhook.namespaces else {}),
        **({"objectSelector": webhook.objects} if webhook.objects else {}),
    }
