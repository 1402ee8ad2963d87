"""Applications from their manifests, with their rendered sources. Reads no files."""

from __future__ import annotations

import hashlib

import msgspec
from msgspec.structs import replace

from seatrial.engines.argocd import versions
from seatrial.engines.argocd.app import App, Settings
from seatrial.engines.argocd.projects import Project, complaints, destination_of
from seatrial.engines.argocd.rollout import rollout_of
from seatrial.engines.argocd.sets import AppSet
from seatrial.engines.script import DescribedObject
from seatrial.model.release import Release
from seatrial.model.resource import Body, Ref, dig, listed, metadata, name_of

DELETING = ("sync", "create-delete")
"""The values of `applicationsSync` that allow a set to delete Applications."""


def app_of(release: Release) -> App:
    """The default Application for a release, if the user gives none."""
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
    """The Application of a manifest, with its rendered sources."""
    policy = dig(application, "spec", "syncPolicy") or {}
    written = policy.get("automated")
    off = dig(written, "enabled") is False and versions.has(version, "automated.enabled")
    on = isinstance(written, dict) and not off
    automated: Body = written if isinstance(written, dict) and on else {}
    targets = targets_of(release) if release else ()
    written_operation, status = application.get("operation"), application.get("status") or {}
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
        operation=written_operation if isinstance(written_operation, dict) else None,
        forgets="operationState" in status and status["operationState"] is None,
        assumed=assumed,
        error=error,
    )


def in_project(app: App, application: Body, project: Project) -> App:
    """The Application in its project, with the project's permissions or the reason for its rejection."""
    said = ";".join(sorted(complaints(application, project)))  # `SetConditions` sorts them.
    return replace(app, project=project, error=said or app.error)


def declared_set(ref: Ref, body: Body, made: tuple[Body, ...], settings: Settings) -> AppSet:
    """The ApplicationSet of a manifest, with the Applications that it generates."""
    said = dig(body, "spec", "syncPolicy", "applicationsSync")
    return AppSet(
        ref,
        made,
        rollout_of(body, made) if settings.progressive_syncs is not False else None,
        updates=said not in ("create-only", "create-delete"),
        deletes=said in (None, "", *DELETING),
    )


def revision_of(targets: tuple[DescribedObject, ...]) -> str:
    """A commit-like hash of the objects of a source."""
    return hashlib.sha1(msgspec.json.encode([target.body for target in targets], order="sorted")).hexdigest()


def targets_of(release: Release) -> tuple[DescribedObject, ...]:
    return tuple(DescribedObject(resource.ref, resource.body) for resource in release.resources)
