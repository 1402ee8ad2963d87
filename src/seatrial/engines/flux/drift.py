"""Drift of a HelmRelease: how the cluster differs from the chart, and what Flux does about it.

Upstream: internal/action/diff.go and internal/reconcile/correct_cluster_drift.go of helm-controller 1.6. Hooks are not
looked at. `warn` only speaks of it.
"""

from __future__ import annotations

from seatrial.engines.flux.applying import about, said_by
from seatrial.engines.flux.helmact import full_name
from seatrial.engines.flux.ignoring import as_live, paths
from seatrial.engines.flux.objects import HelmRelease
from seatrial.engines.script import DescribedObject, Part, Say
from seatrial.helm.ownership import owned_by
from seatrial.model.resource import Body, annotations_of, labels_of

DISABLED = "helm.toolkit.fluxcd.io/driftDetection"
MANAGER = "helm"
"""Helm's own manager: what it has written is taken for one and the same."""


def detect(release: HelmRelease, revision: int) -> Part[None]:
    """Report what others changed or deleted, and correct it if drift correction is enabled."""
    drifted = []
    for target in release.targets:
        if "disabled" in (annotations_of(target.body).get(DISABLED), labels_of(target.body).get(DISABLED)):
            continue
        ignored = paths(target, release.drift_ignored)
        live = yield about(target, "get")
        if "" in ignored and live.code == 200:
            continue
        sent = as_live(owned_by(target.body, release.release_name, release.target_namespace), live.body, ignored)
        tried = yield about(target, "apply", sent, dry_run=True, manager=MANAGER)
        if tried.message or (live.code == 200 and said_by(live.body) == said_by(tried.body)):
            continue
        drifted.append((target, sent, live.code == 200))
    if not drifted:
        return
    name = full_name(release, revision)
    summary = "\n".join(f"{target.ref} {'changed' if is_there else 'removed'}" for target, _, is_there in drifted)
    # Flux counts additions, changes and removals of each, too.
    yield Say(release.ref, f"Cluster state of release {name} has drifted from the desired state:\n{summary}")
    if release.drift == "enabled":
        yield from _corrected(release, name, drifted)


def _corrected(release: HelmRelease, name: str, drifted: list[tuple[DescribedObject, Body, bool]]) -> Part[None]:
    done, failed = [], []
    for target, sent, is_there in drifted:
        answer = yield about(target, "apply", sent, manager=MANAGER)
        if answer.message:
            failed.append(f"{target.ref} {'patch' if is_there else 'creation'} failure: {answer.message}")
        else:
            done.append(f"{target.ref} {'configured' if is_there else 'created'}")
    if failed:
        partially = "partially " if done else ""
        yield Say(release.ref, f"Failed to {partially}correct cluster state of release {name}:\n" + "\n".join(failed))
    elif done:
        yield Say(release.ref, f"Cluster state of release {name} has been corrected:\n" + "\n".join(done))
