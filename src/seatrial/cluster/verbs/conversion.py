"""Conversion of custom resources between versions by their CRD's conversion webhook.

From k8s.io/apiextensions-apiserver, pkg/apiserver/conversion of 1.34. The response of a reachable webhook is not known:
it is assumed to change only the version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.cluster.admission import backend
from seatrial.cluster.refusal import Refused
from seatrial.kinds import World
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.refusal import FailedCall, GroupVersionKind
from seatrial.model.resource import Body, Ref, dig, listed

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

TIMEOUT_SECONDS = 30


def read(cluster: Cluster, kind: ServedKind, ref: Ref) -> None:
    """Decode a stored object for a request in this version; raises `Refused` if the conversion fails."""
    stored = cluster.stored_in.get(ref)
    if stored is not None and stored != kind.version:
        _convert(cluster, kind, stored, cluster.view())


def write(cluster: Cluster, kind: ServedKind, ref: Ref, view: World) -> None:
    """Encode an object of this version for the store; raises `Refused` if the conversion fails."""
    crd = _crd(cluster, kind)
    if crd is None:
        return
    stored = next((v["name"] for v in listed(crd, "spec", "versions") if v.get("storage")), kind.version)
    if stored != kind.version:
        _convert(cluster, kind, kind.version, view)
    cluster.stored_in[ref] = stored


def _convert(cluster: Cluster, kind: ServedKind, version: str, view: World) -> None:
    """Convert an object that is in `version`."""
    conversion = dig(_crd(cluster, kind) or {}, "spec", "conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return
    client = dig(conversion, "webhook", "clientConfig") or {}
    failed = backend.failure(client, TIMEOUT_SECONDS, view)
    if failed and not cluster.repairing.answers(f"{kind.kind}.{kind.group}", client):
        # Not wrapped in a status: clients get 500 and only the message.
        message = f"conversion webhook for {kind.group}/{version}, Kind={kind.kind} failed: {failed.message}"
        of = GroupVersionKind(kind.group, version, kind.kind)
        raise Refused(500, "", message, call=FailedCall(converts=of, untrusted=failed.untrusted))


def _crd(cluster: Cluster, kind: ServedKind) -> Body | None:
    if not cluster.is_custom(kind):
        return None
    return cluster.store.get(Ref("CustomResourceDefinition", "", f"{kind.plural}.{kind.group}", "apiextensions.k8s.io"))
