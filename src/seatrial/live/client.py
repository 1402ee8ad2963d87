"""The API of a real cluster: objects of every kind, by discovery. What may be done with them is decided elsewhere.

A forbidden request raises `RefusedRequest` with the missing permission, which `denials` keeps: callers go on without.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any
from urllib.parse import quote

from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.live import discovery
from seatrial.live.discovery import Served
from seatrial.live.kubeconfig import ClusterAccess
from seatrial.live.transport import JSON, RETRIES_MAX, LiveReply, LiveRequest, RefusedRequest, Transport
from seatrial.model.errors import CannotContinue
from seatrial.model.refusal import Denial
from seatrial.model.resource import Body, dig, group_of, metadata, name_of, version_of

PAGE_SIZE = 500
"""Objects in one reply to a list, as kubectl's default."""
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
APPLY = "application/apply-patch+yaml"
SECRET = ("", "Secret")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Client:
    """One cluster. State over time: connections, what is served, and what was forbidden."""

    def __init__(self, target: ClusterAccess, agent: str = "seatrial") -> None:
        self.transport = Transport(target, agent)
        self.namespace = target.namespace
        self._served: Served | None = None

    @property
    def denials(self) -> tuple[Denial, ...]:
        """Permissions that turned out to be missing so far."""
        return tuple(self.transport.denials)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.transport.close()

    @cached_property
    def version(self) -> str:
        """The Kubernetes version: `1.34`."""
        found = self.transport.send(LiveRequest("GET", "/version")).body
        minor = str(found.get("minor") or "")
        return f"{found.get('major')}.{''.join(filter(str.isdigit, minor))}"  # GKE: 34+

    def served(self, *, again: bool = False) -> Served:
        """The kinds of the cluster; read once, or again after CRDs have changed."""
        if self._served is None or again:
            self._served = self._discovered()
        return self._served

    def kind_of(self, body: Body) -> ServedKind | None:
        """The kind of an object, in its version, or None if it is not served."""
        api_version = str(body.get("apiVersion") or "")
        return self.served().find(group_of(api_version), str(body.get("kind") or ""), version_of(api_version))

    def get(self, kind: ServedKind, namespace: str, name: str, *, metadata_only: bool = False) -> Body | None:
        """An object, or None if there is none. Of a Secret never more than its metadata."""
        partial = metadata_only or is_secret(kind)
        path = path_of(kind, namespace, name)
        accept = METADATA if partial else JSON
        request = LiveRequest("GET", path, accept=accept, denial=denial_of("get", kind, namespace))
        try:
            body: Body = self.transport.send(request).body
        except RefusedRequest as refused:
            if refused.code == 404:
                return None
            raise
        return partial_of(body, kind) if partial else body

    def list(
        self,
        kind: ServedKind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> Iterator[Body]:
        """The objects of a kind, page by page; in all namespaces without one. Of Secrets never more than metadata."""
        partial = metadata_only or is_secret(kind)
        for page in self.pages(kind, namespace, labels=labels, fields=fields, accept=METADATA_LIST if partial else ""):
            for item in page.get("items") or ():
                yield partial_of(item, kind) if partial else {"apiVersion": kind.api_version, "kind": kind.kind, **item}

    def pages(
        self, kind: ServedKind, namespace: str = "", *, labels: str = "", fields: str = "", accept: str = ""
    ) -> Iterator[Body]:
        """The replies to a list. If it takes so long that its version expires, it goes on with what is there now."""
        query: dict[str, str | int] = {"limit": PAGE_SIZE, **selectors(labels, fields)}
        following = ""
        while True:
            asked = {**query, **({"continue": following} if following else {})}
            request = LiveRequest(
                "GET",
                path_of(kind, namespace),
                asked,
                accept=accept or JSON,
                denial=denial_of("list", kind, namespace),
            )
            try:
                page = self.transport.send(request).body
            except RefusedRequest as refused:
                if refused.code != 410 or not (following := refused.following):
                    raise
                continue
            yield page
            following = str(dig(page, "metadata", "continue") or "")
            if not following:
                return

    def apply(
        self,
        body: Body,
        manager: str,
        *,
        namespace: str = "",
        force: bool = False,
        dry_run: bool = False,
        retries: int = RETRIES_MAX,
    ) -> LiveReply:
        """Server-side apply. Changes the cluster, unless it is a dry run."""
        kind = self._kind_for(body)
        home = str(metadata(body).get("namespace") or namespace or self.namespace) if kind.namespaced else ""
        query = {"fieldManager": manager, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        return self.transport.send(
            LiveRequest(
                "PATCH",
                path_of(kind, home, name_of(body)),
                query,
                body=body,
                content_type=APPLY,
                denial=denial_of("patch", kind, home),
                retries=retries,
            )
        )

    def delete(
        self, kind: ServedKind, namespace: str, name: str, *, uid: str = "", policy: str = "", dry_run: bool = False
    ) -> bool:
        """Delete an object, with `uid` only this very one; False if there is none. Changes the cluster."""
        options: Body = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if policy:
            options["propagationPolicy"] = policy
        if dry_run:
            options["dryRun"] = ["All"]
        path = path_of(kind, namespace, name)
        try:
            self.transport.send(LiveRequest("DELETE", path, body=options, denial=denial_of("delete", kind, namespace)))
        except RefusedRequest as refused:
            if refused.code == 404:
                return False
            raise
        return True

    def may(self, verb: str, group: str, resource: str, namespace: str = "", name: str = "") -> bool:
        """Whether we may do this, by a SelfSubjectAccessReview. `resource` may be `pods/log`."""
        plural, _, subresource = resource.partition("/")
        wanted = {
            "verb": verb,
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "namespace": namespace,
            "name": name,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {key: value for key, value in wanted.items() if value}},
        }
        reply = self.transport.send(
            LiveRequest("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=review)
        )
        return bool(dig(reply.body, "status", "allowed"))

    def _kind_for(self, body: Body) -> ServedKind:
        kind = self.kind_of(body)
        if kind is None:
            raise CannotContinue(
                f"apply {body.get('kind')}/{name_of(body)}: {body.get('apiVersion')} does not serve it"
            )
        return kind

    def _discovered(self) -> Served:
        roots = [self._document(path, discovery.AGGREGATED) for path in ("/api", "/apis")]
        if all(root.get("kind") == "APIGroupDiscoveryList" for root in roots):
            return discovery.from_aggregated(roots)
        kinds, unavailable = [*discovery.from_resource_list(self._document("/api/v1"))], []
        for api_version in discovery.group_versions(self._document("/apis")):
            try:
                kinds += discovery.from_resource_list(self._document(f"/apis/{api_version}", retries=0))
            except RefusedRequest:
                unavailable.append(api_version)
        return Served(tuple(kinds), tuple(unavailable))

    def _document(self, path: str, accept: str = JSON, retries: int = RETRIES_MAX) -> Body:
        document: Any = self.transport.send(LiveRequest("GET", path, accept=accept, retries=retries)).body
        return document if isinstance(document, dict) else {}


def path_of(kind: ServedKind, namespace: str = "", name: str = "") -> str:
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    home = f"/namespaces/{quote(namespace, safe='')}" if kind.namespaced and namespace else ""
    return f"{root}{home}/{kind.plural}" + (f"/{quote(name, safe=':')}" if name else "")


def is_secret(kind: ServedKind) -> bool:
    return (kind.group, kind.kind) == SECRET


def partial_of(body: Body, kind: ServedKind) -> Body:
    """Metadata under the object's own kind, also where the API server sent more."""
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": without_last_applied(metadata(body))}


def without_last_applied(meta: Body) -> Body:
    """The metadata without kubectl's copy of the whole object, which holds the data of a Secret."""
    annotations = meta.get("annotations")
    if not isinstance(annotations, dict) or LAST_APPLIED not in annotations:
        return meta
    return {**meta, "annotations": {key: value for key, value in annotations.items() if key != LAST_APPLIED}}


def selectors(labels: str, fields: str) -> dict[str, str]:
    return {key: value for key, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}


def denial_of(verb: str, kind: ServedKind, namespace: str) -> Denial:
    return Denial("", (verb,), kind.plural, kind.group, namespace)
