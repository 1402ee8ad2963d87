"""Applications as their manifests say they are, with what their sources were rendered to. Reads no files."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec.structs import replace

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.projects import Project, complaints, destination_of
from seatrial.engines.argocd.rollout import rollout_of
from seatrial.engines.argocd.sets import AppSet
from seatrial.engines.script import Target
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref, dig, listed, metadata, name_of

DELETING = ("sync", "create-delete")
"""The values of `applicationsSync` that let a set delete Applications."""


def app_of(release: Release) -> App:
    """The Application that a release is the source of, where the user gives none."""
    targets = targets_of(release)
    return App(
        name=release.name,
        destination=release.namespace,
        targets=targets,
        automated=True,
        prune=True,
        self_heal=True,
        revision=revision_of(targets),
    )


def declared(
    application: Body, release: Release | None, version: tuple[int, int], error: str = "", *, assumed: bool = False
) -> App:
    """The Application as its manifest says it is, with what its sources were rendered to."""
    policy = dig(application, "spec", "syncPolicy") or {}
    written = policy.get("automated")
    off = dig(written, "enabled") is False and versions.has(version, "automated.enabled")
    on = isinstance(written, dict) and not off
    automated: Body = written if isinstance(written, dict) and on else {}
    targets = targets_of(release) if release else ()
    return App(
        name=name_of(application),
        namespace=str(metadata(application).get("namespace") or "argocd"),
        destination=str(dig(application, "spec", "destination", "namespace") or ""),
        targets=targets,
        options=tuple(map(str, policy.get("syncOptions") or ())),
        automated=on,
        prune=bool(automated.get("prune")),
        self_heal=bool(automated.get("selfHeal")),
        allow_empty=bool(automated.get("allowEmpty")),
        retries=dig(policy, "retry", "limit"),
        revision=revision_of(targets),
        finalizers=tuple(metadata(application).get("finalizers") or ()),
        namespace_metadata=policy.get("managedNamespaceMetadata"),
        ignore_differences=tuple(listed(application, "spec", "ignoreDifferences")),
        where=destination_of(application),
        assumed=assumed,
        error=error,
    )


def in_project(app: App, application: Body, project: Project) -> App:
    """The Application in its project: with all that this permits, or with why it may not be in it."""
    said = ";".join(complaints(application, project))
    return replace(app, project=project, error=said or app.error)


def declared_set(ref: Ref, body: Body, made: tuple[Body, ...], settings: Settings) -> AppSet:
    """The ApplicationSet as its manifest says it is, with the Applications that it makes."""
    said = dig(body, "spec", "syncPolicy", "applicationsSync")
    return AppSet(
        ref,
        made,
        rollout_of(body, made) if settings.progressive_syncs is not False else None,
        updates=said not in ("create-only", "create-delete"),
        deletes=said in (None, "", *DELETING),
    )


def revision_of(targets: tuple[Target, ...]) -> str:
    """A name for this state of a source that looks like a commit, and is another one where the objects are others."""
    return hashlib.sha1(msgspec.json.encode([target.body for target in targets], order="sorted")).hexdigest()


def targets_of(release: Release) -> tuple[Target, ...]:
    return tuple(Target(resource.ref, resource.body) for resource in release.resources)
