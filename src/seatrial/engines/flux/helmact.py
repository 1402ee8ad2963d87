"""One Helm action for a HelmRelease: CRDs by their policy, Helm itself, waiting, tests.

Upstream: internal/action/crds.go, internal/reconcile/install.go, upgrade.go and test.go of helm-controller 1.6. Helm is
the real one. Its records differ in one point: if Flux's own wait times out, they say `deployed`, not `failed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from seatrial.engines import Stuck
from seatrial.engines.act import HelmAct
from seatrial.engines.flux.applying import about
from seatrial.engines.flux.kustomization import Cause
from seatrial.engines.flux.objects import FluxMemory, HelmRelease, ReleasePolicy
from seatrial.engines.flux.postrendering import origin_labels
from seatrial.engines.flux.storage import is_server_side, newest
from seatrial.engines.flux.waiting import Waited, timed_out, wait_for
from seatrial.engines.script import Answer, Part
from seatrial.helm import hooks
from seatrial.helm.hooks import ERROR_PREFIX
from seatrial.model import lazy_re
from seatrial.model.refusal import NO_FAILURE, Failure, Fault, joined
from seatrial.model.resource import Ref, labels_of, with_metadata

MANAGER = "helm-controller"
SERVER_SIDE = "--force-conflicts"
"""helm-controller lets the server merge by force."""
CLIENT_SIDE = "--server-side=false"
REPLACES = "--force-replace"
_NOT_READY = lazy_re.compile(r"resource (?P<ref>\S+) not ready\. status: (?P<status>\w+), message: .*", re.S)
"""Helm's error about a wait; helm-controller waits itself and reports another one."""


class ActionEnd(Struct, frozen=True):
    """How one action ended; an empty message is success."""

    words: str = ""
    stuck: Stuck | None = None
    revision: int = 0
    is_stored: bool = True
    """Whether Helm recorded a revision: otherwise it is not counted or remediated, but retried."""
    cause: Cause = ""
    failure: Failure = NO_FAILURE
    failed: str = ""
    """The action of Helm that failed."""


def act(release: HelmRelease, action: str, policy: ReleasePolicy, memory: FluxMemory) -> Part[ActionEnd]:
    """Install or upgrade, wait, and test."""
    begins = f"Helm {action} failed for release {release.target_namespace}/{release.release_name} with chart "
    failed = f"{begins}{release.chart_name}: "
    crds = yield from _definitions(release, policy.crds, memory)
    if crds.words:
        words = f"{failed}failed to apply CustomResourceDefinitions: {crds.words}"
        return ActionEnd(words, is_stored=False, failure=crds.failure, failed=action)
    if release.rendered_error:
        return ActionEnd(f"{failed}{release.rendered_error}", is_stored=False, failed=action)
    before = yield from revision_of(release)
    # Where hooks come after the waiting, Helm waits itself. Else Flux is heard waiting, and others go on meanwhile.
    own = ("--wait", *(("--wait-for-jobs",) if policy.waits_for_jobs else ())) if _helm_waits(release, policy) else ()
    flags = ("--skip-crds", *apply_flags(policy, server_side=(yield from is_server_side(release, policy))), *own)
    answer = yield helm(release, action, flags, chart=release.chart, values=release.values, archive=release.archive)
    revision = yield from revision_of(release)
    if answer.message:
        said = yield from said_of(answer, release, action, memory)
        unready = any(fault.of == "not-ready" for fault in said.failure.faults)
        cause: Cause = "waited" if said.stuck or unready else "refused"
        stored = revision != before
        return ActionEnd(f"{failed}{said.words}", said.stuck, revision, stored, cause, said.failure, action)
    if policy.waits and not own:
        refs = release.refs if policy.waits_for_jobs else [ref for ref in release.refs if ref.kind != "Job"]
        waited = yield from wait_for(refs, memory, release.timeout, release.health)
        if waited.words:
            words = f"{failed}{waited.words.strip()}"
            return ActionEnd(words, waited.stuck, revision, cause="waited", failure=waited.failure, failed=action)
    if release.tests:
        tested = yield helm(release, "test")
        if tested.message:
            said = yield from said_of(tested, release, "test", memory)
            name = f"{full_name(release, revision)} with chart {release.chart_name}"
            words = f"Helm test failed for release {name}: {said.words}"
            return ActionEnd(words, said.stuck, revision, cause="tested", failure=said.failure, failed="test")
    return ActionEnd(revision=revision)


def said_of(answer: Answer, release: HelmRelease, action: str, memory: FluxMemory) -> Part[Waited]:
    """Helm's error as helm-controller reports it, which waits itself and never says what is missing."""
    if answer.stuck is None or answer.stuck.passed_seconds:
        said = _NOT_READY.sub(r"failed early due to stalled resources: [\g<ref> status: '\g<status>']", answer.message)
        return Waited(said.strip(), answer.stuck, answer.failure)
    run = {target.ref: hooks.events_of(target.body) for target in release.hooks}
    events = {event for ref in answer.stuck.waits_for for event in run.get(ref, ())}
    event = next((event for event in hooks.EVENTS_OF[action] if event in events), "")
    waited = yield from timed_out(answer.stuck.waits_for, memory, release.health)
    incomplete = Failure(faults=(Fault("uninstall-incomplete"),) if event == "post-delete" else ())
    words = f"{ERROR_PREFIX.get(event, '')}{waited.words}"
    return Waited(words, answer.stuck, joined(waited.failure, incomplete))


def helm(release: HelmRelease, action: str, flags: tuple[str, ...] = (), **more: Any) -> HelmAct:
    """An action of the Helm in helm-controller (`kube.ManagedFieldsManager` in main.go)."""
    whose = release.release_name, release.target_namespace
    return HelmAct(action, *whose, flags=flags, manager=MANAGER, adds=release.adds, **more)


def full_name(release: HelmRelease, revision: int) -> str:
    """`default/shop.v2`"""
    return f"{release.target_namespace}/{release.release_name}.v{revision}"


def revision_of(release: HelmRelease) -> Part[int]:
    """The newest recorded revision; 0 if there is none."""
    record = yield from newest(release)
    return record.revision if record else 0


def apply_flags(policy: ReleasePolicy, *, server_side: bool) -> Iterator[str]:
    """The Helm flags: adopt existing objects, force only without server-side apply."""
    yield SERVER_SIDE if server_side else CLIENT_SIDE
    if policy.takes_ownership:
        yield "--take-ownership"
    yield from (flag for flag in policy.flags if flag != REPLACES or not server_side)


def _helm_waits(release: HelmRelease, policy: ReleasePolicy) -> bool:
    return policy.waits and release.runs_post_hooks


def _definitions(release: HelmRelease, policy: str, memory: FluxMemory) -> Part[Waited]:
    """The CRDs of crds/: created if missing, updated, or skipped, by policy."""
    if policy == "Skip":
        return Waited()
    made: list[Ref] = []
    for crd in release.crds:
        live = yield about(crd, "get")
        if live.code == 200 and policy != "CreateReplace":
            continue
        body = with_metadata(crd.body, labels={**labels_of(crd.body), **origin_labels(release.name, release.namespace)})
        answer = yield about(crd, "apply", body, manager=MANAGER)
        if answer.message:
            return Waited(answer.message, failure=answer.failure)
        made.append(crd.ref)
    return (yield from wait_for(made, memory, release.timeout))
