"""Terminating a sync operation that would run forever, as a user would.

Upstream: `Terminate` in gitops-engine/pkg/sync/sync_context.go; `processAppOperationQueueItem` in
controller/appcontroller.go does nothing else, deletion included, while an Application has an operation. Argo CD 3.5.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.engines.argocd.app import App
from seatrial.engines.argocd.applying import deletion
from seatrial.engines.script import Command, Part, Say, Survey
from seatrial.helm.argocd_hooks import FINALIZER
from seatrial.model.resource import Body, Ref, metadata, ref_of, with_metadata
from seatrial.model.timeline import Operation


def terminated(last: Mapping[Ref, tuple[Operation, str]], apps: Mapping[Ref, App]) -> Part[None]:
    """Terminate the operations that still run: their running hooks lose Argo CD's finalizer, and are deleted."""
    running = [
        (apps[ref], operation) for ref, (operation, _) in last.items() if operation.phase == "Running" and ref in apps
    ]
    for app, operation in running:
        found = yield Survey()
        live = {ref_of(body): body for body in found.body["items"]}
        for task in operation.tasks:
            if task.hook and task.state == "Running" and task.object in live:
                yield from _ended(task.object, live[task.object])
        yield Say(app.ref, "Operation terminated")


def _ended(ref: Ref, body: Body) -> Part[None]:
    finalizers = metadata(body).get("finalizers") or []
    if FINALIZER in finalizers:
        left = [word for word in finalizers if word != FINALIZER]
        update = with_metadata(body, finalizers=left or None)
        yield Command("update", str(body["apiVersion"]), ref.kind, ref.namespace, ref.name, update)
    yield deletion(body, ref, "Foreground")
