"""What a release takes for granted: objects it needs and does not bring. They are assumed, and said to be.

A need that nothing in the trial meets is met before the first step, so that a rehearsal fails for what the release does
and not for what was never its to do. Each is named in the report as a prerequisite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.case import Release, Resource
from seatrial.graph import edges
from seatrial.kinds import Need
from seatrial.kinds.catalogue import CATALOGUE
from seatrial.resource import Body, Ref, dig, listed, metadata
from seatrial.result import Prerequisite

KUBERNETES_GROUPS = frozenset(group for group, _ in CATALOGUE)

# What can be made up without making a promise that changes an outcome.
MADE_UP: dict[tuple[str, str], Body] = {
    ("", "ConfigMap"): {"apiVersion": "v1", "data": {}},
    ("", "Secret"): {"apiVersion": "v1", "data": {}},
    ("", "ServiceAccount"): {"apiVersion": "v1"},
    ("", "PersistentVolumeClaim"): {
        "apiVersion": "v1",
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    },
    ("scheduling.k8s.io", "PriorityClass"): {"apiVersion": "scheduling.k8s.io/v1", "value": 1000},
    ("storage.k8s.io", "StorageClass"): {"apiVersion": "storage.k8s.io/v1", "provisioner": "example.com/assumed"},
    ("node.k8s.io", "RuntimeClass"): {"apiVersion": "node.k8s.io/v1", "handler": "assumed"},
    ("networking.k8s.io", "IngressClass"): {
        "apiVersion": "networking.k8s.io/v1",
        "spec": {"controller": "example.com/assumed"},
    },
}
ALWAYS_THERE = ("default", "kube-node-lease", "kube-public", "kube-system")
APPROVED = {"api-approved.kubernetes.io": "unapproved, assumed by a rehearsal"}
"""What the API server asks of definitions in the groups of Kubernetes itself."""
BUILT_IN = {
    Ref("PriorityClass", "", "system-cluster-critical", "scheduling.k8s.io"),
    Ref("PriorityClass", "", "system-node-critical", "scheduling.k8s.io"),
}


def definitions(releases: Iterable[Release], known: Iterable[Resource] = ()) -> list[tuple[Body, Prerequisite]]:
    """A definition for every custom kind that is used and that no release defines: one that is `known`, or made up."""
    found: dict[tuple[str, str], list[Resource]] = {}
    defined: set[tuple[str, str]] = set()
    for release in releases:
        for resource in (*release.resources, *release.crds):
            if resource.ref.kind == "CustomResourceDefinition":
                spec = resource.body.get("spec") or {}
                defined.add((str(spec.get("group")), str(dig(spec, "names", "kind"))))
            elif resource.ref.group not in KUBERNETES_GROUPS:
                found.setdefault((resource.ref.group, resource.ref.kind), []).append(resource)
    given = {(str(dig(crd.body, "spec", "group")), str(dig(crd.body, "spec", "names", "kind"))): crd for crd in known}
    return [
        _definition(group, kind, found[group, kind], given.get((group, kind)))
        for group, kind in sorted(found)
        if (group, kind) not in defined
    ]


def namespaces(
    releases: Iterable[Release], assumed: Iterable[str], made_up: Iterable[tuple[Body, Prerequisite]] = ()
) -> Iterator[tuple[Body, Prerequisite]]:
    """The namespaces that are used and that no release makes; `made_up` is what else was taken for granted."""
    given = list(releases)
    made = {r.ref.name for release in given for r in release.resources if r.ref.kind == "Namespace"}
    used: dict[str, str] = dict.fromkeys(assumed, "the release is installed into it")
    for release in given:
        for resource in release.resources:
            used.setdefault(resource.ref.namespace, f"{resource.ref} is made in it")
    for body, prerequisite in made_up:
        used.setdefault(str(metadata(body).get("namespace") or ""), f"{prerequisite.object} is taken to be in it")
    for name in sorted(used):
        release_namespace = name in set(assumed)
        if name and name not in ALWAYS_THERE and (release_namespace or name not in made):
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            yield body, Prerequisite(f"Namespace/{name}", used[name])


def objects(releases: Iterable[Release]) -> list[tuple[Body, Prerequisite]]:
    """The objects that are needed by name and that no release brings."""
    given = list(releases)
    brought = {resource.ref for release in given for resource in release.resources} | BUILT_IN
    wanted: dict[Ref, tuple[Resource, list[Need]]] = {}
    for release in given:
        for edge in edges(release.resources):
            need = edge.need
            known = (need.object.group, need.object.kind) in MADE_UP
            if known and not need.optional and not need.guess and need.object not in brought:
                wanted.setdefault(need.object, (edge.user, []))[1].append(need)
    return [_made_up(ref, *wanted[ref]) for ref in sorted(wanted) if not _comes_by_itself(ref)]


def default_storage(releases: Iterable[Release]) -> Iterator[Prerequisite]:
    """Said where a claim names no class and so takes the default one."""
    for release in releases:
        for resource in release.resources:
            claims = [resource.body] if resource.ref.kind == "PersistentVolumeClaim" else []
            claims += (
                listed(resource.body, "spec", "volumeClaimTemplates") if resource.ref.kind == "StatefulSet" else []
            )
            if any("storageClassName" not in (claim.get("spec") or {}) for claim in claims):
                yield Prerequisite(
                    "StorageClass (the default one)", f"{resource.ref} claims storage and names no class"
                )
                return


def _comes_by_itself(ref: Ref) -> bool:
    return (ref.kind, ref.name) in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")) or not ref.name


def _made_up(ref: Ref, user: Resource, needs: list[Need]) -> tuple[Body, Prerequisite]:
    meta = {"name": ref.name, "namespace": ref.namespace} if ref.namespace else {"name": ref.name}
    body: Body = {"kind": ref.kind, "metadata": meta, **MADE_UP[ref.group, ref.kind]}
    keys = sorted({need.key for need in needs if need.key})
    if keys:
        body["data"] = dict.fromkeys(keys, "")
    named = f" (keys {', '.join(keys)})" if keys else ""
    return body, Prerequisite(f"{ref}", f"{user.ref} needs it{named} and no release brings it")


def _definition(
    group: str, kind: str, used: list[Resource], known: Resource | None = None
) -> tuple[Body, Prerequisite]:
    versions = sorted({str(r.body.get("apiVersion", "")).rpartition("/")[2] for r in used})
    body = known.body if known else _definition_of(group, kind, versions, namespaced=bool(used[0].ref.namespace))
    served = ", ".join(f"{group}/{version}" for version in versions)
    why = f"{used[0].ref} is of this kind ({served} must be served) and no release defines it"
    return body, Prerequisite(f"CustomResourceDefinition/{body['metadata']['name']}", why)


def _definition_of(group: str, kind: str, versions: list[str], *, namespaced: bool) -> Body:
    """A definition that takes any object of this kind; nobody knows what its operator does with it."""
    plural = _plural(kind)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    entries = [
        {"name": version, "served": True, "storage": index == 0, "schema": schema, "subresources": {"status": {}}}
        for index, version in enumerate(versions)
    ]
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    spec = {"group": group, "scope": "Namespaced" if namespaced else "Cluster", "names": names, "versions": entries}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": APPROVED if group.endswith(".k8s.io") else {}},
        "spec": spec,
    }


def _plural(kind: str) -> str:
    """What most authors would call it; only its spelling in a report depends on this."""
    lower = kind.lower()
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return lower[:-1] + "ies"
    return lower + ("es" if lower.endswith(("s", "x", "z", "ch", "sh")) else "s")


def from_api_versions(api_versions: Iterable[str], served: Iterable[str]) -> Iterator[Body]:
    """Definitions that make `--api-versions g/v/Kind` true in the cluster."""
    there = set(served)
    for entry in api_versions:
        parts = entry.split("/")
        if len(parts) == 3 and entry not in there:
            group, version, kind = parts
            yield _definition_of(group, kind, [version], namespaced=True)
