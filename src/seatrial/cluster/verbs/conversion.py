"""Custom resources in another version than the one they are stored in: whoever the definition names is asked.

From k8s.io/apiextensions-apiserver, pkg/apiserver/conversion of 1.34. What a webhook that is reached answers is not
known: it is taken to change nothing but the version.
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
    """An object is decoded from the store for a request in this version; raises `Refused` where that cannot be."""
    stored = cluster.stored_in.get(ref)
    if stored is not None and stored != kind.version:
        _ask(cluster, kind, stored, cluster.view())


def write(cluster: Cluster, kind: ServedKind, ref: Ref, view: World) -> None:
    """An object that came in this version is encoded for the store; raises `Refused` where that cannot be."""
    definition = _definition(cluster, kind)
    if definition is None:
        return
    stored = next((v["name"] for v in listed(definition, "spec", "versions") if v.get("storage")), kind.version)
    if stored != kind.version:
        _ask(cluster, kind, kind.version, view)
    cluster.stored_in[ref] = stored


def _ask(cluster: Cluster, kind: ServedKind, version: str, view: World) -> None:
    """Have an object that is in `version` converted."""
    conversion = dig(_definition(cluster, kind) or {}, "spec", "conversion") or {}
    if conversion.get("strategy") != "Webhook":
        return
    failed = backend.failure(dig(conversion, "webhook", "clientConfig") or {}, TIMEOUT_SECONDS, view)
    if failed:
        # No status of the API machinery: clients get 500 and nothing but the message.
        words = f"conversion webhook for {kind.group}/{version}, Kind={kind.kind} failed: {failed.words}"
        of = GroupVersionKind(kind.group, version, kind.kind)
        raise Refused(500, "", words, call=FailedCall(converts=of, untrusted=failed.untrusted))


def _definition(cluster: Cluster, kind: ServedKind) -> Body | None:
    if not cluster.is_custom(kind):
        return None
    return cluster.store.get(Ref("CustomResourceDefinition", "", f"{kind.plural}.{kind.group}", "apiextensions.k8s.io"))
