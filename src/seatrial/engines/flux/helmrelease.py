"""One HelmRelease: definitions by their policy, Helm itself, waiting, remedies, and when no more is tried.

Upstream: internal/reconcile/atomic_release.go, install.go and upgrade.go, and internal/action/crds.go of
helm-controller 1.6. Helm is the real one. Its records differ in one thing: where Flux is heard waiting and waits in
vain, they say `deployed` and not `failed`.
"""

from __future__ import annotations

import msgspec

from seatrial.engines.flux.applying import about
from seatrial.engines.flux.dependencies import TERMINAL
from seatrial.engines.flux.drift import correct
from seatrial.engines.flux.kustomization import Attempt
from seatrial.engines.flux.objects import Deployed, HelmRelease, Memory, Policy
from seatrial.engines.flux.waiting import Waited, wait_for
from seatrial.engines.script import Answer, Helm, Part, Say, Wait
from seatrial.resource import Ref

TRIES_MAX = 4
"""Of those that are tried again for ever."""
ALWAYS = ("--take-ownership", "--force-conflicts", "--skip-crds")
"""helm-controller adopts what it finds, lets the server merge by force, and sees to definitions itself."""


def reconcile(release: HelmRelease, memory: Memory) -> Part[Attempt]:
    """Install or upgrade a release, as often as its policy says."""
    if release.invalid:
        return Attempt(f"{TERMINAL}: {release.invalid}", is_final=True)
    if release.error:
        return Attempt(release.error)
    config = msgspec.json.encode(
        [release.chart_name, release.values, [t.body for t in release.targets]], order="sorted"
    )
    known = memory.deployed.get(release.ref)
    if known and known.config == config and not known.failures:
        if release.corrects_drift:
            yield from correct(release)
        return Attempt()
    if known and known.config == config and known.stalled:
        return Attempt(exhausted(known), is_final=True)
    state = known if known and known.config == config else Deployed(config, "", is_there=bool(known and known.is_there))
    while True:
        action = "upgrade" if state.is_there else "install"
        policy = release.upgrade if action == "upgrade" else release.install
        attempt = yield from _tried(release, action, policy, memory)
        if not attempt.words:
            memory.deployed[release.ref] = Deployed(config, action, is_there=True)
            return attempt
        state = Deployed(config, action, state.failures + 1, is_there=True)
        retries = TRIES_MAX if policy.retries < 0 or policy.retries_on_failure else policy.retries
        last = state.failures > retries
        remedied = (not last or policy.remediates_last) and not policy.retries_on_failure
        if remedied:
            state = msgspec.structs.replace(state, is_there=(yield from _remedied(release, action, policy)))
        if last:
            endless = policy.retries < 0 or policy.retries_on_failure
            memory.deployed[release.ref] = msgspec.structs.replace(state, stalled=not endless)
            return attempt if endless else _given_up(state, attempt)
        yield Say(release.ref, attempt.words)
        yield Wait(release.refs)


def uninstall(release: HelmRelease, memory: Memory) -> Part[Answer]:
    """What the deletion of a HelmRelease does."""
    memory.ready.pop(release.ref, None)
    known = memory.deployed.pop(release.ref, None)
    if known is None or not known.is_there or release.suspended:
        return Answer(200)
    return (yield Helm("uninstall", *_whose(release), flags=("--ignore-not-found",)))


def would_succeed(release: HelmRelease) -> Part[bool]:
    """Whether the API would now take every object of a release. Nothing is changed by asking."""
    for target in release.targets:
        answer = yield about(target, "apply", target.body, dry_run=True)
        if answer.message or not answer.served:
            return False
    return True


def exhausted(state: Deployed) -> str:
    return f"Failed to {state.action} after {state.failures} attempt(s)"


def _given_up(state: Deployed, attempt: Attempt) -> Attempt:
    """Stalled with the reason RetriesExceeded, beside what Helm said last."""
    words = f"RetriesExceeded: {exhausted(state)}. {attempt.words}"
    return Attempt(words, attempt.stuck, attempt.timeout, is_final=True)


def _tried(release: HelmRelease, action: str, policy: Policy, memory: Memory) -> Part[Attempt]:
    """One act of Helm's with all that goes with it."""
    words = yield from _definitions(release, policy.crds, memory)
    if words:
        return _failed(release, action, f"failed to apply CustomResourceDefinitions: {words}")
    # Where hooks come after the waiting, Helm waits itself. Else Flux is heard waiting, and others go on meanwhile.
    own = ("--wait", *(("--wait-for-jobs",) if policy.waits_for_jobs else ())) if _helm_waits(release, policy) else ()
    flags = (*ALWAYS, *policy.flags, *own)
    answer = yield Helm(action, *_whose(release), release.chart, release.values, flags)
    if answer.message:
        return _failed(release, action, answer.message, Waited(answer.message, answer.stuck))
    if policy.waits and not own:
        refs = release.refs if policy.waits_for_jobs else [ref for ref in release.refs if ref.kind != "Job"]
        waited = yield from wait_for(refs, memory, release.timeout, release.health)
        if waited.words:
            return _failed(release, action, waited.words, waited)
    if release.tests:
        tested = yield Helm("test", *_whose(release))
        if tested.message:
            return _failed(release, "test", tested.message, Waited(tested.message, tested.stuck))
    return Attempt()


def _helm_waits(release: HelmRelease, policy: Policy) -> bool:
    return policy.waits and release.runs_post_hooks


def _definitions(release: HelmRelease, policy: str, memory: Memory) -> Part[str]:
    """Those of crds/: made where they are not there, or brought up to date, or left alone."""
    if policy == "Skip":
        return ""
    made: list[Ref] = []
    for crd in release.crds:
        live = yield about(crd, "get")
        if live.code == 200 and policy != "CreateReplace":
            continue
        answer = yield about(crd, "apply", crd.body)
        if answer.message:
            return answer.message
        made.append(crd.ref)
    return (yield from wait_for(made, memory, release.timeout)).words


def _remedied(release: HelmRelease, action: str, policy: Policy) -> Part[bool]:
    """Uninstall what was not installed well, roll back what was not upgraded well; whether a release is left."""
    if action == "install" or policy.strategy == "uninstall":
        yield Helm("uninstall", *_whose(release))
        return False
    yield Helm("rollback", *_whose(release))
    return True


def _failed(release: HelmRelease, action: str, words: str, waited: Waited | None = None) -> Attempt:
    namespace, name = release.target_namespace, release.release_name
    said = f"Helm {action} failed for release {namespace}/{name} with chart {release.chart_name}: {words.strip()}"
    return Attempt(said, waited.stuck if waited else None, release.timeout)


def _whose(release: HelmRelease) -> tuple[str, str]:
    return release.release_name, release.target_namespace
