"""The kinds that the API serves now, and their paths. Knows nothing of objects or schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

import msgspec

from seatrial.cluster.discovery import documents
from seatrial.cluster.discovery.schema import published_kinds
from seatrial.cluster.refusal import unavailable
from seatrial.kinds.tables.catalogue import CATALOGUE, GROUPS, ServedKind
from seatrial.model import lazy_re
from seatrial.model.resource import Body

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""The media type of aggregated discovery."""

# Beta APIs are off by default (KEP 3136), except those that were on before. Read from
# `legacyBetaEnabledByDefaultResources` in pkg/controlplane/instance.go of 1.25 to 1.31.
_BETAS_ON = {
    ("autoscaling", "v2beta2"),
    ("flowcontrol.apiserver.k8s.io", "v1beta1"),
    ("flowcontrol.apiserver.k8s.io", "v1beta2"),
    ("flowcontrol.apiserver.k8s.io", "v1beta3"),
}
_BETA_KINDS_ON = {("storage.k8s.io", "v1beta1", "CSIStorageCapacity")}

_VERSION = lazy_re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_MATURITY = {None: 0, "beta": 1, "alpha": 2}


@cache
def builtin_kinds(kube_version: str) -> tuple[ServedKind, ...]:
    """What an API server of this minor (`1.34`) serves with its default flags."""
    minor = int(kube_version.partition(".")[2])
    published: dict[tuple[str, str], list[str]] = {}
    for group, version, kind in published_kinds(kube_version):
        if _on_by_default(group, version, kind):
            published.setdefault((group, kind), []).append(version)
    return tuple(
        entry.served(version, minor)
        for key, entry in CATALOGUE.items()
        for version in sorted(published.get(key, ()), key=version_order)
    )


@cache
def _builtin_by_kind(kube_version: str) -> dict[tuple[str, str], tuple[ServedKind, ...]]:
    """The versions of each built-in kind, the preferred one first."""
    found: dict[tuple[str, str], list[ServedKind]] = {}
    for kind in builtin_kinds(kube_version):
        found.setdefault((kind.group, kind.kind), []).append(kind)
    return {key: tuple(kinds) for key, kinds in found.items()}


@lru_cache(maxsize=4096)
def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as Kubernetes prefers them: v2, v1, v1beta2, v1beta1, v1alpha1, then all other names."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return 3, 0, 0, version
    return _MATURITY[found[2]], -int(found[1]), -int(found[3] or 0), version


