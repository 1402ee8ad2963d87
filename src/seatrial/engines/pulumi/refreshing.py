"""`pulumi refresh`: updates the state of a stack from the cluster.

Upstream: `Read` in `provider/pkg/provider/provider.go` and `pruneMap` in `util.go` of pulumi-kubernetes 4.32. Nothing
else looks: to an `up`, which compares a program with its own state, all is as it was that others changed or deleted.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from seatrial.engines import Ended
from seatrial.engines.fieldowners import LAST_APPLIED
from seatrial.engines.pulumi.checkpoint import Checkpoint
from seatrial.engines.pulumi.helmrelease import is_recorded
from seatrial.engines.pulumi.steps import about, is_content
from seatrial.engines.script import Script
from seatrial.model.program import HELM_RELEASE
from seatrial.model.resource import Body, metadata
from seatrial.readiness import pulumi as readiness

OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")
REVISION = "deployment.kubernetes.io/revision"
WRITE_ONLY = "stringData"
OK = 200
IMPORTS = "--import-pending-creates"


def refresh(checkpoint: Checkpoint, *, imports: bool = False) -> Script:
    """Read every object of a stack; missing ones are removed from the state.

    `imports`: what a run that died was creating is looked up as well, and added if it is there.
    """
    for one in list(checkpoint.creating.values()) if imports else ():
        if one.object is not None and (yield about(one.object, "get")).code == OK:
            checkpoint.put(one)
        del checkpoint.creating[one.urn]
    for state in list(checkpoint):
        one = state.registration
        if one.type == HELM_RELEASE and not state.pending and not (yield from is_recorded(one)):
            checkpoint.drop(one)
        if one.object is None or one.reads or state.pending or one.type == HELM_RELEASE:
            continue
        live = yield about(one.object, "get")
        if live.code != OK:
            checkpoint.drop(one)
            continue
        awaited = readiness.is_awaited(live.body) and not one.taken_ready
        unready = awaited and not (yield from is_content(live.body))
        checkpoint.refreshed(replace(one, object=pruned(live.body, one.object)), unready=unready)
    return Ended("ok", "")


def pruned(live: Any, inputs: Any) -> Any:
    """What is there, of all that was said."""
    match live, inputs:
        case dict(), dict():
            kept = {key: pruned(live[key], value) for key, value in inputs.items() if key in live}
            return {**kept, WRITE_ONLY: inputs[WRITE_ONLY]} if WRITE_ONLY in inputs else kept
        case list(), list() if len(live) == len(inputs):
            return [pruned(one, other) for one, other in zip(live, inputs, strict=True)]
    return live


def inputs_of(live: Body) -> Body:
    """The inputs of a live object: without fields that the server and controllers write."""
    meta = {key: value for key, value in metadata(live).items() if key not in OF_THE_SERVER}
    noted = {k: v for k, v in (meta.pop("annotations", None) or {}).items() if k not in (REVISION, LAST_APPLIED)}
    body = {key: value for key, value in live.items() if key != "status"}
    return {**body, "metadata": {**meta, **({"annotations": noted} if noted else {})}}
