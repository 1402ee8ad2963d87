"""Sentences about hooks that could not run: what they lack, and what the cluster and Helm report."""

from __future__ import annotations

from seatrial.evidence.flux.reconciliations import FLUX, failed_act, failed_release
from seatrial.evidence.hooks.runs import Lack, done_by_helm
from seatrial.evidence.moment import Moment, found
from seatrial.helm.hooks import ERROR_PREFIX
from seatrial.kinds import Need
from seatrial.kinds.core import missing
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Event, StepResult
from seatrial.phrases.objects import HOW
from seatrial.phrases.outcome import helm_says

HOOKS_DO = {**HOW, "serviceAccount": "runs as", "priorityClassName": "asks for", "image": "runs"}
TIMEOUT_SECONDS = 300
"""Helm's default --timeout."""


def hook_lacks(rule: Rule, moment: Moment, lack: Lack, why: str, details: tuple[str, ...]) -> Finding:
    """A finding of a hook that cannot run without an object of its own release."""
    assert lack.brought is not None
    return found(
        rule,
        moment,
        objects=[lack.hook.ref, lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, {why}",
        details=details,
        places=[lack.hook.place(*lack.need.field), lack.brought.place("metadata", "name")],
        evidence=evidence_of(moment, lack),
        confirm=look_at(lack),
    )


def said_of(moment: Moment, ref: Ref, key: str = "") -> Event | None:
    """The last message of the step about a missing object, or about a key of it."""
    said = [e for e in moment.events() if e.effect == "said" and ref in e.missing and e.key == key]
    said = [event for event in said if event.actor != FLUX]
    return said[-1] if said else None


def says(moment: Moment, ref: Ref) -> str:
    """`Pod/default/web-1 reports: "..."`, about a missing object."""
    said = said_of(moment, ref)
    return f'{said.object} reports: "{said.message}".' if said else ""


def ends_sentence(moment: Moment, lack: Lack) -> str:
    """What users see: the pod's message while Helm waits, and Helm's error when it gives up."""
    ended, ref = moment.ended, lack.hook.ref
    if not lack.hung:
        return helm_says(ended, ref)
    said = said_of(moment, lack.need.object, lack.key)
    cluster = f'While Helm waits, {said.object} reports: "{said.message}". ' if said else _would_say(lack)
    if failed_release(ended, ref):
        return f"{cluster}{helm_says(ended, ref)}"
    deadline = dig(lack.hook.body, "spec", "activeDeadlineSeconds")
    before = ERROR_PREFIX.get(lack.event, "")
    if isinstance(deadline, int) and deadline < TIMEOUT_SECONDS:
        words = f"{before}resource {ref} not ready. status: Failed, message: Job Failed. failed: 0/1"
        return f'{cluster}After its activeDeadlineSeconds ({deadline}) Helm fails with "{words}".'
    if ref.kind != "Job":
        return f"{cluster}Helm gives up after {_deadline(ended)} (default 5m0s)."
    return f"{cluster}{hook_timeout(lack.hook, lack.event, ended)}"


def hook_timeout(hook: Resource, event: str, ended: StepResult) -> str:
    """Helm's error about a hook Job that it waited for."""
    if failed_release(ended, hook.ref):
        return helm_says(ended, hook.ref)
    before = ERROR_PREFIX.get(event, "")
    if ended.reconciled:
        return _flux_times_out(before, hook.ref)
    words = f"{before}resource {hook.ref} not ready. status: InProgress, message: Job in progress"
    return (
        f'After --timeout (default 5m0s) Helm reports only "{words} context deadline exceeded", and Helm 3 '
        f'"{before}timed out waiting for the condition".'
    )


def wait_timeout(workload: Resource, ended: StepResult) -> str:
    """Helm's error about a workload it waited for; before --timeout if the workload's own deadline passes."""
    if failed_release(ended, workload.ref):
        return helm_says(ended, workload.ref)
    if ended.outcome == "failed":
        return f'Helm fails with "{ended.error.strip()}", Helm 3 after --timeout with "context deadline exceeded".'
    if ended.reconciled:
        return _flux_times_out("", workload.ref)
    wanted = dig(workload.body, "spec", "replicas") or 1
    counts = f", message: Available: 0/{wanted}" if workload.ref.kind == "Deployment" else " ..."
    words = f"resource {workload.ref} not ready. status: InProgress{counts} context deadline exceeded"
    return f'After --timeout Helm fails with "{words}", Helm 3 with "context deadline exceeded".'


def _deadline(ended: StepResult) -> str:
    return "the timeout of the HelmRelease" if ended.reconciled else "--timeout"


def _flux_times_out(before: str, ref: Ref) -> str:
    """The error of helm-controller, which does the waiting under Flux."""
    words = f"{before}timeout waiting for: [{ref} status: 'InProgress']"
    return f'After the timeout of the HelmRelease (default 5m0s) Flux reports only "{words}".'


def _would_say(lack: Lack) -> str:
    words = missing.missing_error(lack.hook.body, lack.need, lack.key)
    return f'Once nothing else is missing, its pod reports: "{words}". ' if words else ""


def look_at(lack: Lack) -> str:
    """The command that shows the hook's events while Helm waits."""
    ref = lack.hook.ref
    where = f" -n {ref.namespace}" if ref.namespace else ""
    named = f"job {ref.name}" if lack.need.stage == "admit" else f"pod -l job-name={ref.name}"
    return (
        f"kubectl describe {named if ref.kind == 'Job' else f'pod {ref.name}'}{where}  # while Helm waits: its events"
    )


def hook_needs(lack: Lack) -> str:
    """`hook Job/default/migrate runs as ServiceAccount/default/app`"""
    key = f"key {lack.key} of " if lack.key else ""
    return f"hook {lack.hook.ref} {how(lack.need)} {key}{lack.need.object}"


def absent(moment: Moment, lack: Lack) -> str:
    """Why the hook of an uninstall does not find what it needs, as a relative clause."""
    match lack.why:
        case "regular":
            if lack.event == "post-delete":
                return "which is deleted with the release"
            events = moment.rehearsal.of_object(lack.need.object)
            existed = any(event.effect in ("created", "deleted") for event in events)
            return "which no longer exists" if existed else "which was never created"
        case "later":
            return "a hook that Helm runs later"
        case _:
            return "a hook not run on uninstall"


def evidence_of(moment: Moment, lack: Lack) -> list[Event]:
    """The events: Helm creates the hook, and the message about what it lacks."""
    writes = [e for e in done_by_helm(moment, lack.hook.ref) if e.verb != "delete"]
    said = said_of(moment, lack.need.object, lack.key)
    return [*writes[-1:], *([said] if said else [])]


def ends(moment: Moment, ref: Ref | None = None) -> str:
    """`helm upgrade hangs`, `helm install --wait fails`, `the install of HelmRelease/shop/shop fails`"""
    ended = moment.ended
    if one := failed_release(ended, ref):
        return f"the {failed_act(one)} of {one.object} fails"
    return f"{' '.join(('helm', ended.action, *ended.flags))} {_ENDS[ended.outcome]}"


_ENDS = {"hung": "hangs", "failed": "fails", "ok": "succeeds"}


def how(need: Need) -> str:
    """How a hook uses what it needs: `mounts`, `runs as`."""
    return next((HOOKS_DO[part] for part in need.field if isinstance(part, str) and part in HOOKS_DO), "needs")
