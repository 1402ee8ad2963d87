"""The table of well-known operators in operators.toml, and queries on it.

Knows neither what their kinds do (other modules here do) nor how they are installed in a cluster.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from pkgutil import get_data
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.kinds import World
from seatrial.kinds.core.entries import entries
from seatrial.kinds.tables.catalogue import cluster_scoped, plural_of
from seatrial.kinds.workloads.images import image_name, image_path, image_tag
from seatrial.model import lazy_re
from seatrial.model.errors import CannotContinue
from seatrial.model.resource import Body, dig, listed

Number = tuple[int, ...]
"""A release as comparable numbers: 0.17.0 is (0, 17, 0)."""

ALWAYS: Number = ()
CONSTRAINTS = "constraints.gatekeeper.sh"
"""The group of the kinds that Gatekeeper creates from templates. All are cluster-scoped."""
_RELEASE = lazy_re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?")
GENERIC = frozenset(("activator", "autoscaler", "ceph", "controller", "olm", "operator", "pilot", "speaker", "webhook"))
"""Image names that several projects use. These are identified by their parent folder as well."""


class Version(Struct, frozen=True):
    """One version of a kind, and the releases that serve it: from `since`, before `until`."""

    name: str
    since: Number = ALWAYS
    until: Number = ALWAYS
    stored_since: Number | None = None

    def is_served(self, release: Number) -> bool:
        return self.since <= release and (not self.until or release < self.until)


class OperatorKind(Struct, frozen=True):
    group: str
    kind: str
    plural: str
    namespaced: bool
    short_names: tuple[str, ...]
    subresources: tuple[str, ...]
    versions: tuple[Version, ...]
    finalizer: str = ""
    finalizer_since: Number = ALWAYS
    makes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def served(self, release: Number) -> tuple[str, ...]:
        """The versions that a release serves, oldest first."""
        return tuple(version.name for version in self.versions if version.is_served(release))

    def stored(self, release: Number) -> str:
        """The storage version of a release: the newest that has become it."""
        served = [version for version in self.versions if version.is_served(release)]
        stored = [v for v in served if v.stored_since is not None and v.stored_since <= release]
        return max(stored, key=lambda v: v.stored_since or ALWAYS).name if stored else served[-1].name


class OperatorWorkload(Struct, frozen=True):
    """A Deployment, or another workload, of an operator."""

    name: str
    image: str
    role: str = "controller"
    kind: str = "Deployment"
    argument: str = ""
    """An argument on its command line, if several workloads run the same image."""


class OperatorWebhook(Struct, frozen=True):
    """One webhook of an operator's configurations."""

    mutating: bool
    configuration: str
    service: str
    name: str
    operations: tuple[str, ...]
    resources: tuple[str, ...]
    """`plural.group`"""
    versions: tuple[str, ...]
    failure_policy: str
    path: str
    namespaces: Body = {}
    objects: Body = {}


class OperatorEntry(Struct, frozen=True):
    name: str
    source: str
    releases: str
    """The oldest and the newest release that the table was read from: `0.5 to 2.9`."""
    namespace: str
    workloads: tuple[OperatorWorkload, ...]
    kinds: tuple[OperatorKind, ...]
    webhooks: tuple[OperatorWebhook, ...]
    webhook_labels: dict[str, str]
    """Labels of the webhook configurations that it creates."""
    webhook_owner: str
    """How the name of the ClusterRole ends that owns those, if the cluster has one."""
    service_variable: str
    """The environment variable with the name of the Service that those call."""
    charts: tuple[str, ...]
    """Helm charts that install it and whose version is its release."""
    brings: tuple[str, ...]
    """Helm charts that bring its CRDs, where in them, and which values decide. Read by `charts`."""
    packages: tuple[str, ...]
    """Packages of OLM that bring it and its CRDs."""
    creates: tuple[str, ...]
    """What its controller creates when it starts: `crds`, `webhooks`."""
    creates_if: str
    """A word that the command line of one of its containers must have for that."""
    creates_unless: str
    """A setting that must not be true."""
    fails_closed: bool
    """Whether it sets `failurePolicy: Fail` in its webhook configurations with the caBundle."""
    platform: bool
    """Part of the platform: where its kinds are served, a controller acts on them."""


