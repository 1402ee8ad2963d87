"""What an AppProject permits: repositories, destinations and kinds. There is no clock, so sync windows are only named.

Upstream: `app_project_types.go` in pkg/apis/application/v1alpha1, `ValidatePermissions` in util/argo/argo.go and
`validateSyncPermissions` in controller/sync.go, Argo CD 3.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache

from msgspec import Struct

from seatrial.kinds.operators.argocd import GROUP
from seatrial.model.resource import Body, Ref, dig, group_of, listed, name_of

IN_CLUSTER = ("https://kubernetes.default.svc", "in-cluster")
"""The server that Argo CD runs on, and its name."""
DEFAULT = "default"
"""The default project, which permits everything."""


class Destination(Struct, frozen=True):
    server: str
    name: str
    namespace: str


class Kinds(Struct, frozen=True):
    """An entry of a list of kinds; since 3.3 entries for cluster-scoped kinds may also name objects."""

    group: str
    kind: str
    name: str = ""


class Project(Struct, frozen=True):
    name: str
    repos: tuple[str, ...] = ()
    destinations: tuple[Destination, ...] = ()
    cluster_allowed: tuple[Kinds, ...] = ()
    cluster_denied: tuple[Kinds, ...] = ()
    namespaced_allowed: tuple[Kinds, ...] | None = None
    """None allows any: only cluster-scoped kinds must be listed."""
    namespaced_denied: tuple[Kinds, ...] = ()
    windows: tuple[Body, ...] = ()


def is_project(body: Body) -> bool:
    return body.get("kind") == "AppProject" and group_of(str(body.get("apiVersion", ""))) == GROUP


def project_of(body: Body) -> Project:
    allowed = dig(body, "spec", "namespaceResourceWhitelist")
    return Project(
        name=name_of(body),
        repos=tuple(map(str, listed(body, "spec", "sourceRepos"))),
        destinations=tuple(_destination(entry) for entry in listed(body, "spec", "destinations")),
        cluster_allowed=_kinds(listed(body, "spec", "clusterResourceWhitelist")),
        cluster_denied=_kinds(listed(body, "spec", "clusterResourceBlacklist")),
        namespaced_allowed=None if allowed is None else _kinds(allowed),
        namespaced_denied=_kinds(listed(body, "spec", "namespaceResourceBlacklist")),
        windows=tuple(listed(body, "spec", "syncWindows")),
    )


def complaints(application: Body, project: Project) -> Iterator[str]:
    """Why an Application may not be in its project: its conditions."""
    sources = listed(application, "spec", "sources") or [dig(application, "spec", "source") or {}]
    for source in sources:
        url = str(source.get("repoURL") or "")
        if not _is_source_permitted(url, project):
            yield f"InvalidSpecError: application repo {url} is not permitted in project '{project.name}'"
    destination = destination_of(application)
    if not _is_destination_permitted(destination, project):
        where = destination.name or destination.server
        yield (
            f"InvalidSpecError: application destination server '{where}' and namespace '{destination.namespace}' do "
            f"not match any of the allowed destinations in project '{project.name}'"
        )


def refusal(ref: Ref, namespace: str, destination: Destination, project: Project) -> str:
    """Why a sync may not touch an object; `namespace` is empty for cluster-scoped ones."""
    if not _is_kind_permitted(ref, project, namespaced=bool(namespace)):
        return f"resource {ref.group}:{ref.kind} is not permitted in project {project.name}"
    if namespace:
        there = Destination(destination.server, destination.name, namespace)
        if not _is_destination_permitted(there, project):
            return f"namespace {namespace} is not permitted in project '{project.name}'"
    return ""


def destination_of(application: Body) -> Destination:
    """The destination of an Application; by default the cluster that Argo CD runs on."""
    found = _destination(dig(application, "spec", "destination") or {})
    return found if found.server or found.name else Destination(IN_CLUSTER[0], "", found.namespace)


def windows_for(application: Body, project: Project) -> Iterator[Body]:
    """The sync windows that match an Application: by name, cluster or namespace, or all of these."""
    destination = destination_of(application)
    about = {
        "applications": (name_of(application),),
        "clusters": (destination.name, destination.server),
        "namespaces": (destination.namespace,),
    }
    for window in project.windows:
        found = [
            any(_matches(str(pattern), text) for pattern in window[field] for text in texts)
            for field, texts in about.items()
            if window.get(field)
        ]
        if found and (all if window.get("andOperator") else any)(found):
            yield window


def _destination(entry: Body) -> Destination:
    return Destination(*(str(entry.get(field) or "") for field in ("server", "name", "namespace")))


def _kinds(entries: Iterable[Body]) -> tuple[Kinds, ...]:
    return tuple(Kinds(str(e.get("group") or ""), str(e.get("kind") or ""), str(e.get("name") or "")) for e in entries)


def _is_source_permitted(url: str, project: Project) -> bool:
    permitted = False
    for pattern in project.repos:
        denies = pattern.startswith("!")
        matches = _matches(_normalized(pattern.removeprefix("!")), _normalized(url), "/")
        if denies and matches:
            return False
        permitted = permitted or denies != matches
    return permitted


def _is_destination_permitted(asked: Destination, project: Project) -> bool:
    """The destination's server and name are resolved first: both match."""
    server = asked.server or (IN_CLUSTER[0] if asked.name == IN_CLUSTER[1] else "")
    name = asked.name or (IN_CLUSTER[1] if asked.server == IN_CLUSTER[0] else "")
    permitted = False
    for entry in project.destinations:
        by_name = bool(name) and _agrees(entry.name, name)
        by_server = bool(server) and _agrees(entry.server, server)
        by_namespace = _agrees(entry.namespace, asked.namespace)
        denied = (
            not by_name and _denies(entry.name),
            not by_server and _denies(entry.server) and by_namespace,
            not by_namespace and _denies(entry.namespace) and by_server,
        )
        if (by_server or by_name) and by_namespace:
            permitted = True
        elif any(denied):
            return False
    return permitted


