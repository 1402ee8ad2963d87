"""One HelmRelease: which action it needs, how a failure is remediated, and when retries end.

Upstream: internal/reconcile/atomic_release.go, state.go, rollback_remediation.go and uninstall_remediation.go of
helm-controller 1.6.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from seatrial.engines.flux.applying import about
from seatrial.engines.flux.dependencies import TERMINAL
from seatrial.engines.flux.drift import detect
from seatrial.engines.flux.helmact import ActionEnd, act, apply_flags, full_name, helm, revision_of
from seatrial.engines.flux.kustomization import Attempt, Cause
from seatrial.engines.flux.objects import FluxMemory, Good, HelmRelease, ReleaseAttempts, ReleasePolicy
from seatrial.engines.flux.storage import borne_out, is_server_side
from seatrial.engines.flux.uninstalling import UNINSTALLED, uninstall
from seatrial.engines.flux.waiting import statuses_of
from seatrial.engines.script import Part, Say, Wait
from seatrial.model.refusal import NO_FAILURE, Failure, Fault, joined

TRIES_MAX = 5
"""Limit for releases that Flux retries forever."""
ACTS_MAX = 1_000
NO_TARGET = (
    "MissingRollbackTarget: Failed to perform remediation: missing target release for rollback: cannot remediate "
    "failed release"
)


def reconcile(release: HelmRelease, memory: FluxMemory) -> Part[Attempt]:
    """Install or upgrade a release, as often as its policy says."""
    if release.invalid:
        return Attempt(f"{TERMINAL}: {release.invalid}", is_final=True)
    if release.error:
        return Attempt(release.error)
    state = yield from borne_out(_known(release, memory), release)
    if state.is_in_sync and release.drift != "disabled":
        yield from detect(release, (yield from revision_of(release)))
    attempt = Attempt(state.stalled, is_final=bool(state.stalled), failure=_stalled(state))
    for _ in range(ACTS_MAX):
        if state.is_in_sync or state.stalled:
            break
        action = "upgrade" if state.is_there else "install"
        policy = release.upgrade if state.is_there else release.install
        state = replace(state, action=action, remediated="")
        if policy.is_exhausted(state.failures()):
            state = replace(state, stalled=_exhausted(state))
            break
        done = yield from act(release, action, policy, memory)
        attempt = Attempt(
            done.words, done.stuck, release.timeout, cause=done.cause, failure=done.failure, failed=done.failed
        )
        state = yield from _after(done, state, release, policy, memory)
        if done.words and (not done.is_stored or (policy.is_endless and state.failures() >= TRIES_MAX)):
            break
    memory.deployed[release.ref] = state
    if state.stalled and attempt.words != state.stalled:
        failure = joined(attempt.failure, _stalled(state))
        words = f"{state.stalled}. {state.remediated or attempt.words}"
        return replace(attempt, words=words, is_final=True, failure=failure)
    if not state.is_in_sync or not state.failed_tests:
        return Attempt() if state.is_in_sync else attempt
    return Attempt(state.failed_tests, is_final=True, failure=state.test_failure, failed="test")


def is_over(release: HelmRelease, cause: Cause, memory: FluxMemory) -> Part[bool]:
    """Whether the cause of the failure is gone now. Probes with dry runs that leave no trace in the timeline."""
    known = memory.deployed.get(release.ref)
    if cause == "waited" and known and known.action == "upgrade" and release.upgrade.remediates_last:
        return False  # What is ready now is what it was rolled back to.
    if cause == "waited":
        plain = yield from statuses_of(release.refs, memory, release.health)
        run = yield from statuses_of((target.ref for target in release.hooks), memory, ())
        ready = all(one.status == "Current" for one in plain.values())
        return ready and all(one.status in ("Current", "NotFound") for one in run.values())
    if cause != "refused":
        return False
    for target in (*release.targets, *release.hooks):
        answer = yield about(target, "apply", target.body, dry_run=True, unheard=True)
        if answer.message or not answer.served:
            return False
    return True


def _known(release: HelmRelease, memory: FluxMemory) -> ReleaseAttempts:
    """What is remembered; failures count only for the same chart and values."""
    said = [release.chart_name, release.values, [target.body for target in release.targets], release.adds]
    config = msgspec.json.encode(said, order="sorted")
    known = memory.deployed.get(release.ref) or ReleaseAttempts()
    return known if known.config == config else ReleaseAttempts(config, is_there=known.is_there, good=known.good)


def _after(
    done: ActionEnd, state: ReleaseAttempts, release: HelmRelease, policy: ReleasePolicy, memory: FluxMemory
) -> Part[ReleaseAttempts]:
    """The state after an action: it succeeded, or it failed, counts, and is remediated."""
    fine = Good(done.revision, release.chart_name)
    if not done.words:
        return replace(state, is_there=True, is_in_sync=True, good=fine)
    if done.cause == "tested" and policy.ignores_tests:
        yield Say(release.ref, done.words, failure=done.failure)
        complaint = done.words if release.needs_tests else ""
        state = replace(state, is_there=True, is_in_sync=True, good=fine)
        return replace(state, failed_tests=complaint, test_failure=done.failure)
    if not done.is_stored:
        return state
    state = _counted(replace(state, is_there=True))
    if policy.retries_on_failure:
        yield from _paused(release, done)
        return state
    is_last = policy.is_exhausted(state.failures())
    if is_last and not policy.remediates_last:
        return replace(state, stalled=_exhausted(state))
    yield from _paused(release, done)
    if state.action == "install" or policy.strategy == "uninstall":
        state = yield from _uninstalled(done, state, release, memory)
    elif state.good is None:
        return replace(state, stalled=NO_TARGET)
    else:
        state = yield from _rolled_back(state, state.good, release)
    # After `strategy: uninstall` Flux installs again, however often the upgrade was tried.
    reinstalls = state.action == "upgrade" and policy.strategy == "uninstall"
    return replace(state, stalled=_exhausted(state)) if is_last and not reinstalls else state


def _paused(release: HelmRelease, done: ActionEnd) -> Part[None]:
    yield Say(release.ref, done.words, failure=done.failure)
    yield Wait(release.refs)


def _counted(state: ReleaseAttempts) -> ReleaseAttempts:
    if state.action == "install":
        return replace(state, install_failures=state.install_failures + 1)
    return replace(state, upgrade_failures=state.upgrade_failures + 1)


def _uninstalled(
    done: ActionEnd, state: ReleaseAttempts, release: HelmRelease, memory: FluxMemory
) -> Part[ReleaseAttempts]:
    waited = yield from uninstall(release, memory)
    how = f"failed: {waited.words}" if waited.words else "succeeded"
    name = f"{full_name(release, done.revision)} with chart {release.chart_name}"
    yield Say(release.ref, f"Helm uninstall remediation for release {name} {how}")
    stays = waited.words and not waited.words.startswith(UNINSTALLED)
    return state if stays else replace(state, is_there=False, good=None)


def _rolled_back(state: ReleaseAttempts, good: Good, release: HelmRelease) -> Part[ReleaseAttempts]:
    server_side = yield from is_server_side(release, release.rollback, back=1)
    flags = apply_flags(replace(release.rollback, takes_ownership=False), server_side=server_side)
    answer = yield helm(release, "rollback", tuple(flags))
    how = f"failed: {answer.message.strip()}" if answer.message else "succeeded"
    name = f"{full_name(release, good.revision)} with chart {good.chart}"
    words = f"Helm rollback to previous release {name} {how}"
    yield Say(release.ref, words)
    return replace(state, good=Good((yield from revision_of(release)), good.chart), remediated=words)


def _stalled(state: ReleaseAttempts) -> Failure:
    exhausted = state.stalled and state.stalled != NO_TARGET
    return Failure(faults=(Fault("retries-exceeded"),)) if exhausted else NO_FAILURE


def _exhausted(state: ReleaseAttempts) -> str:
    return f"RetriesExceeded: Failed to {state.action} after {state.failures()} attempt(s)"
