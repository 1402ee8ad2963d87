"""Who writes a `caBundle` that a chart leaves empty: cert-manager's injector, or what runs in a pod whose account may.

Nobody sees into a container. An account that may change a configuration which lacks its authority is taken to do so as
soon as its pod is ready, and a Job's before it ends.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator

from msgspec import Struct

from seatrial.kinds import Acts, Change, World
from seatrial.kinds.access.authorizer import Access, decide, service_account
from seatrial.kinds.core.objectmeta import is_going, namespace_of
from seatrial.kinds.operators.cert_manager import vouches
from seatrial.kinds.operators.shared import AUTHORITY as AUTHORITY
from seatrial.model.resource import Body, annotations_of, dig, listed, name_of

INJECTED = (
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
)
INJECTOR = "cert-manager-cainjector"
WRITES = ("update", "patch")


class Holder(Struct, frozen=True):
    """A kind whose objects name an authority."""

    group: str
    kind: str
    plural: str
    fill: Callable[[Body], Body]
    """The object with an authority wherever it calls a Service and knows none."""


def holds_certificate(bundle: str) -> bool:
    try:
        return b"-----BEGIN CERTIFICATE-----" in base64.b64decode(bundle)
    except binascii.Error:
        return False


def behave(body: Body, world: World) -> Acts:
    """What cert-manager's injector does to an object that asks for it."""
    filled = _holder(body).fill(body)
    if filled != body and asks_for_injection(body) and not is_going(body) and vouches(body, world):
        yield Change(filled, by=INJECTOR)


def asks_for_injection(body: Body) -> bool:
    return any(annotation in annotations_of(body) for annotation in INJECTED)


def write(pod: Body, world: World) -> Acts:
    """What runs in a pod writes the authority into everything that lacks one and that its account may change."""
    account = str(dig(pod, "spec", "serviceAccountName") or "default")
    for holder, body in _lacking(world):
        user = service_account(namespace_of(pod), account)
        accesses = (Access(verb, holder.group, holder.plural, name=name_of(body)) for verb in WRITES)
        if any(decide(user, access, world).allowed for access in accesses):
            yield Change(holder.fill(body), by=account)


def _lacking(world: World) -> Iterator[tuple[Holder, Body]]:
    for holder in HOLDERS:
        for body in world.all(holder.kind, group=holder.group):
            if not is_going(body) and not asks_for_injection(body) and holder.fill(body) != body:
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
    if not client.get("service") or holds_certificate(str(client.get("caBundle") or "")):
        return client
    return {**client, "caBundle": AUTHORITY}


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
