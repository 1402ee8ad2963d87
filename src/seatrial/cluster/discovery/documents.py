"""Discovery documents, unaggregated and aggregated. Pure functions of the served kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from seatrial.kinds.tables.catalogue import SUBRESOURCES, ServedKind, subresource_kind
from seatrial.model.resource import Body

Versions = tuple[str, ...]


def version(kube_version: str) -> Body:
    major, _, minor = kube_version.partition(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{kube_version}.0",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "go1.24.0",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def core_versions() -> Body:
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [address]}


def group_list(groups: Iterable[tuple[str, Versions]]) -> Body:
    listed = [_group(name, versions) for name, versions in groups]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, versions: Versions) -> Body:
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def _group(name: str, versions: Versions) -> Body:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(group: str, version: str, kinds: Iterable[ServedKind]) -> Body:
    """The resources of one group-version, each followed by its subresources."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": [resource for kind in kinds for resource in _resources(kind)],
    }


def _resources(kind: ServedKind) -> Iterator[Body]:
    names = {"shortNames": kind.short_names, "categories": kind.categories}
    yield {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": kind.verbs,
        **{key: value for key, value in names.items() if value},
    }
    for name in kind.subresources:
        subresource = SUBRESOURCES[name]
        other = {"group": subresource.group, "version": subresource.version} if subresource.group else {}
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **other,
            "kind": subresource_kind(kind, name),
            "verbs": subresource.verbs,
        }


def aggregated(
    groups: Iterable[tuple[str, Versions]],
    kinds: Callable[[str, str], Iterable[ServedKind]],
    is_down: Callable[[str, str], bool],
) -> Body:
    """All groups with all their resources. A version whose backend is down is listed as stale and empty."""
    items = []
    for name, versions in groups:
        listed = []
        for version in versions:
            freshness = "Stale" if is_down(name, version) else "Current"
            resources = [_discovered(kind) for kind in kinds(name, version)]
            found = {"resources": resources} if resources else {}
            listed.append({"version": version, **found, "freshness": freshness})
        items.append({"metadata": {"name": name} if name else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _discovered(kind: ServedKind) -> Body:
    lists = {
        "shortNames": kind.short_names,
        "categories": kind.categories,
        "subresources": [_discovered_subresource(kind, name) for name in kind.subresources],
    }
    return {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": kind.verbs,
        **{key: value for key, value in lists.items() if value},
    }


def _discovered_subresource(kind: ServedKind, name: str) -> Body:
    subresource = SUBRESOURCES[name]
    response = {"group": subresource.group, "version": subresource.version, "kind": subresource_kind(kind, name)}
    return {"subresource": name, "responseKind": response, "verbs": subresource.verbs}


def capabilities(group_versions: Iterable[tuple[str, str]], kinds: Iterable[ServedKind]) -> Iterator[str]:
    """As `GetVersionSet` in Helm's pkg/action/action.go: group-versions, and every kind of their resource lists."""
    for name, version in group_versions:
        yield f"{name}/{version}" if name else version
    for kind in kinds:
        shown = {kind.kind, *(subresource_kind(kind, name) for name in kind.subresources)}
        yield from (f"{kind.api_version}/{name}" for name in shown)
