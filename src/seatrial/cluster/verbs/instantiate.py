"""The `instantiate` subresource of OpenShift's BuildConfigs, to which `oc start-build` posts. Creates a Build.

From pkg/build/apiserver/buildgenerator of openshift-apiserver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.cluster.refusal import Refused, bad_request, not_found
from seatrial.cluster.request import Reply, Request
from seatrial.cluster.verbs import changes, writes
from seatrial.cluster.watch import in_version
from seatrial.kinds.core.objectmeta import controller_reference, with_metadata
from seatrial.kinds.operators.builds import is_paused, last_version, next_build, with_next_version
from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, Ref, annotations_of, labels_of, name_of

if TYPE_CHECKING:
    from seatrial.cluster.cluster import Cluster

BY_HAND = {"message": "Manually triggered"}


def instantiate(cluster: Cluster, kind: ServedKind, request: Request) -> Reply:
    """Answer the POST of a BuildRequest with the created Build."""
    build_request = request.body if isinstance(request.body, dict) else {}
    ref = Ref(kind.kind, request.namespace, name_of(build_request) or request.name, kind.group)
    try:
        config = cluster.store.get(ref)
        if config is None:
            raise not_found(kind.plural, kind.group, ref.name)
        _refuse(config, build_request, ref)
        return _create(cluster, config, _build(config, build_request), request)
    except Refused as refused:
        cluster.recorder.refused(request.actor, "create", ref, refused.refusal)
        raise


def _refuse(config: Body, build_request: Body, ref: Ref) -> None:
    where = f"{ref.namespace}/{ref.name}"
    if is_paused(config):
        raise bad_request(f"can't instantiate from BuildConfig {where}: BuildConfig is paused")
    wanted, last = build_request.get("lastVersion"), last_version(config)
    if wanted is not None and wanted != last:
        message = f"does not match the build request LastVersion({wanted})"
        raise bad_request(f"the LastVersion({last}) on build config {where} {message}")


def _build(config: Body, build_request: Body) -> Body:
    """The BuildConfig has precedence over the request."""
    build = next_build(config)
    labels = {**labels_of(build_request), **labels_of(build)}
    annotations = {**annotations_of(build_request), **annotations_of(build)}
    spec = {**build["spec"], "triggeredBy": build_request.get("triggeredBy") or [BY_HAND]}
    owners = [controller_reference(config)]
    return {**with_metadata(build, labels=labels, annotations=annotations, ownerReferences=owners), "spec": spec}


def _create(cluster: Cluster, config: Body, build: Body, request: Request) -> Reply:
    """The BuildConfig is updated first, so that one of two concurrent requests conflicts."""
    view, kind = cluster.view(), cluster.kind_of(build)
    if not request.dry_run:
        changes.replace(cluster, with_next_version(config), request.actor, None, view)
    manager, actor = request.field_manager, request.actor
    made = writes.create_object(
        cluster, kind, build, actor=actor, cause=None, view=view, manager=manager, dry=request.dry_run
    )
    return Reply(201, in_version(made, kind))