def find(name: str, version: str = "") -> OperatorEntry:
    """An operator in one release, by default the newest that was read."""
    found = table().get(name)
    if found is None:
        close = get_close_matches(name, table(), n=1)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(table())}"
        raise CannotContinue(
            f"assume.operators: unknown operator {name!r}; {hint} Describe other operators in the trial file"
        )
    release = release_number(version, found)
    kinds = tuple(kind for kind in found.kinds if kind.served(release))
    if version and found.releases and release < number(found.releases.partition(" to ")[0]):
        raise CannotContinue(f"assume.operators: {name}@{version} is not known; known are {found.releases}")
    return replace(found, kinds=kinds)


def chart_operator(chart: str) -> OperatorEntry | None:
    """The operator that a Helm chart of this name installs in the release of the same version."""
    return next((operator for operator in table().values() if chart in operator.charts), None)


def release_number(version: str, operator: OperatorEntry) -> Number:
    """`v1.0.0` as numbers. The newest release if the version is empty or not a number."""
    return number(version) or number(operator.releases.rpartition(" to ")[2]) or (999,)


@cache
def number(text: str) -> Number:
    """The numbers of a release, padded to three, so that 0.17 is 0.17.0. Empty if there are none."""
    match = _RELEASE.match(text)
    return tuple(int(part or 0) for part in match.groups()) if match else ALWAYS


@cache
def operator_kinds() -> dict[tuple[str, str], tuple[OperatorEntry, OperatorKind]]:
    """Every kind of a known operator, by (group, kind)."""
    found: dict[tuple[str, str], tuple[OperatorEntry, OperatorKind]] = {}
    for operator in table().values():
        for kind in operator.kinds:
            found.setdefault((kind.group, kind.kind), (operator, kind))
    return found


def plural_for(group: str, kind: str) -> str:
    """The plural of a kind: Kubernetes', an operator's, or the usual English plural."""
    known = plural_of(group, kind)
    if known is not None:
        return known
    if (group, kind) in operator_kinds():
        return operator_kinds()[group, kind][1].plural
    lower = kind.lower()
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return lower[:-1] + "ies"
    return lower + ("es" if lower.endswith(("s", "x", "z", "ch", "sh")) else "s")


def is_cluster_scoped(group: str, kind: str) -> bool:
    """Whether a kind is cluster-scoped, as far as known."""
    known = cluster_scoped(group, kind)
    if known is not None:
        return known
    if group == CONSTRAINTS:
        return True
    return (group, kind) in operator_kinds() and not operator_kinds()[group, kind][1].namespaced


def runs(world: World, name: str, role: str = "controller") -> bool:
    """Whether an operator runs: one of its workloads in this role is available."""
    return release_of(world, name, role) is not None


def release_of(world: World, name: str, role: str = "controller") -> Number | None:
    """The release of an operator that is running now; None if none is."""
    operator = table()[name]
    if operator.platform:
        return (999,)
    for workload in operator.workloads:
        if workload.role == role:
            for body in world.running(image_name(workload.image)):
                if (image := _image_of(workload, operator, body)) and is_available(body):
                    return release_number(image_tag(image), operator)
    return None


def role_for(operator: OperatorEntry, group: str) -> str:
    """The role of the workload that reconciles the kinds of a group. Flux has one for each."""
    first = group.partition(".")[0]
    return first if any(workload.role == first for workload in operator.workloads) else "controller"


def is_available(workload: Body) -> bool:
    """Whether at least one pod of a Deployment, StatefulSet or DaemonSet is available."""
    status = workload.get("status") or {}
    return any(int(status.get(field) or 0) > 0 for field in ("availableReplicas", "numberAvailable"))


def workload_of(body: Body) -> tuple[OperatorEntry, OperatorWorkload] | None:
    """The operator and workload, by the image that it runs."""
    containers = entries(body, "spec", "template", "spec", "containers")
    names = dict.fromkeys(image_name(str(container.get("image") or "")) for _, container in containers)
    known = (pair for name in names for pair in _by_image().get(name, ()))
    return next(((operator, workload) for operator, workload in known if _image_of(workload, operator, body)), None)


@cache
def _by_image() -> dict[str, list[tuple[OperatorEntry, OperatorWorkload]]]:
    found: dict[str, list[tuple[OperatorEntry, OperatorWorkload]]] = {}
    for operator in table().values():
        for workload in operator.workloads:
            found.setdefault(image_name(workload.image), []).append((operator, workload))
    return found


