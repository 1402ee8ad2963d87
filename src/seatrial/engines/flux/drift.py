"""Drift of a HelmRelease: how the cluster differs from the chart, and what Flux does about it.

Upstream: internal/action/diff.go and internal/reconcile/correct_cluster_drift.go of helm-controller 1.6. Hooks are not
looked at. `warn` only speaks of it.
"""

from __future__ import annotations

from msgspec import Struct

from seatrial.engines.flux.applying import about, said_by
from seatrial.engines.flux.helmact import MANAGER, full_name
from seatrial.engines.flux.ignoring import as_live, paths
from seatrial.engines.flux.normalizing import normalized
from seatrial.engines.flux.objects import HelmRelease
from seatrial.engines.flux.order import in_order
from seatrial.engines.postrendered import with_additions
from seatrial.engines.script import Part, Say
from seatrial.helm.ownership import owned_by
from seatrial.model.resource import Body, Ref, annotations_of, labels_of


class _Drifted(Struct, frozen=True):
    """An object of a release that differs from the chart."""

    ref: Ref
    body: Body
    sent: Body
    patch: Body | None
    """What differs; None if it is missing."""


DISABLED = "helm.toolkit.fluxcd.io/driftDetection"


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
        body = normalized(with_additions(target.body, release.adds))
        sent = as_live(owned_by(body, release.release_name, release.target_namespace), live.body, ignored)
        tried = yield about(target, "apply", sent, dry_run=True, manager=MANAGER)
        if tried.message or (live.code == 200 and said_by(live.body) == said_by(tried.body)):
            continue
        patch = patch_between(said_by(live.body), said_by(tried.body)) if live.code == 200 else None
        drifted.append(_Drifted(target.ref, target.body, sent, patch))
    if not drifted:
        return
    name = full_name(release, revision)
    summary = "\n".join(f"{one.ref} {'removed' if one.patch is None else 'changed'}" for one in drifted)
    # Flux counts additions, changes and removals of each, too.
    yield Say(release.ref, f"Cluster state of release {name} has drifted from the desired state:\n{summary}")
    if release.drift == "enabled":
        yield from _corrected(release, name, drifted)


def _corrected(release: HelmRelease, name: str, drifted: list[_Drifted]) -> Part[None]:
    """Create what is missing, then patch what differs, each in the order of kinds."""
    done, failed = [], []
    for one in sorted(in_order(drifted), key=lambda one: one.patch is not None):
        is_there = one.patch is not None
        if is_there:  # A JSON patch in Flux, with the same result.
            answer = yield about(one, "merge", one.patch, manager=MANAGER, force=False)
        else:
            answer = yield about(one, "create", one.sent, manager=MANAGER, force=False)
        if answer.message:
            failed.append(f"{one.ref} {'patch' if is_there else 'creation'} failure: {answer.message}")
        else:
            done.append(f"{one.ref} {'configured' if is_there else 'created'}")
    if failed:
        partially = "partially " if done else ""
        yield Say(release.ref, f"Failed to {partially}correct cluster state of release {name}:\n" + "\n".join(failed))
    elif done:
        yield Say(release.ref, f"Cluster state of release {name} has been corrected:\n" + "\n".join(done))


def patch_between(before: Body, after: Body) -> Body:
    """The merge patch that makes one object of another."""
    patch: Body = {}
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        patch[key] = patch_between(old, new) if isinstance(old, dict) and isinstance(new, dict) else new
    return patch