def _is_kind_permitted(ref: Ref, project: Project, *, namespaced: bool) -> bool:
    if namespaced:
        allowed = project.namespaced_allowed
        return (allowed is None or _is_among(ref, allowed)) and not _is_among(ref, project.namespaced_denied)
    return _is_among(ref, project.cluster_allowed) and not _is_among(ref, project.cluster_denied)


def _is_among(ref: Ref, entries: tuple[Kinds, ...]) -> bool:
    return any(
        fnmatchcase(ref.kind, entry.kind)
        and fnmatchcase(ref.group, entry.group)
        and (not entry.name or fnmatchcase(ref.name, entry.name))
        for entry in entries
    )


def _agrees(pattern: str, text: str) -> bool:
    return not _matches(pattern[1:], text) if _denies(pattern) else _matches(pattern, text)


def _denies(pattern: str) -> bool:
    return pattern.startswith("!")


def _matches(pattern: str, text: str, separator: str = "") -> bool:
    return pattern == "*" or bool(_compiled(pattern, separator).fullmatch(text))


@cache
def _compiled(pattern: str, separator: str) -> re.Pattern[str]:
    """github.com/gobwas/glob: one star stops at the separator, two do not."""
    any_of = f"[^{separator}]" if separator else "."
    parts = {"**": ".*", "*": f"{any_of}*", "?": any_of, "{": "(?:", "}": ")", ",": "|"}
    tokens: list[str] = re.findall(r"\*\*|\[[^\]]*\]|.", pattern, re.DOTALL)
    inside = pattern.count("{") == pattern.count("}") > 0
    known = parts if inside else {key: parts[key] for key in ("**", "*", "?")}
    return re.compile("".join(known.get(t, t if len(t) > 2 else re.escape(t)) for t in tokens), re.DOTALL)


def _normalized(url: str) -> str:
    """`git.NormalizeGitURL`."""
    return url.strip().lower().removesuffix("/").removesuffix(".git").removeprefix("ssh://")
