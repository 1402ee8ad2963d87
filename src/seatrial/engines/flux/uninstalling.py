"""How helm-controller uninstalls: when a HelmRelease is deleted, and as remediation.

Upstream: internal/action/uninstall.go of helm-controller 1.6, and `WaitForTermination` of fluxcd/pkg/ssa.
"""

from __future__ import annotations

from seatrial.engines.flux.helmact import full_name, helm, revision_of, said_of
from seatrial.engines.flux.kustomization import Attempt
from seatrial.engines.flux.objects import FluxMemory, HelmRelease
from seatrial.engines.flux.waiting import Waited
from seatrial.engines.script import Part, Survey, Wait
from seatrial.model.refusal import Failure, Fault
from seatrial.model.resource import metadata, ref_of

UNINSTALLED = "uninstallation completed with 1 error(s): "
"""Helm's error when everything was deleted, including its records, but something went wrong."""


def leave(release: HelmRelease, memory: FluxMemory) -> Part[Attempt]:
    """What the deletion of a HelmRelease does."""
    memory.ready.pop(release.ref, None)
    known = memory.deployed.get(release.ref)
    if known is None or not known.is_there or release.suspended:
        memory.deployed.pop(release.ref, None)
        return Attempt()
    revision = yield from revision_of(release)
    waited = yield from uninstall(release, memory, "--ignore-not-found")
    memory.deployed.pop(release.ref, None)
    if not waited.words:
        return Attempt()
    name = f"{full_name(release, revision)} with chart {release.chart_name}"
    words = f"Helm uninstall failed for release {name}: {waited.words}"
    return Attempt(words, waited.stuck, release.timeout, failure=waited.failure, failed="uninstall")


def uninstall(release: HelmRelease, memory: FluxMemory, *flags: str) -> Part[Waited]:
    """Run helm uninstall, and wait until everything is deleted, unless waiting is disabled."""
    answer = yield helm(release, "uninstall", (*flags, *release.uninstall.flags))
    waited = yield from said_of(answer, release, "uninstall", memory)
    if not waited.words and release.uninstall.waits:
        waited = yield from _until_gone(release)
    return waited


def _until_gone(release: HelmRelease) -> Part[Waited]:
    """Wait for what was deleted, one after another."""
    while True:
        found = yield Survey()
        going = {ref_of(body) for body in found.body["items"] if metadata(body).get("deletionTimestamp")}
        left = tuple(ref for ref in release.refs if ref in going)
        if not left:
            return Waited()
        answer = yield Wait(left)
        if answer.stuck is not None:
            words = f"{left[0]} termination timeout: context deadline exceeded"
            failure = Failure(faults=(Fault("uninstall-incomplete", left[0]),))
            return Waited(f"{UNINSTALLED}{words}", answer.stuck, failure)
