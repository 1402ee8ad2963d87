"""One HelmRelease: definitions by their policy, Helm itself, waiting, remedies, and when no more is tried.

Upstream: internal/reconcile/atomic_release.go, install.go and upgrade.go, and internal/action/crds.go of
helm-controller 1.6. Helm is the real one. Its records differ in one thing: where Flux is heard waiting and waits in
vain, they say `deployed` and not `failed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from seatrial import hooks
from seatrial.engines.flux.applying import about
from seatrial.engines.flux.dependencies import TERMINAL
from seatrial.engines.flux.drift import correct
from seatrial.engines.flux.kustomization import Attempt
from seatrial.engines.flux.objects import Deployed, HelmRelease, Memory, Policy
from seatrial.engines.flux.waiting import Waited, in_vain, statuses_of, wait_for
from seatrial.engines.script import Answer, Helm, Part, Say, Survey, Wait
from seatrial.resource import Ref, labels_of, metadata, ref_of

TRIES_MAX = 4
"""Of those that are tried again for ever."""
SERVER_SIDE = "--force-conflicts"
"""helm-controller lets the server merge by force."""
CLIENT_SIDE = "--server-side=false"
REPLACES = "--force-replace"
HELM_SAYS = {
    "pre-install": "failed pre-install: ",
    "post-install": "failed post-install: ",
    "pre-upgrade": "pre-upgrade hooks failed: ",
    "post-upgrade": "post-upgrade hooks failed: ",
    "post-delete": "uninstallation completed with 1 error(s): ",
}
"""What Helm puts before the error of a hook."""
RECORD = "helm.sh/release.v1"
_NOT_READY = re.compile(r"resource (?P<ref>\S+) not ready\. status: (?P<status>\w+), message: .*", re.S)
"""What Helm says of a wait; helm-controller waits itself, and says it otherwise."""


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
        state = Deployed(config, action, state.failures + 1, is_there=True, waited=attempt.waited)
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


def uninstall(release: HelmRelease, memory: Memory) -> Part[Attempt]:
    """What the deletion of a HelmRelease does. It waits until all is gone, unless it is told not to."""
    memory.ready.pop(release.ref, None)
    known = memory.deployed.pop(release.ref, None)
    if known is None or not known.is_there or release.suspended:
        return Attempt()
    revision = yield from _revision(release)
    answer = yield Helm("uninstall", *_whose(release), flags=("--ignore-not-found", *release.uninstall.flags))
    waited = yield from _said_of(answer, release, "uninstall", memory)
    if not waited.words and release.uninstall.waits:
        waited = yield from _until_gone(release)
    if not waited.words:
        return Attempt()
    name = f"{release.target_namespace}/{release.release_name}.v{revision}"
    words = f"Helm uninstall failed for release {name} with chart {release.chart_name}: {waited.words}"
    return Attempt(words, waited.stuck, release.timeout)


def would_succeed(release: HelmRelease, memory: Memory) -> Part[bool]:
    """Whether what stopped a release is over: the API would take every object now, and what was waited for is ready.

    Nothing is changed by asking.
    """
    known = memory.deployed.get(release.ref)
    if known and known.waited:
        plain = yield from statuses_of(release.refs, memory, release.health)
        run = yield from statuses_of((target.ref for target in release.hooks), memory, ())
        ready = all(one.status == "Current" for one in plain.values())
        return ready and all(one.status in ("Current", "NotFound") for one in run.values())
    for target in (*release.targets, *release.hooks):
        answer = yield about(target, "apply", target.body, dry_run=True)
        if answer.message or not answer.served:
            return False
    return True


def exhausted(state: Deployed) -> str:
    return f"Failed to {state.action} after {state.failures} attempt(s)"


def _given_up(state: Deployed, attempt: Attempt) -> Attempt:
    """Stalled with the reason RetriesExceeded, beside what Helm said last."""
    words = f"RetriesExceeded: {exhausted(state)}. {attempt.words}"
    return msgspec.structs.replace(attempt, words=words, is_final=True)


def _tried(release: HelmRelease, action: str, policy: Policy, memory: Memory) -> Part[Attempt]:
    """One act of Helm's with all that goes with it."""
    words = yield from _definitions(release, policy.crds, memory)
    if words:
        return _failed(release, action, f"failed to apply CustomResourceDefinitions: {words}")
    # Where hooks come after the waiting, Helm waits itself. Else Flux is heard waiting, and others go on meanwhile.
    own = ("--wait", *(("--wait-for-jobs",) if policy.waits_for_jobs else ())) if _helm_waits(release, policy) else ()
    answer = yield Helm(action, *_whose(release), release.chart, release.values, (*_flags(policy), *own))
    if answer.message:
        waited = yield from _said_of(answer, release, action, memory)
        return _failed(release, action, waited.words, waited)
    if policy.waits and not own:
        refs = release.refs if policy.waits_for_jobs else [ref for ref in release.refs if ref.kind != "Job"]
        waited = yield from wait_for(refs, memory, release.timeout, release.health)
        if waited.words:
            return _failed(release, action, waited.words, waited)
    if release.tests:
        tested = yield Helm("test", *_whose(release))
        if tested.message:
            waited = yield from _said_of(tested, release, "test", memory)
            return _failed(release, "test", waited.words, waited)
    return Attempt()


