"""Which kinds a cluster serves, from the documents of discovery. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from seatrial.kinds.tables.catalogue import ServedKind
from seatrial.model.resource import Body, dig, group_of, listed, version_of

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
"""All groups in one document, where the API server knows that (1.30 and later); otherwise the plain list of groups."""


class Served(Struct, frozen=True):
    """The kinds of a cluster, in the order of preference of their versions."""

    kinds: tuple[ServedKind, ...]
    unavailable: tuple[str, ...] = ()
    """Group-versions whose backend, an aggregated API, does not answer."""

    def find(self, group: str, kind: str, version: str = "") -> ServedKind | None:
        """The kind in this version, or in the preferred one."""
        return next(
            (
                served
                for served in self.kinds
                if served.kind == kind and served.group == group and version in ("", served.version)
            ),
            None,
        )

    def named(self, name: str) -> ServedKind | None:
        """By plural, singular, short name or kind, with or without group: `deploy`, `certificates.cert-manager.io`."""
        word, _, group = name.lower().partition(".")
        fits = (
            served
            for served in self.kinds
            if word in (served.plural, served.singular, served.kind.lower(), *served.short_names)
            and (not group or group in (served.group, f"{served.version}.{served.group}"))
        )
        return next(fits, None)

    def preferred(self) -> Iterator[ServedKind]:
        """Each kind once, in its preferred version."""
        seen = set()
        for served in self.kinds:
            if (served.group, served.kind) not in seen:
                seen.add((served.group, served.kind))
                yield served


def from_aggregated(documents: Iterable[Body]) -> Served:
    kinds: list[ServedKind] = []
    unavailable = []
    for document in documents:
        for item in listed(document, "items"):
            group = str(dig(item, "metadata", "name") or "")
            for version in listed(item, "versions"):
                name = str(version.get("version") or "")
                if version.get("freshness") == "Stale":
                    unavailable.append(f"{group}/{name}" if group else name)
                kinds += (_aggregated(group, name, resource) for resource in listed(version, "resources"))
    return Served(tuple(kinds), tuple(unavailable))


def _aggregated(group: str, version: str, resource: Body) -> ServedKind:
    kind = str(dig(resource, "responseKind", "kind") or "")
    return ServedKind(
        group,
        version,
        kind,
        str(resource.get("resource") or ""),
        str(resource.get("singularResource") or kind.lower()),
        resource.get("scope") == "Namespaced",
        tuple(listed(resource, "shortNames")),
        tuple(listed(resource, "categories")),
        tuple(listed(resource, "verbs")),
        tuple(str(part.get("subresource")) for part in listed(resource, "subresources")),
        f"{kind}List",
    )


def group_versions(groups: Body) -> Iterator[str]:
    """The group-versions of a plain list of groups, the preferred one of each first."""
    for group in listed(groups, "groups"):
        preferred = str(dig(group, "preferredVersion", "groupVersion") or "")
        others = (str(version.get("groupVersion")) for version in listed(group, "versions"))
        yield from dict.fromkeys((preferred, *others))


def from_resource_list(document: Body) -> Iterator[ServedKind]:
    """The kinds of one group-version."""
    api_version = str(document.get("groupVersion") or "")
    resources = listed(document, "resources")
    subresources: dict[str, list[str]] = {}
    for resource in resources:
        plural, slash, subresource = str(resource.get("name")).partition("/")
        if slash:
            subresources.setdefault(plural, []).append(subresource)
    for resource in resources:
        plural, kind = str(resource.get("name")), str(resource.get("kind"))
        if "/" not in plural:
            yield ServedKind(
                group_of(api_version),
                version_of(api_version),
                kind,
                plural,
                str(resource.get("singularName") or kind.lower()),
                bool(resource.get("namespaced")),
                tuple(listed(resource, "shortNames")),
                tuple(listed(resource, "categories")),
                tuple(listed(resource, "verbs")),
                tuple(subresources.get(plural, ())),
                f"{kind}List",
            )
