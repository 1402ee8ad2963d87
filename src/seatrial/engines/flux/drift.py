"""Drift of a HelmRelease: what the cluster has otherwise than the chart says, and what is done about it.

Upstream: internal/action/diff.go and internal/reconcile/correct_cluster_drift.go of helm-controller 1.6. Hooks are not
looked at. `warn` only speaks of it, and so does nothing that a rehearsal could show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from seatrial.engines.flux.applying import about, said_by
from seatrial.engines.flux.objects import HelmRelease, Ignored, Target
from seatrial.engines.script import Part, Say
from seatrial.resource import Body, annotations_of, labels_of, metadata

DISABLED = "helm.toolkit.fluxcd.io/driftDetection"
MANAGER = "helm"
"""Helm's own manager: what it has written is taken for one and the same."""


def correct(release: HelmRelease) -> Part[None]:
    """Put back what was changed or deleted by others."""
    corrected = []
    for target in release.targets:
        if "disabled" in (annotations_of(target.body).get(DISABLED), labels_of(target.body).get(DISABLED)):
            continue
        sent = _owned(target.body, release)
        live = yield about(target, "get")
        tried = yield about(target, "apply", sent, dry_run=True, manager=MANAGER)
        paths = tuple(_paths(target, release.drift_ignored))
        if tried.message or (live.code == 200 and _without(live.body, paths) == _without(tried.body, paths)):
            continue
        yield about(target, "apply", sent, manager=MANAGER)
        corrected.append(f"{target.ref} {'changed' if live.code == 200 else 'removed'}")
    if corrected:
        name = f"{release.target_namespace}/{release.release_name}"
        yield Say(release.ref, f"Cluster state of release {name} has been corrected:\n" + "\n".join(corrected))


def _owned(body: Body, release: HelmRelease) -> Body:
    """An object with the metadata that Helm writes into it."""
    owner = {
        "meta.helm.sh/release-name": release.release_name,
        "meta.helm.sh/release-namespace": release.target_namespace,
    }
    labels = {**labels_of(body), "app.kubernetes.io/managed-by": "Helm"}
    annotations = {**annotations_of(body), **owner}
    return {**body, "metadata": {**metadata(body), "labels": labels, "annotations": annotations}}


def _paths(target: Target, ignored: tuple[Ignored, ...]) -> Iterator[str]:
    for rule in ignored:
        kind, name = (re.fullmatch(said or ".*", real) for said, real in rule.matches(target.ref))
        if kind and name:
            yield from rule.paths


def _without(body: Body, pointers: tuple[str, ...]) -> Body:
    found = said_by(body)
    for pointer in pointers:
        found = _cut(found, [part.replace("~1", "/").replace("~0", "~") for part in pointer.strip("/").split("/")])
    return found


def _cut(value: Any, path: list[str]) -> Any:
    """The value without what the path leads to."""
    if isinstance(value, list) and path[0].isdigit() and int(path[0]) < len(value):
        index = int(path[0])
        inner = [] if len(path) == 1 else [_cut(value[index], path[1:])]
        return [*value[:index], *inner, *value[index + 1 :]]
    if not isinstance(value, dict) or path[0] not in value:
        return value
    rest = {key: found for key, found in value.items() if key != path[0]}
    return rest if len(path) == 1 else {**rest, path[0]: _cut(value[path[0]], path[1:])}