def _image_of(workload: OperatorWorkload, operator: OperatorEntry, body: Body) -> str:
    """The image of a container that belongs to this workload; empty if there is none."""
    others = [w.argument for w in operator.workloads if w.image == workload.image and w.argument != workload.argument]
    for _, container in entries(body, "spec", "template", "spec", "containers"):
        image = str(container.get("image") or "")
        words = [str(word) for field in ("command", "args") for word in listed(container, field)]
        wanted = not workload.argument or any(_is_called(word, workload.argument) for word in words)
        another = any(_is_called(word, other) for other in others for word in words)
        if _is_same(image, workload.image) and wanted and not another:
            return image
    return ""


def _is_called(word: str, argument: str) -> bool:
    """Whether a word of a command line is this argument, or a program of this name."""
    return bool(argument) and (word == argument or word.endswith(f"/{argument}"))


def _is_same(image: str, known: str) -> bool:
    """The same image from any registry: mirrors keep the last part of its name."""
    if image_name(image) != image_name(known):
        return False
    parts = 2 if image_name(known) in GENERIC else 1
    return image_path(image)[-parts:] == image_path(known)[-parts:]


@cache
def table() -> dict[str, OperatorEntry]:
    text = get_data(__name__, "operators.toml") or b""  # importlib.resources takes a hundredth of a small check.
    return {name: _operator(name, entry) for name, entry in tomllib.loads(text.decode()).items()}


def _operator(name: str, entry: dict[str, Any]) -> OperatorEntry:
    return OperatorEntry(
        name=name,
        source=entry["source"],
        releases=entry.get("releases", ""),
        namespace=entry.get("namespace", ""),
        workloads=tuple(OperatorWorkload(**workload) for workload in entry.get("workloads", ())),
        kinds=tuple(_kinds(entry)),
        webhooks=tuple(_webhooks(entry)),
        webhook_labels=entry.get("webhook_labels", {}),
        webhook_owner=entry.get("webhook_owner", ""),
        service_variable=entry.get("service_variable", ""),
        charts=tuple(entry.get("charts", ())),
        brings=tuple(entry.get("brings", ())),
        packages=tuple(entry.get("packages", ())),
        creates=tuple(entry.get("creates", ())),
        creates_if=entry.get("creates_if", ""),
        creates_unless=entry.get("creates_unless", ""),
        fails_closed=entry.get("fails_closed", False),
        platform=entry.get("platform", False),
    )


def _kinds(entry: dict[str, Any]) -> Iterator[OperatorKind]:
    group = ""
    for line in entry["kinds"].strip().splitlines():
        if not line.startswith(" "):
            group = line
            continue
        kind, plural, scope, short_names, subresources, *versions = line.split()
        finalizer, _, since = _about(entry, "finalizers", group, kind, "").partition("@")
        yield OperatorKind(
            group=group,
            kind=kind,
            plural=plural,
            namespaced=scope == "namespaced",
            short_names=_listed(short_names),
            subresources=_listed(subresources),
            versions=tuple(_version(cell) for cell in versions),
            finalizer=finalizer,
            finalizer_since=number(since),
            makes=tuple(_about(entry, "makes", group, kind, ())),
            needs=tuple(_about(entry, "needs", group, kind, ())),
        )


def _about(entry: dict[str, Any], what: str, group: str, kind: str, nothing: Any) -> Any:
    """What an operator's table lists for a kind. A kind is named with its group if two have the same name."""
    listed = entry.get(what) or {}
    return listed.get(f"{kind}.{group}") or listed.get(kind) or nothing


@cache
def _version(cell: str) -> Version:
    served, star, stored = cell.partition("*")
    name, _, span = served.partition("@")
    since, _, until = span.partition("-")
    first = number(since)
    return Version(name, first, number(until), stored_since=(number(stored) or first) if star else None)


def _webhooks(entry: dict[str, Any]) -> Iterator[OperatorWebhook]:
    stage = configuration = service = ""
    for line in entry.get("webhooks", "").strip().splitlines():
        if not line.startswith(" "):
            stage, configuration, service = line.split()
            continue
        name, operations, resources, versions, failure, path = line.split()
        selectors = dig(entry, "selectors", name) or {}
        yield OperatorWebhook(
            mutating=stage == "mutating",
            configuration=configuration,
            service=service,
            name=name,
            operations=_listed(operations),
            resources=_listed(resources),
            versions=_listed(versions),
            failure_policy=failure,
            path="" if path == "-" else path,
            **selectors,
        )


def _listed(cell: str) -> tuple[str, ...]:
    return () if cell == "-" else tuple(cell.split(","))