def _flags(policy: Policy) -> Iterator[str]:
    """What Helm is told: to leave definitions to Flux, to adopt what it finds, to replace only where it merges."""
    yield from ("--skip-crds", SERVER_SIDE if policy.server_side else CLIENT_SIDE)
    if policy.takes_ownership:
        yield "--take-ownership"
    yield from (flag for flag in policy.flags if flag != REPLACES or not policy.server_side)


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
    stuck = waited.stuck if waited else None
    return Attempt(said, stuck, release.timeout, waited=stuck is not None or "status: '" in words)


def _said_of(answer: Answer, release: HelmRelease, action: str, memory: Memory) -> Part[Waited]:
    """An error of Helm's as helm-controller has it, which waits in its own way and never says what is missing."""
    if answer.stuck is None or answer.stuck.passed_seconds:
        said = _NOT_READY.sub(r"failed early due to stalled resources: [\g<ref> status: '\g<status>']", answer.message)
        return Waited(said.strip(), answer.stuck)
    run = {target.ref: hooks.events_of(target.body) for target in release.hooks}
    events = {event for ref in answer.stuck.waits_for for event in run.get(ref, ())}
    event = next((event for event in hooks.EVENTS_OF[action] if event in events), "")
    words = yield from in_vain(answer.stuck.waits_for, memory, release.health)
    return Waited(f"{HELM_SAYS.get(event, '')}{words}", answer.stuck)


def _until_gone(release: HelmRelease) -> Part[Waited]:
    """Wait for what was deleted: one after another, as `WaitForTermination` of fluxcd/pkg/ssa does."""
    while True:
        found = yield Survey()
        going = {
            ref_of(body, namespaced=bool(metadata(body).get("namespace")))
            for body in found.body["items"]
            if metadata(body).get("deletionTimestamp")
        }
        left = tuple(ref for ref in release.refs if ref in going)
        if not left:
            return Waited()
        answer = yield Wait(left)
        if answer.stuck is not None:
            words = f"{left[0]} termination timeout: context deadline exceeded"
            return Waited(f"uninstallation completed with 1 error(s): {words}", answer.stuck)


def _revision(release: HelmRelease) -> Part[int]:
    """The newest that Helm has a record of."""
    found = yield Survey()
    records = (body for body in found.body["items"] if body.get("type") == RECORD)
    own = (labels_of(body) for body in records if metadata(body).get("namespace") == release.target_namespace)
    return max((int(labels["version"]) for labels in own if labels.get("name") == release.release_name), default=1)


def _whose(release: HelmRelease) -> tuple[str, str]:
    return release.release_name, release.target_namespace
