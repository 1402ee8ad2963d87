"""Requests of programs in pods, as the API server gets them."""

from __future__ import annotations

from seatrial.cluster.request import Request
from seatrial.kinds import Call
from seatrial.kinds.tables.catalogue import ServedKind


def request_of(kind: ServedKind, call: Call, cause: int | None) -> Request:
    return Request(
        verb=call.verb,
        group=kind.group,
        version=kind.version,
        plural=kind.plural,
        namespace=call.namespace if kind.namespaced else "",
        name="" if call.verb == "create" else call.name,
        subresource=call.subresource,
        body=call.body,
        patch_type=call.patch_type,
        field_manager=call.field_manager,
        propagation=call.propagation,
        force=call.force,
        dry_run=call.dry_run,
        actor=call.by,
        cause=cause,
    )
