"""A release is left in a pending state, and Helm refuses every upgrade as if an operation were in progress.

## What happens
Helm records what it is about to do (`pending-install`, `pending-upgrade`, `pending-rollback`) and records the outcome
when it is done. A process that is killed in between (a cancelled pipeline, a timeout, a lost runner) records none.
There is no lock and no timeout behind the status: the next upgrade reads it and stops with `another operation
(install/upgrade/rollback) is in progress`, forever.

A rollback whose hook fails also leaves `pending-rollback`: Helm does not record that it failed. A hook that takes
longer than `--timeout`, in contrast, ends an install or upgrade as `failed`, and the next one continues from there.

Flux recovers: helm-controller marks a pending release as failed and continues (`Unlocked Helm release ... in
pending-upgrade state`), even if another Helm is working on it.

## Example
```sh
timeout -s KILL 60 helm upgrade shop ./shop   # its pre-upgrade hook takes two minutes
helm upgrade shop ./shop                      # another operation (install/upgrade/rollback) is in progress
```

## Instead
Give the pipeline a longer timeout than Helm's `--timeout`, and let it stop Helm with SIGTERM: then Helm marks the
release as failed. To recover: `helm rollback` to the last good revision, or `helm uninstall` after a first install, or
delete the Secret of the pending revision.

## Fix safety
`helm rollback` applies the old manifest and is as safe as any rollback. If you delete the Secret, Helm forgets what the
killed operation created; objects that only the pending revision lists are left behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.faults import faults, has_fault
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import Record, last_record
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.phrases.outcome import helm_says

IN_PROGRESS = "another operation (install/upgrade/rollback) is in progress"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for at, record in _locks(moment):
            if record.ref not in seen and not _was_refused(rehearsal, record):
                seen.add(record.ref)
                yield _finding(Moment(rehearsal, case, at), record)


def _locks(moment: Moment) -> Iterator[tuple[int, Record]]:
    """A step that fails because of a pending record, or a step that leaves one if no upgrade follows."""
    ended = moment.ended
    if _is_locked(ended):
        record = last_record(moment.rehearsal, ended.release, ended.namespace, before_step=moment.index)
        if record is not None:
            yield moment.index, record
        return
    record = last_record(moment.rehearsal, ended.release, ended.namespace, before_step=moment.index + 1)
    refused_later = any(map(_is_locked, moment.rehearsal.steps[moment.index + 1 :]))
    if (
        record is not None
        and record.status.startswith("pending-")
        and record.written.step == moment.index
        and not refused_later
    ):
        yield moment.index, record


def _is_locked(ended: StepResult) -> bool:
    return has_fault(ended.failure, "operation-in-progress")


def _was_refused(rehearsal: Rehearsal, record: Record) -> bool:
    """Whether a webhook rejected Helm's record of the outcome: the webhook rules report that."""
    return any(
        event.object == record.ref and event.refusal is not None and event.refusal.call is not None
        for event in rehearsal.of_step(record.written.step)
    )


def _finding(moment: Moment, record: Record) -> Finding:
    ended, refused = moment.ended, _is_locked(moment.ended)
    return found(
        RULE,
        moment,
        objects=[record.ref],
        damage="failed-deploy",
        message=f"revision {record.revision} of {ended.release} is left {record.status}: "
        + (f"helm {ended.action} refuses to start" if refused else "every later upgrade fails"),
        details=(
            helm_says(ended) if refused else f'The next upgrade fails with "{IN_PROGRESS}".',
            _how_it_came(moment.rehearsal, record),
            "No operation is in progress and there is no lock to release; waiting does not help.",
        ),
        way_out=(_way_out(record, ended.release, ended.namespace),),
        places=[
            hook.place("metadata", "annotations", hooks.HOOK)
            for hook in _failed_hooks(moment.rehearsal, moment.case, record)
        ],
        evidence=[record.written],
        confirm=f"helm history {ended.release} -n {ended.namespace}",
    )


def _how_it_came(rehearsal: Rehearsal, record: Record) -> str:
    if record.written.step < 0:
        return f"It was pending before the trial: the {record.status.removeprefix('pending-')} was killed half way."
    ended = rehearsal.steps[record.written.step]
    if ended.action == "rollback":
        return (
            f"The rollback {'hung' if ended.outcome == 'hung' else 'failed'}, and Helm does not record that if a hook "
            f'or an unreadable manifest is the cause: "{ended.error.strip()}"'
        )
    return f"The {ended.action} recorded its start, and never its outcome."


def _failed_hooks(rehearsal: Rehearsal, case: Case, record: Record) -> Iterator[Resource]:
    """The hook that the rollback failed in, if Helm names its file."""
    step = record.written.step
    release = case.releases[step] if step >= 0 else None
    ended = rehearsal.steps[step]
    files = tuple(fault.file for fault in faults(ended.failure, "hook-failed"))
    for resource in release.resources if release else ():
        template = resource.file[resource.file.rfind("/templates/") :]
        if hooks.runs_at(resource.body, ended.action) and any(file.endswith(template) for file in files):
            yield resource


def _way_out(record: Record, release: str, namespace: str) -> str:
    if record.status == "pending-install":
        return f"Run helm uninstall {release} -n {namespace}, then install again: nothing was deployed before."
    return (
        f"Run helm rollback {release} REVISION -n {namespace}, to a revision that worked. Or "
        f"kubectl delete secret {record.ref.name} -n {namespace}, which makes Helm forget the revision."
    )


RULE = Rule("ST410", "pending-release-lock", check)
