"""Hook pods that apply the CRDs of their chart, which `helm upgrade` ignores in crds/.

The files are in the image of the pod (gatekeeper-crds, `velero install --crds-only`): those of the chart are taken for
them, as Helm keeps them in its release record. It keeps none of subcharts.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from seatrial.helm import hooks, records
from seatrial.kinds import Acts, Create, Update, World
from seatrial.kinds.access.authorizer import Access, decide, service_account
from seatrial.kinds.core.objectmeta import controller_of, namespace_of
from seatrial.kinds.workloads.pod_template import containers_of
from seatrial.model.resource import Body, Ref, dig, listed, name_of
from seatrial.text.source import Text
from seatrial.text.yamlfile import documents

GROUP = "apiextensions.k8s.io"
CRD = "CustomResourceDefinition"
PENDING = ("pending-install", "pending-upgrade", "pending-rollback")


def apply_crds(pod: Body, world: World) -> Acts:
    """The program of a hook Job that names CRDs, and may update them, applies those of the chart that is deployed."""
    account = str(dig(pod, "spec", "serviceAccountName") or "default")
    if not _names_crds(pod) or not _is_of_hook(pod, world):
        return
    user = service_account(namespace_of(pod), account)
    allowed = {
        verb: decide(user, Access(verb, GROUP, "customresourcedefinitions"), world).allowed
        for verb in ("create", "update", "patch")
    }
    for crd in _shipped(world, namespace_of(pod)):
        live = world.get(Ref(CRD, "", name_of(crd), GROUP))
        if live is None and allowed["create"]:
            yield Create(crd, by=account)
        elif live is not None and (allowed["update"] or allowed["patch"]):
            yield Update({**live, "spec": crd.get("spec")}, by=account)


def _names_crds(pod: Body) -> bool:
    containers = [container for _, container in containers_of(pod.get("spec") or {})]
    words = (str(word) for one in containers for field in ("command", "args") for word in listed(one, field))
    return any("crd" in word.lower() for word in (name_of(pod), *words))


def _is_of_hook(pod: Body, world: World) -> bool:
    owner = controller_of(pod)
    job = world.get(Ref("Job", namespace_of(pod), str(owner["name"]), "batch")) if owner else None
    return hooks.is_hook(job if job is not None else pod)


def _shipped(world: World, namespace: str) -> Iterator[Body]:
    """The CRDs in crds/ of the charts that Helm is deploying into a namespace."""
    for status in PENDING:
        for record in world.select("Secret", namespace, {"owner": "helm", "status": status}):
            for file in listed(records.decode(record).get("chart") or {}, "files"):
                name = str(file.get("name") or "")
                if name.startswith("crds/") and name.endswith((".yaml", ".yml")):
                    yield from _crds_in(name, base64.b64decode(str(file.get("data") or "")))


def _crds_in(name: str, data: bytes) -> Iterator[Body]:
    for document in documents(Text(name, data.decode(errors="replace"))):
        if isinstance(document.body, dict) and document.body.get("kind") == CRD:
            yield document.body
