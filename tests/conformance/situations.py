"""Situations in which an API server replies with a message: what a client does, and the message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from arms import Here, config, deployment

from seatrial.model.resource import Body

Situation = Callable[[Here], str]

WIDGET_VERSION = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
SERVICE = {"selector": {"app": "hook"}, "ports": [{"port": 443}]}


def no_namespace(here: Here) -> str:
    return message(here.api.post("/api/v1/namespaces/nowhere/configmaps", config()))


def made_twice(body: Body) -> Situation:
    def situation(here: Here) -> str:
        here.create(body)
        text = message(here.create(body))
        here.delete(body["kind"], body["metadata"]["name"])
        return text

    return situation


def not_there(kind: str, name: str) -> Situation:
    return lambda here: message(here.get(kind, name))


def made_again_while_going(here: Here) -> str:
    body = {**claim("data"), "metadata": {"name": "data", "finalizers": ["example.com/hold"]}}
    here.create(body)
    here.delete("PersistentVolumeClaim", "data")
    text = message(here.create(body))
    here.patch("PersistentVolumeClaim", "data", {"metadata": {"finalizers": None}})
    return text


def in_a_namespace_that_goes(here: Here) -> str:
    here.create(config("held", finalizers=["example.com/hold"]))
    here.api.delete(f"/api/v1/namespaces/{here.name}")
    text = message(here.create(config("late")))
    here.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})
    return text


def why_a_namespace_stays(type_: str) -> Situation:
    def situation(here: Here) -> str:
        here.create(config("held", finalizers=["example.com/hold"]))
        here.api.delete(f"/api/v1/namespaces/{here.name}")

        def text() -> str:
            conditions = here.api.get(f"/api/v1/namespaces/{here.name}").body["status"].get("conditions") or ()
            return "".join(f"{c['reason']}: {c['message']}" for c in conditions if c["type"] == type_)

        reported = here.soon(text)
        here.patch("ConfigMap", "held", {"metadata": {"finalizers": None}})
        return reported

    return situation


def changed(body: Body, change: Body, *path: str) -> Situation:
    """The error for a change; of long quotes only the beginning and the end."""

    def situation(here: Here) -> str:
        here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
        here.create(body)
        text = message(here.patch(body["kind"], body["metadata"]["name"], change))
        here.delete(body["kind"], body["metadata"]["name"])
        for long in path:
            before, _, after = text.partition(long)
            text = f"{before}{long} ...: {after.rpartition(': ')[2]}" if after else text
        return text

    return situation


def applied_with_unknown_field(here: Here) -> str:
    return message(here.apply({**deployment(), "spec": {**deployment()["spec"], "sise": 1}}, fieldValidation="Strict"))


def created_with_unknown_field(here: Here) -> str:
    return message(here.create({**deployment(), "spec": {**deployment()["spec"], "sise": 1}}, fieldValidation="Strict"))


def two_appliers(here: Here) -> str:
    here.apply(config(data={"a": "1"}), "helm")
    return message(here.apply(config(data={"a": "2"}), "argocd-controller"))


def without_account(here: Here) -> str:
    return message(here.create(pod(serviceAccountName="web")))


def replica_set_without_account(here: Here) -> str:
    body = deployment()
    template = body["spec"]["template"]
    spec = {**body["spec"], "template": {**template, "spec": {**template["spec"], "serviceAccountName": "web"}}}
    here.create({**body, "spec": spec})

    def text() -> str:
        items = here.api.get(here.at("ReplicaSet")).body["items"]
        found = [c for item in items for c in item["status"].get("conditions") or () if c["type"] == "ReplicaFailure"]
        words = "".join(f"{condition['reason']}: {condition['message']}" for condition in found)
        return words.replace(items[0]["metadata"]["name"], "web-HASH") if words else ""

    return here.soon(text)


def without_class(here: Here) -> str:
    here.soon(lambda: here.get("ServiceAccount", "default").code == 200)
    return message(here.create(pod(priorityClassName="high")))


def webhook_of(service: bool) -> Situation:
    """A webhook for the ConfigMaps of this namespace. Its Service is missing, or has no endpoints."""

    def situation(here: Here) -> str:
        if service:
            here.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"}, "spec": SERVICE})
        body = webhook(here.name)
        here.create(body)
        text = here.soon(lambda: message(here.create(config(), dryRun="All")))
        here.delete(body["kind"], body["metadata"]["name"])
        return text

    return situation


def unknown_resource(here: Here) -> str:
    return message(here.api.get(f"/apis/nope.example.com/v1/namespaces/{here.name}/widgets"))


def definition_twice(here: Here) -> str:
    return with_widgets(here, lambda body: message(here.create(body)))


def forgotten_version(here: Here) -> str:
    renamed = {"spec": {"versions": [{**WIDGET_VERSION, "name": "v2"}]}}
    return with_widgets(
        here, lambda body: message(here.patch("CustomResourceDefinition", body["metadata"]["name"], renamed))
    )


def made_while_its_definition_goes(here: Here) -> str:
    def situation(body: Body) -> str:
        group = body["spec"]["group"]
        path = f"/apis/{group}/v1/namespaces/{here.name}/widgets"
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget"}
        held = {"name": "held", "finalizers": ["example.com/hold"]}
        here.soon(lambda: here.api.post(path, {**widget, "metadata": held}).code == 201)
        here.delete("CustomResourceDefinition", body["metadata"]["name"])
        # A dry run, so that a creation before the CRD is terminating leaves nothing.
        text = here.soon(lambda: message(here.api.post(path, {**widget, "metadata": {"name": "late"}}, dryRun="All")))
        here.api.patch(f"{path}/held", {"metadata": {"finalizers": None}})
        return text

    return with_widgets(here, situation)


def with_widgets(here: Here, situation: Callable[[Body], str]) -> str:
    """A message about a custom kind that is defined for the test."""
    group = f"{here.name}.example.com"
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [WIDGET_VERSION],
    }
    body = plain("CustomResourceDefinition", f"widgets.{group}", "apiextensions.k8s.io/v1", spec=spec)
    here.create(body)
    here.soon(lambda: here.api.get(f"/apis/{group}/v1/namespaces/{here.name}/widgets").code == 200)
    text = situation(body)
    here.delete("CustomResourceDefinition", f"widgets.{group}")
    return text


def message(reply: Any) -> str:
    """As clients report it: client-go has its own text for a 404 without a message."""
    if isinstance(reply.body, dict):
        return str(reply.body.get("message", ""))
    return "the server could not find the requested resource" if reply.code == 404 else str(reply.body)


def pod(**spec: Any) -> Body:
    whole = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": whole}


def plain(kind: str, name: str, api_version: str = "v1", **more: Any) -> Body:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def claim(name: str) -> Body:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return plain("PersistentVolumeClaim", name, spec=asked)


def webhook(namespace: str) -> Body:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    hook = {
        "name": "check.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": "hook", "namespace": namespace, "path": "/check"}},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    kind = "ValidatingWebhookConfiguration"
    return plain(kind, f"checks-{namespace}", "admissionregistration.k8s.io/v1", webhooks=[hook])
