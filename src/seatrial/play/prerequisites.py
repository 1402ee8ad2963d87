"""Creates the prerequisites in a cluster: before the first step, or as soon as their namespace exists."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from seatrial.cluster.cluster import Cluster
from seatrial.cluster.refusal import Refused
from seatrial.cluster.request import Request
from seatrial.cluster.validation import pipeline
from seatrial.model.errors import CannotContinue
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref, group_of, metadata, name_of, version_of, with_metadata
from seatrial.play.in_process import REQUESTS

HELM = "helm"
IGNORE = "Ignore"
"""Unknown fields are dropped without a warning: a newer cluster may have set them."""
FIRST = frozenset(("CustomResourceDefinition", "Namespace"))
JUDGES = frozenset(
    ("APIService", "LimitRange", "MutatingWebhookConfiguration", "ResourceQuota", "ValidatingWebhookConfiguration")
)
"""Kinds that refuse or change other objects."""


def assume(cluster: Cluster, objects: Iterable[Body], created: frozenset[str] = frozenset()) -> None:
    """Create objects in a cluster. Those in a namespace that the trial creates (`created`) come when it exists.

    Before that they cannot exist, and to create the namespace for them would change what an install does.
    """
    for body in objects:
        api_version, name = str(body.get("apiVersion", "")), str(body.get("kind", ""))
        kind = cluster.discovery.of_kind(group_of(api_version), name, version_of(api_version))
        if kind is None:
            no_match = f'no matches for kind "{name}" in version "{api_version}"'
            raise CannotContinue(f"assume {name}/{name_of(body)}: {no_match}")
        namespace = str(metadata(body).get("namespace") or "default") if kind.namespaced else ""
        if namespace in created and cluster.store.get(Ref("Namespace", "", namespace)) is None:
            later = cluster.provision.in_namespace
            later[namespace] = (*later.get(namespace, ()), body)
            continue
        create = Request("create", kind.group, kind.version, kind.plural, namespace, body=body, actor="kubernetes")
        reply = cluster.request(create)
        if reply.code >= 400 and reply.body["reason"] != "AlreadyExists":
            raise CannotContinue(f"assume {kind.kind}/{name_of(body)}: {reply.body['message']}")
        cluster.settle()


def restore(cluster: Cluster, found: Iterable[Body], before: Release | None) -> None:
    """Put objects of a real cluster into this one, exactly as they were found there.

    What judges other objects comes last: on the real cluster, those were admitted long ago. The nodes stay those of a
    rehearsal: where pods go is not modelled, and a DaemonSet on thousands of nodes would show nothing more.
    """
    own = {resource.ref for resource in before.resources} if before else set()
    put = (body for body in found if body["kind"] != "Node")
    for _, group in groupby(sorted(put, key=_turn), key=_turn):
        for body in group:
            _put(cluster, body, own)
        cluster.settle()


def _turn(body: Body) -> int:
    kind = str(body["kind"])
    return 0 if kind in FIRST else 2 if kind in JUDGES else 1


def _put(cluster: Cluster, body: Body, own: set[Ref]) -> None:
    api_version = str(body["apiVersion"])
    # What is stored under a version that is no longer served is there under another one.
    kind = cluster.discovery.of_kind(group_of(api_version), str(body["kind"]), version_of(api_version))
    kind = kind or cluster.discovery.of_kind(group_of(api_version), str(body["kind"]))
    if kind is None:
        return
    ref = cluster.ref_of(body)
    before = cluster.store.get(ref)
    try:
        body = pipeline.decoded(kind, body, cluster.kube_version, cluster.custom_schema_of(kind), IGNORE).body
    except Refused as refused:
        raise CannotContinue(f"put {ref} of the snapshot into the cluster: {refused.message}") from None
    meta = metadata(body)
    body = with_metadata(
        {**body, "apiVersion": kind.api_version},
        uid=meta.get("uid") or cluster.store.new_uid(ref),
        creationTimestamp=meta.get("creationTimestamp") or cluster.store.now(),
    )
    with cluster.lock:
        stored = cluster.store.put(ref, body)
        actor = HELM if ref in own else "kubernetes"
        index = cluster.recorder.note(actor, "create", ref, "created", after=stored)
        cluster.changed(ref, before, stored, index)


def put_deployed(cluster: Cluster, deployed: Iterable[Body], *, server_side: bool) -> None:
    """Put into a cluster what Helm left there in an earlier life of the release."""
    for body in deployed:
        api_version, name = str(body.get("apiVersion", "")), str(body.get("kind", ""))
        group = group_of(api_version)
        # What was stored under a version that is no longer served is still there, under another one.
        kind = cluster.discovery.of_kind(group, name, version_of(api_version)) or cluster.discovery.of_kind(group, name)
        if kind is None:
            continue
        verb, patch_type = REQUESTS["apply" if server_side else "create"]
        request = Request(
            verb=verb,
            group=kind.group,
            version=kind.version,
            plural=kind.plural,
            namespace=str(metadata(body).get("namespace") or "default") if kind.namespaced else "",
            name=name_of(body) if patch_type else "",
            body={**body, "apiVersion": kind.api_version},
            patch_type=patch_type,
            field_manager=HELM,
            actor=HELM,
        )
        reply = cluster.request(request)
        if reply.code >= 400 and kind.api_version == api_version:
            stored = f"the stored {kind.kind}/{name_of(body)}"
            raise CannotContinue(f"put {stored} into the cluster: {reply.body['message']}")
        cluster.settle()
