"""What Helm does when a hook times out: it deletes hooks as their delete policies say.

A wait is cancelled here as soon as it is certain that it never ends, and a cancelled Helm leaves its hooks as they are.
So does a Helm 3 that is killed; a Helm 4 whose watch is refused deletes them itself.
From `execHook` in `pkg/action/hooks.go` of Helm 4.2: the hook itself goes with `hook-failed`, those that ran before it
in the same event follow with `hook-succeeded`. CRDs are never deleted.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.script import Command
from seatrial.helm import hooks
from seatrial.model.resource import Body, Ref, uid_of
from seatrial.play.in_process import InProcess

NEVER_DELETED = "CustomResourceDefinition"


def delete_hooks(cluster: Cluster, actor: str, start: int, ended: Ended) -> None:
    """Delete what the timeout of a hook deletes, after an act that began at the event `start`."""
    if ended.outcome != "hung" or ended.stuck is None:
        return
    client = InProcess(cluster, actor)
    for ref, body in list(_due(cluster, actor, start, ended.stuck.waits_for)):
        api_version = str(body.get("apiVersion"))
        client.do(Command("delete", api_version, ref.kind, ref.namespace, ref.name, propagation="Background"))


def _due(cluster: Cluster, actor: str, start: int, awaited: tuple[Ref, ...]) -> Iterator[tuple[Ref, Body]]:
    ran = cluster.recorder.created_since(start, actor)
    found = {ref: body for ref, body in ran.items() if hooks.is_hook(body) and ref.kind != NEVER_DELETED}
    if not any(ref in found for ref in awaited):
        return
    for ref, body in sorted(found.items(), key=lambda one: one[0] not in awaited):
        live = cluster.store.get(ref)
        policy = hooks.FAILED if ref in awaited else hooks.SUCCEEDED
        if live is not None and uid_of(live) == uid_of(body) and policy in hooks.delete_policies(body):
            yield ref, body
