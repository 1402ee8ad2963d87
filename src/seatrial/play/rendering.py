"""What the real Helm renders for a simulated one: on a copy of the cluster, so that `lookup` finds what is there.

Helm renders, then records the release, then writes its objects. The record is all that is kept of the copy.
"""

from __future__ import annotations

from seatrial.cluster.cluster import Cluster
from seatrial.engines import Ended
from seatrial.engines.script import Answer, Render
from seatrial.helm import records
from seatrial.helm.history import History, Revision, records_of
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref
from seatrial.play.prerequisites import restore
from seatrial.sources.stored import WHEN, recorded


def copy_for(cluster: Cluster, asked: Render) -> Cluster:
    """A cluster with the same objects, in which the revision before the one to render is deployed, if there is one."""
    with cluster.lock:
        found = [body for _, body in cluster.store if body.get("type") != records.TYPE]
    copy = Cluster(cluster.kube_version)
    restore(copy, [*_namespace_of(cluster, asked), *found, *_recorded_before(asked)], None)
    return copy


def rendered_on(copy: Cluster, asked: Render, ended: Ended) -> Answer:
    """The release that Helm has recorded there, or why there is none."""
    act = asked.act
    record = copy.store.get(Ref("Secret", act.namespace, records.record_name(act.release, asked.revision)))
    if record is not None:
        return Answer(200, {"release": recorded(record)})
    unserved = any(fault.of == "unserved" for fault in ended.failure.faults)
    return Answer(500, message=ended.error, served=not unserved, failure=ended.failure)


def _namespace_of(cluster: Cluster, asked: Render) -> list[Body]:
    """The namespace of the release, if only `--create-namespace` will create it."""
    name = asked.act.namespace
    if cluster.store.get(Ref("Namespace", "", name)) is not None:
        return []
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}]


def _recorded_before(asked: Render) -> list[Body]:
    act, number = asked.act, asked.revision - 1
    if not number:
        return []
    record = {
        "name": act.release,
        "namespace": act.namespace,
        "version": number,
        "info": {"status": "deployed", "first_deployed": WHEN, "last_deployed": WHEN},
        "chart": {"metadata": {"name": act.release, "version": "0.0.0", "apiVersion": "v2"}},
    }
    revision = Revision(number, "deployed", record, Release(act.release, act.namespace, "", ()))
    return list(records_of(History("", act.release, act.namespace, (revision,))))
