"""Resources by any name that kubectl accepts: `deploy`, `deployments.apps`, `Deployment`, `dc`. Needs no cluster.

Knows the kinds of Kubernetes, of OpenShift and a few others; callers pass CRDs of further kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct

from seatrial.kinds.tables.catalogue import CATALOGUE, plural_of
from seatrial.model.resource import Body, dig, group_of, listed

# group, then: kind, scope (c: cluster), short names. The plural is the lower-case kind with an s.
_OTHERS = """
apps.openshift.io         DeploymentConfig:dc
build.openshift.io        Build BuildConfig:bc
config.openshift.io       ClusterOperator/c:co ClusterVersion/c
image.openshift.io        ImageStream:is ImageStreamImport ImageStreamTag:istag ImageTag:itag
operators.coreos.com      CatalogSource:catsrc ClusterServiceVersion:csv,csvs InstallPlan:ip Subscription:sub,subs
project.openshift.io      Project/c ProjectRequest/c
route.openshift.io        Route
security.openshift.io     SecurityContextConstraints/c:scc
template.openshift.io     Template
argoproj.io               Application:app,apps AppProject:appproj,appprojs Rollout:ro Workflow:wf
cert-manager.io           Certificate:cert,certs ClusterIssuer/c Issuer
external-secrets.io       ClusterSecretStore/c:css ExternalSecret:es SecretStore:ss
monitoring.coreos.com     PodMonitor:pmon PrometheusRule:promrule ServiceMonitor:smon
serving.kserve.io         InferenceService:isvc
tekton.dev                Pipeline PipelineRun:pr,prs Task TaskRun:tr,trs
"""


class ResourceName(Struct, frozen=True):
    """A resource that a name stands for."""

    group: str
    plural: str
    namespaced: bool = True
    sure: bool = True
    """Whether the resource is known, not only its spelling."""


def find(name: str, crds: Iterable[Body] = ()) -> ResourceName | None:
    """The resource of a name. A name with a group is always accepted; another unknown name is not."""
    plain, dot, group = name.lower().partition(".")
    for known in (_from_crds(crds), _known()):
        if not dot and plain in known:
            return known[plain][0]
        for resource in known.get(plain, ()):
            if resource.group == group or f".{group}".endswith(f".{resource.group}"):
                return resource
    if not dot:
        return None
    version, _, rest = group.partition(".")
    has_version = version[:1] == "v" and version[1:2].isdigit()
    return ResourceName(rest if has_version else group, plain if plain.endswith("s") else f"{plain}s", sure=False)


def of_kind(api_version: str, kind: str, crds: Iterable[Body] = ()) -> ResourceName:
    """The resource of an object that names its kind."""
    group = group_of(api_version)
    plural = plural_of(group, kind)
    if plural is not None:
        return ResourceName(group, plural, CATALOGUE[group, kind].namespaced)
    return find(f"{kind}.{group}", crds) or ResourceName(group, f"{kind.lower()}s", sure=False)


def kind_of(group: str, plural: str) -> str:
    """The kind of a resource; empty if unknown."""
    return _kinds().get((group, plural), "")


def _from_crds(crds: Iterable[Body]) -> dict[str, list[ResourceName]]:
    found: dict[str, list[ResourceName]] = {}
    for body in crds:
        names = dig(body, "spec", "names") or {}
        resource = ResourceName(
            str(dig(body, "spec", "group") or ""),
            str(names.get("plural") or ""),
            dig(body, "spec", "scope") != "Cluster",
        )
        spelled = (names.get("plural"), names.get("singular") or names.get("kind"), *listed(names, "shortNames"))
        for name in filter(None, spelled):
            found.setdefault(str(name).lower(), []).append(resource)
    return found


@cache
def _known() -> dict[str, list[ResourceName]]:
    found: dict[str, list[ResourceName]] = {}
    for entry in CATALOGUE.values():
        resource = ResourceName(entry.group, entry.plural, entry.namespaced)
        for name in (entry.plural, entry.kind.lower(), *entry.short_names):
            found.setdefault(name, []).append(resource)
    for _, names, resource in _others():
        for name in names:
            found.setdefault(name, []).append(resource)
    # If several resources have the name, kubectl prefers the core group.
    return {name: sorted(resources, key=lambda r: r.group != "") for name, resources in found.items()}


@cache
def _kinds() -> dict[tuple[str, str], str]:
    own = {(entry.group, entry.plural): entry.kind for entry in CATALOGUE.values()}
    return own | {(resource.group, resource.plural): kind for kind, _, resource in _others()}


def _others() -> Iterator[tuple[str, list[str], ResourceName]]:
    for line in _OTHERS.strip().splitlines():
        group, *words = line.split()
        for word in words:
            kind, _, shorts = word.partition(":")
            kind, _, scope = kind.partition("/")
            lower = kind.lower()
            plural = lower if lower.endswith("s") else f"{lower}s"
            yield kind, [plural, lower, *filter(None, shorts.split(","))], ResourceName(group, plural, scope != "c")
