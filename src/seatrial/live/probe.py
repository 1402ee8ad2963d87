"""Call a webhook through the API server by a write that is only a dry run: nothing is stored.

An object that the webhook is called for is made from its rules, selectors and the schema of its CRD; or an existing one
is patched with nothing. What the API server replies shows whether the webhook answered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.kinds.core.selection import fits
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.kinds.webhooks import matching
from seatrial.live.client import Client, denial_of, path_of
from seatrial.live.seen import ProbeResult
from seatrial.live.transport import LiveRequest, RefusedRequest
from seatrial.model import lazy_re
from seatrial.model.resource import Body, dig, labels_of, listed, name_of

NAME = "seatrial-probe"
MANAGER = "seatrial"
MERGE = "application/merge-patch+json"
DEPTH_MAX = 10
KINDS_MAX = 3
"""Kinds that are tried, where a webhook is called for many."""
FIRST = ("ConfigMap", "Secret", "ServiceAccount", "Service", "Pod", "Deployment", "Namespace")
"""Kinds that are tried first: a small object of them is valid everywhere."""

_FAILED = lazy_re.compile(r'failed calling webhook "(?P<name>[^"]*)"')
_DENIED = lazy_re.compile(r'admission webhook "(?P<name>[^"]*)" denied the request')
_CONTAINERS: Body = {"containers": [{"name": "probe", "image": "seatrial.invalid/probe"}]}
_LABELS = {"app": NAME}
_WORKLOAD: Body = {
    "selector": {"matchLabels": _LABELS},
    "template": {"metadata": {"labels": _LABELS}, "spec": _CONTAINERS},
}
_SPECS: dict[str, Body] = {
    "Service": {"spec": {"ports": [{"port": 80}]}},
    "Pod": {"spec": _CONTAINERS},
    **{kind: {"spec": _WORKLOAD} for kind in ("Deployment", "ReplicaSet", "DaemonSet")},
    "Job": {"spec": {"template": {"spec": {**_CONTAINERS, "restartPolicy": "Never"}}}},
    "Ingress": {"spec": {"defaultBackend": {"service": {"name": NAME, "port": {"number": 80}}}}},
}


def call(client: Client, configuration: Body, webhook: str) -> ProbeResult:
    """Whether this webhook of a configuration answers."""
    mutating = configuration.get("kind") == "MutatingWebhookConfiguration"
    given = ([configuration], []) if mutating else ([], [configuration])
    hooks = matching.read(*given, (), ())
    hook = next((one for one in (*hooks.mutating, *hooks.validating) if one.name == webhook), None)
    if hook is None:
        return ProbeResult(untold="it is gone")
    if hook.ignores:
        return ProbeResult(untold="its failurePolicy is Ignore, so the API server does not show a failed call")
    if hook.side_effects not in matching.SIDE_EFFECTS_NONE:
        return ProbeResult(untold=f"it allows no dry run (sideEffects: {hook.side_effects})")
    result = ProbeResult(untold="its rules match no kind that can be created or updated")
    for kind in _kinds(client, hook):
        for request in _requests(client, hook, kind):
            result = _sent(client, request, hook, mutating=mutating)
            if not result.untold:
                return result
    return result


def _sent(client: Client, request: LiveRequest, hook: matching.Hook, *, mutating: bool) -> ProbeResult:
    try:
        client.transport.send(request)
    except RefusedRequest as refused:
        return _read(refused, hook, mutating=mutating)
    if hook.conditional:
        return ProbeResult(untold="its matchConditions may leave out the object of the dry run")
    return ProbeResult()


def _read(refused: RefusedRequest, hook: matching.Hook, *, mutating: bool) -> ProbeResult:
    """What a refusal says of the webhook. Mutating webhooks are called before an object is validated, others after."""
    said = refused.refusal.message
    if failed := _FAILED.search(said):
        return ProbeResult(error=said) if failed["name"] == hook.name else ProbeResult(untold=said)
    if denied := _DENIED.search(said):
        return ProbeResult() if denied["name"] == hook.name else ProbeResult(untold=said)
    if mutating and refused.code == 422:
        return ProbeResult()
    if refused.refusal.denied is not None:
        return ProbeResult(untold=f"you may not {refused.refusal.denied.verbs[0]} {refused.refusal.denied.resource}")
    return ProbeResult(untold=f"the API server refused the dry run before it called the webhook: {said}")


def _kinds(client: Client, hook: matching.Hook) -> list[ServedKind]:
    """Kinds that the webhook is called for, the simplest first."""
    found = [
        kind
        for kind in client.served().preferred()
        if kind.group != matching.GROUP
        and any(_is_matched(hook, kind, operation) for operation in ("CREATE", "UPDATE"))
    ]
    return sorted(found, key=lambda kind: FIRST.index(kind.kind) if kind.kind in FIRST else len(FIRST))[:KINDS_MAX]


def _is_matched(hook: matching.Hook, kind: ServedKind, operation: str) -> bool:
    target = matching.WriteTarget(operation, kind.group, kind.version, kind.plural, "", kind.namespaced)
    return operation.lower() in kind.verbs and bool(
        matching.webhooks_for(matching.Hooks(validating=(hook,)), "validating", target)
    )


def _requests(client: Client, hook: matching.Hook, kind: ServedKind) -> Iterator[LiveRequest]:
    namespace = _namespace(client, hook) if kind.namespaced else ""
    if namespace is None:
        return
    if _is_matched(hook, kind, "CREATE") and (labels := _labels(hook.objects)) is not None:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": NAME, "labels": labels}}
        yield LiveRequest(
            "POST",
            path_of(kind, namespace),
            {"dryRun": "All", "fieldManager": MANAGER},
            body={**body, **_content(client, kind)},
            denial=denial_of("create", kind, namespace),
            retries=0,
        )
    if _is_matched(hook, kind, "UPDATE") and (existing := _existing(client, hook, kind)) is not None:
        home = str(dig(existing, "metadata", "namespace") or "")
        yield LiveRequest(
            "PATCH",
            path_of(kind, home, name_of(existing)),
            {"dryRun": "All", "fieldManager": MANAGER},
            body={},
            content_type=MERGE,
            denial=denial_of("patch", kind, home),
            retries=0,
        )


def _namespace(client: Client, hook: matching.Hook) -> str | None:
    """A namespace that the webhook selects: that of the context, or any other. None if there is none."""
    if not hook.namespaces:
        return client.namespace
    served = client.served().find("", "Namespace")
    assert served is not None
    try:
        found = [body for body in client.list(served) if not is_terminating(body)]
    except RefusedRequest:
        return client.namespace
    fitting = [name_of(body) for body in found if fits(labels_of(body), hook.namespaces)]
    return client.namespace if client.namespace in fitting else next(iter(fitting), None)


def _labels(selector: Body) -> dict[str, str] | None:
    """Labels that an object selector selects; None if there are none."""
    labels = {str(key): str(value) for key, value in (selector.get("matchLabels") or {}).items()}
    for term in selector.get("matchExpressions") or ():
        if term.get("operator") == "In" and term.get("values"):
            labels.setdefault(str(term["key"]), str(term["values"][0]))
        elif term.get("operator") == "Exists":
            labels.setdefault(str(term["key"]), "")
    return labels if fits(labels, selector) else None


def _existing(client: Client, hook: matching.Hook, kind: ServedKind) -> Body | None:
    """An object that the webhook is called for. Objects of kinds without a namespace selector are enough here."""
    try:
        objects = client.list(kind, client.namespace if kind.namespaced else "", metadata_only=True)
        return next((body for body in objects if fits(labels_of(body), hook.objects)), None)
    except RefusedRequest:
        return None


def _content(client: Client, kind: ServedKind) -> Body:
    """The rest of a small valid object."""
    if kind.kind in _SPECS:
        return _SPECS[kind.kind]
    crds = client.served().find("apiextensions.k8s.io", "CustomResourceDefinition")
    if crds is None or "." not in kind.group:
        return {}
    try:
        crd = client.get(crds, "", f"{kind.plural}.{kind.group}")
    except RefusedRequest:
        return {}
    version: Body = next((one for one in listed(crd, "spec", "versions") if one.get("name") == kind.version), {})
    made = sample(dig(version, "schema", "openAPIV3Schema") or {})
    return {key: value for key, value in made.items() if key not in ("apiVersion", "kind", "metadata", "status")}


def sample(schema: Body, depth: int = 0) -> Any:
    """A small value that fits a schema: its required fields and no others."""
    for given in (schema.get("default"), *listed(schema, "enum")[:1]):
        if given is not None:
            return given
    if depth > DEPTH_MAX:
        return None
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            return {name: sample(properties.get(name) or {}, depth + 1) for name in listed(schema, "required")}
        case "array":
            return [sample(schema.get("items") or {}, depth + 1)] * int(schema.get("minItems") or 0)
        case "integer" | "number":
            return schema.get("minimum", min(1, schema.get("maximum", 1)))
        case "boolean":
            return False
        case "string":
            return _text(schema)
    return 1 if schema.get("x-kubernetes-int-or-string") else {}


def _text(schema: Body) -> str:
    formats = {"date-time": "2026-01-01T00:00:00Z", "duration": "1m", "uri": "https://seatrial.invalid", "byte": ""}
    given = formats.get(str(schema.get("format")))
    return given if given is not None else "probe".ljust(int(schema.get("minLength") or 0), "e")
