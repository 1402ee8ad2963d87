"""From releases to Applications of Argo CD: what it makes of a chart or of manifests. Reads nothing, plays nothing."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec.structs import replace

from seatrial import hooks
from seatrial.case import Release
from seatrial.engines import argocd
from seatrial.engines.argocd import versions
from seatrial.engines.argocd.tracking import SHIPPED_EXCLUSIONS

TAKEN_AS = (
    "taken as the source of one Application with automated sync and pruning, as most are; an Application of your own "
    "says otherwise"
)


def as_argocd_renders(release: Release) -> Release:
    """`helm template --include-crds`: definitions of crds/ are objects like all others, and what Helm leaves out is."""
    left = tuple(r for r in release.resources if not hooks.unknown_events(r.body))
    return replace(release, resources=(*release.crds, *left), crds=())


def argocd_settings(version: tuple[int, int]) -> argocd.Settings:
    """Argo CD as it comes, in this version."""
    shipped = versions.has(version, "exclusions in argocd-cm")
    return argocd.Settings(version, exclusions=SHIPPED_EXCLUSIONS if shipped else ())


def app_of(release: Release) -> argocd.App:
    """The Application that a release is the source of, where nobody gives one."""
    targets = targets_of(release)
    return argocd.App(
        name=release.name,
        destination=release.namespace,
        targets=targets,
        automated=True,
        prune=True,
        self_heal=True,
        revision=revision_of(targets),
    )


def revision_of(targets: tuple[argocd.Target, ...]) -> str:
    """A name for this state of a source that looks like a commit, and is another one where the objects are others."""
    return hashlib.sha1(msgspec.json.encode([target.body for target in targets], order="sorted")).hexdigest()


def targets_of(release: Release) -> tuple[argocd.Target, ...]:
    return tuple(argocd.Target(resource.ref, resource.body) for resource in release.resources)