class Discovery:
    """The kinds of one Kubernetes minor, and of the current CRDs and APIServices."""

    def __init__(self, kube_version: str) -> None:
        self.kube_version = kube_version
        self._served = {(kind.group, kind.version, kind.plural): kind for kind in builtin_kinds(kube_version)}
        self._by_kind = dict(_builtin_by_kind(kube_version))
        self._down: set[tuple[str, str]] = set()
        self._documents: dict[tuple[str, bool], bytes] = {}
        self._versions: dict[tuple[str, str], tuple[ServedKind, ...]] = {}
        self._unlisted: frozenset[tuple[str, str]] = frozenset()
        self._api_versions: tuple[str, ...] = ()
        self._found_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
        self.changes = 0
        """How often what is served has changed."""

    def find(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._served.get((group, version, plural))

    def of_kind(self, group: str, kind: str, version: str = "") -> ServedKind | None:
        """A kind in this version, or in the preferred version."""
        found = self._by_kind.get((group, kind), ())
        return next((served for served in found if not version or served.version == version), None)

    def api_version_of(self, group: str, kind: str) -> str:
        """The apiVersion in which the API server prefers to serve a kind; empty where it does not serve it."""
        found = self.of_kind(group, kind)
        return found.api_version if found else ""

    def versions(self, group: str, plural: str) -> tuple[str, ...]:
        """The versions of a resource, the preferred one first."""
        found = (version for g, version, p in self._served if g == group and p == plural)
        return tuple(sorted(found, key=version_order))

    def versions_of(self, group: str, kind: str) -> tuple[str, ...]:
        """The versions of a kind, the preferred one first."""
        return tuple(served.version for served in self._by_kind.get((group, kind), ()))

    def kinds(self) -> Iterator[ServedKind]:
        """Everything served, in the order of the groups."""
        return (kind for group, version in self.group_versions() for kind in self.in_version(group, version))

    def in_version(self, group: str, version: str) -> tuple[ServedKind, ...]:
        """The kinds of one group-version, by plural."""
        if not self._versions:
            self._versions = _by_version(self._served.values())
        return self._versions.get((group, version), ())

    def group_versions(self) -> Iterator[tuple[str, str]]:
        """Every (group, version) served, the core group first."""
        return ((group, version) for group, versions in self._groups() for version in versions)

    def add(self, kinds: Iterable[ServedKind]) -> None:
        for kind in kinds:
            self._served[kind.group, kind.version, kind.plural] = kind
            same = [k for k in self._by_kind.get((kind.group, kind.kind), ()) if k.version != kind.version]
            self._by_kind[kind.group, kind.kind] = tuple(sorted((*same, kind), key=lambda k: version_order(k.version)))
        self._clear_cache()

    def remove(self, group: str, plural: str) -> None:
        """Stop serving a resource in all its versions."""
        for version in self.versions(group, plural):
            removed = self._served.pop((group, version, plural))
            left = (kind for kind in self._by_kind[group, removed.kind] if kind != removed)
            self._by_kind[group, removed.kind] = tuple(left)
        self._clear_cache()

    def set_down(self, group: str, version: str) -> None:
        """An APIService registers this group-version and its backend is not available."""
        self._down.add((group, version))
        self._clear_cache()

    def set_up(self, group: str, version: str) -> None:
        self._down.discard((group, version))
        self._clear_cache()

    def is_down(self, group: str, version: str) -> bool:
        return (group, version) in self._down

    def api_versions(self) -> tuple[str, ...]:
        """`.Capabilities.APIVersions` as Helm builds it from discovery: `apps/v1`, `apps/v1/Deployment`."""
        if not self._api_versions:
            self._api_versions = tuple(sorted(documents.capabilities(self.group_versions(), self.kinds())))
        return self._api_versions

    def unlist(self, kinds: frozenset[tuple[str, str]]) -> None:
        """Hide kinds of groups from lists of all groups. They are still served."""
        self._unlisted = kinds
        self._clear_cache()

    def document(self, path: str, *, aggregated: bool = False) -> bytes | None:
        """The encoded response to a GET of a discovery path; None if nothing is served there."""
        key = path.rstrip("/"), aggregated
        found = self._documents.get(key)
        if found is None:
            body = self._built(*key)
            if body is None:
                return None
            found = self._documents[key] = msgspec.json.encode(body)
        return found

    def _built(self, path: str, aggregated: bool) -> Body | None:
        match path.split("/")[1:]:
            case ["version"]:
                return documents.version(self.kube_version)
            case ["api"]:
                return self._aggregated(core=True) if aggregated else documents.core_versions()
            case ["apis"]:
                if aggregated:
                    return self._aggregated(core=False)
                return documents.group_list((g, v) for g, v in self._listed() if g)
            case ["apis", group]:
                versions = dict(self._groups()).get(group)
                return documents.group(group, versions) if group and versions else None
            case ["api", version]:
                return self._resource_list("", version)
            case ["apis", group, version]:
                return self._resource_list(group, version)
        return None

    def _resource_list(self, group: str, version: str) -> Body | None:
        if self.is_down(group, version):
            raise unavailable()
        kinds = self.in_version(group, version)
        return documents.resource_list(group, version, kinds) if kinds else None

    def _aggregated(self, *, core: bool) -> Body:
        groups = [(g, versions) for g, versions in self._listed() if (g == "") == core]
        return documents.aggregated(groups, self._listed_in, self.is_down)

    def _listed(self) -> list[tuple[str, tuple[str, ...]]]:
        """Groups with versions that list a kind, or that have none because they are down."""
        found = ((group, tuple(v for v in versions if self._is_listed(group, v))) for group, versions in self._groups())
        return [(group, versions) for group, versions in found if versions]

    def _is_listed(self, group: str, version: str) -> bool:
        return bool(self._listed_in(group, version)) or not self.in_version(group, version)

    def _listed_in(self, group: str, version: str) -> list[ServedKind]:
        kinds = self.in_version(group, version)
        return [kind for kind in kinds if (kind.group, kind.kind) not in self._unlisted]

    def _groups(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Groups in the API server's order, CRD groups last, each with its versions, the preferred first."""
        if self._found_groups:
            return self._found_groups
        found: dict[str, set[str]] = {}
        for group, version in (*((g, v) for g, v, _ in self._served), *self._down):
            found.setdefault(group, set()).add(version)
        place = {group: index for index, group in enumerate(("", *GROUPS))}
        names = sorted(found, key=lambda group: (place.get(group, len(place)), group))
        self._found_groups = tuple((name, tuple(sorted(found[name], key=version_order))) for name in names)
        return self._found_groups

    def _clear_cache(self) -> None:
        self.changes += 1
        self._documents.clear()
        self._versions = {}
        self._api_versions = ()
        self._found_groups = ()


def _by_version(kinds: Iterable[ServedKind]) -> dict[tuple[str, str], tuple[ServedKind, ...]]:
    found: dict[tuple[str, str], list[ServedKind]] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.version), []).append(kind)
    return {key: tuple(sorted(some, key=lambda kind: kind.plural)) for key, some in found.items()}


def _on_by_default(group: str, version: str, kind: str) -> bool:
    if "alpha" not in version and "beta" not in version:
        return True
    return (group, version) in _BETAS_ON or (group, version, kind) in _BETA_KINDS_ON
