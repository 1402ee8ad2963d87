"""Writers of a `caBundle` that a chart leaves empty: cert-manager's CA injector, or a pod with the RBAC rights.

Containers cannot be inspected. A ServiceAccount that may update a configuration without a CA is assumed to do so as
soon as its pod is ready; a Job's before it ends.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.kinds import Acts, Update, World
from seatrial.kinds.access.authorizer import Access, decide, service_account
from seatrial.kinds.core.objectmeta import is_terminating, namespace_of
from seatrial.kinds.operators.cert_manager import can_inject
from seatrial.kinds.operators.reconcile import CA_BUNDLE as CA_BUNDLE
from seatrial.kinds.operators.table import workload_of
from seatrial.model.resource import Body, annotations_of, dig, listed, name_of

INJECTED = (
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
)
INJECTOR = "cert-manager-cainjector"
WRITES = ("update", "patch")
VALIDATING = "ValidatingWebhookConfiguration"


class Holder(Struct, frozen=True):
    """A kind whose objects have a caBundle."""

    group: str
    kind: str
    plural: str
    fill: Callable[[Body], Body]
    """The object with a CA wherever it calls a Service and has none."""


def has_certificate(bundle: str) -> bool:
    try:
        return b"-----BEGIN CERTIFICATE-----" in base64.b64decode(bundle)
    except binascii.Error:
        return False


def behave(body: Body, world: World) -> Acts:
    """cert-manager's CA injector, for an object with its annotation."""
    filled = _holder(body).fill(body)
    if filled != body and wants_injection(body) and not is_terminating(body) and can_inject(body, world):
        yield Update(filled, by=INJECTOR)


def wants_injection(body: Body) -> bool:
    return any(annotation in annotations_of(body) for annotation in INJECTED)


def write_ca(pod: Body, world: World) -> Acts:
    """The program in a pod writes the CA into every object that has none and that its ServiceAccount may update."""
    account = str(dig(pod, "spec", "serviceAccountName") or "default")
    operator = workload_of({"spec": {"template": pod}})
    closes = operator is not None and operator[0].fails_closed
    for holder, body in _without_ca(world):
        user = service_account(namespace_of(pod), account)
        accesses = (Access(verb, holder.group, holder.plural, name=name_of(body)) for verb in WRITES)
        if any(decide(user, access, world).allowed for access in accesses):
            filled = holder.fill(body)
            yield Update(_closed(filled) if closes and holder.kind == VALIDATING else filled, by=account)


def _closed(configuration: Body) -> Body:
    """The webhook configuration as its operator leaves it: a backend that does not answer rejects requests."""
    webhooks = [{**webhook, "failurePolicy": "Fail"} for webhook in listed(configuration, "webhooks")]
    return {**configuration, "webhooks": webhooks} if webhooks else configuration


def _without_ca(world: World) -> Iterator[tuple[Holder, Body]]:
    for holder in HOLDERS:
        for body in world.all(holder.kind, group=holder.group):
            if not is_terminating(body) and not wants_injection(body) and holder.fill(body) != body:
                yield holder, body


def _fill_webhooks(configuration: Body) -> Body:
    webhooks = [
        {**webhook, "clientConfig": _filled(webhook.get("clientConfig") or {})}
        for webhook in listed(configuration, "webhooks")
    ]
    return {**configuration, "webhooks": webhooks} if webhooks else configuration


def _fill_conversion(definition: Body) -> Body:
    client = dig(definition, "spec", "conversion", "webhook", "clientConfig")
    if not isinstance(client, dict):
        return definition
    conversion = definition["spec"]["conversion"]
    filled = {**conversion, "webhook": {**conversion["webhook"], "clientConfig": _filled(client)}}
    return {**definition, "spec": {**definition["spec"], "conversion": filled}}


def _fill_api_service(api: Body) -> Body:
    spec = api.get("spec") or {}
    return api if spec.get("insecureSkipTLSVerify") else {**api, "spec": _filled(spec)}


def _filled(client: Body) -> Body:
    if not client.get("service") or has_certificate(str(client.get("caBundle") or "")):
        return client
    return {**client, "caBundle": CA_BUNDLE}


def _holder(body: Body) -> Holder:
    return next(holder for holder in HOLDERS if holder.kind == body.get("kind"))


HOLDERS = (
    Holder(
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        _fill_webhooks,
    ),
    Holder(
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        _fill_webhooks,
    ),
    Holder("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", _fill_conversion),
    Holder("apiregistration.k8s.io", "APIService", "apiservices", _fill_api_service),
)
