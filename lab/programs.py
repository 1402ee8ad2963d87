"""What the embedded cluster assumes of programs that it cannot read: they write a CA or create a Secret."""

from __future__ import annotations

import json

from apiclient import Api

from seatrial.kinds.core.objectmeta import namespace_of
from seatrial.kinds.scripts.programs import secrets_made
from seatrial.kinds.webhooks.cabundle import CA_BUNDLE, HOLDERS, Holder, wants_injection
from seatrial.model.resource import Body, dig, listed, name_of


def write_ca(pod: Body, api: Api, bundle: str) -> None:
    """A program whose account may update an object without a CA writes it."""
    user, account = _user(pod)
    for holder in HOLDERS:
        for body in listed(api.get(f"/apis/{holder.group}/v1/{holder.plural}").body, "items"):
            whole = {"kind": holder.kind, **body}
            filled = holder.fill(whole)
            if filled == whole or wants_injection(whole) or not _may_write(api, user, holder, name_of(body)):
                continue
            real = json.loads(json.dumps(filled).replace(CA_BUNDLE, bundle))
            path = f"/apis/{holder.group}/v1/{holder.plural}/{name_of(body)}"
            api.put(path, {**real, "apiVersion": f"{holder.group}/v1"}, fieldManager=account)


def make_secrets(pod: Body, api: Api) -> None:
    """Well-known programs create certificates and initial passwords, if their account may."""
    user, account = _user(pod)
    for made in secrets_made(pod["spec"], namespace_of(pod)):
        home = made.ref.namespace
        asked = {"verb": "create", "group": "", "resource": "secrets", "namespace": home}
        if account == "default" or _may(api, user, asked):
            meta = {"name": made.ref.name, "namespace": home}
            data = dict.fromkeys(made.keys, "")
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}
            api.post(f"/api/v1/namespaces/{home}/secrets", secret)


def _user(pod: Body) -> tuple[str, str]:
    account = str(dig(pod, "spec", "serviceAccountName") or "default")
    return f"system:serviceaccount:{namespace_of(pod)}:{account}", account


def _may_write(api: Api, user: str, holder: Holder, name: str) -> bool:
    asked = {"group": holder.group, "resource": holder.plural, "name": name}
    return any(_may(api, user, {"verb": verb, **asked}) for verb in ("update", "patch"))


def _may(api: Api, user: str, asked: Body) -> bool:
    spec = {"user": user, "groups": ["system:serviceaccounts"], "resourceAttributes": asked}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    reply = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(dig(reply.body, "status", "allowed"))
