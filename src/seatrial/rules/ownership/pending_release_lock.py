"""A release is left in the middle of an act, and Helm refuses every upgrade since it takes that act to be going on.

## What happens
Helm writes down what it is about to do (`pending-install`, `pending-upgrade`, `pending-rollback`) and writes the
outcome when it is done. A process that is killed in between (a pipeline that is cancelled or out of time, a runner
that goes away) writes none. There is no lock behind the word and no timeout: the next upgrade reads it and stops with
`another operation (install/upgrade/rollback) is in progress`, for ever.

A rollback whose hook fails leaves `pending-rollback` without anybody being killed: Helm does not write down that it
failed. That a hook takes longer than `--timeout`, on the other hand, ends an install or upgrade as `failed`, which
the next one goes on from.

Flux does not stop there: helm-controller marks a release that is pending as failed, whoever has left it so, and goes
on (`Unlocked Helm release ... in pending-upgrade state`), even where another Helm is at work just then.

## Example
```sh
timeout -s KILL 60 helm upgrade shop ./shop   # its pre-upgrade hook takes two minutes
helm upgrade shop ./shop                      # another operation (install/upgrade/rollback) is in progress
```

## Instead
Let the pipeline wait longer than `--timeout` allows Helm to, and let it end Helm by SIGTERM: then Helm marks the
release as failed. To get out: `helm rollback` to the last good revision, or `helm uninstall` after a first install,
or delete the Secret of the pending revision.

## Fix safety
`helm rollback` applies the old manifest and is safe as far as any rollback is. Deleting the Secret makes Helm forget
what the killed act had already made; objects that only the pending revision lists are left behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import Record, last_record
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.outcome import helm_says

IN_PROGRESS = "another operation (install/upgrade/rollback) is in progress"
WEBHOOK = "failed calling webhook"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for at, record in _locks(moment):
            if record.ref not in seen and not _was_refused(rehearsal, record):
                seen.add(record.ref)
                yield _finding(Moment(rehearsal, case, at), record)


def _locks(moment: Moment) -> Iterator[tuple[int, Record]]:
    """A refusal for a record that is pending; and a step that leaves one, where no upgrade follows."""
    ended = moment.ended
    if ended.outcome == "failed" and IN_PROGRESS in ended.error:
        record = last_record(moment.rehearsal, ended.release, ended.namespace, before_step=moment.index)
        if record is not None:
            yield moment.index, record
        return
    record = last_record(moment.rehearsal, ended.release, ended.namespace, before_step=moment.index + 1)
    refused_later = any(IN_PROGRESS in later.error for later in moment.rehearsal.steps[moment.index + 1 :])
    if (
        record is not None
        and record.status.startswith("pending-")
        and record.written.step == moment.index
        and not refused_later
    ):
        yield moment.index, record


def _was_refused(rehearsal: Rehearsal, record: Record) -> bool:
    """Whether a webhook kept Helm from writing down how it ended: the rules about webhooks tell that."""
    return any(
        event.object == record.ref and event.effect == "refused" and WEBHOOK in event.message
        for event in rehearsal.of_step(record.written.step)
    )


def _finding(moment: Moment, record: Record) -> Finding:
    ended, refused = moment.ended, IN_PROGRESS in moment.ended.error
    return found(
        RULE,
        moment,
        objects=[record.ref],
        damage="failed-deploy",
        message=f"revision {record.revision} of {ended.release} is left {record.status}: "
        + (f"helm {ended.action} refuses to begin" if refused else "every later upgrade is refused"),
        details=(
            helm_says(ended) if refused else f'The next upgrade will say: "{IN_PROGRESS}".',
            _how_it_came(moment.rehearsal, record),
            "No operation is in progress; nobody holds a lock that could be released, and to wait does not help.",
            _way_out(record, ended.release, ended.namespace),
        ),
        places=[
            hook.place("metadata", "annotations", hooks.HOOK)
            for hook in _failed_hooks(moment.rehearsal, moment.case, record)
        ],
        evidence=[record.written],
        confirm=f"helm history {ended.release} -n {ended.namespace}",
    )


def _how_it_came(rehearsal: Rehearsal, record: Record) -> str:
    if record.written.step < 0:
        return f"It was so before: whoever began it ({record.status.removeprefix('pending-')}) was killed half-way."
    ended = rehearsal.steps[record.written.step]
    if ended.action == "rollback":
        return (
            f"The rollback {'hung' if ended.outcome == 'hung' else 'failed'}, and Helm does not write that down where "
            f'a hook or the reading of a manifest is to blame: "{ended.error.strip()}"'
        )
    return f"The {ended.action} wrote that it had begun, and never how it ended."


def _failed_hooks(rehearsal: Rehearsal, case: Case, record: Record) -> Iterator[Resource]:
    """The hook that a rollback failed in, as far as Helm names its file."""
    step = record.written.step
    release = case.releases[step] if step >= 0 else None
    for resource in release.resources if release else ():
        template = resource.file[resource.file.rfind("/templates/") :]
        if hooks.runs_at(resource.body, rehearsal.steps[step].action) and template in rehearsal.steps[step].error:
            yield resource


def _way_out(record: Record, release: str, namespace: str) -> str:
    if record.status == "pending-install":
        return f"Way out: helm uninstall {release} -n {namespace}; nothing was deployed before."
    return (
        f"Way out: helm rollback {release} REVISION -n {namespace}, to one that worked: that is not refused. Or "
        f"kubectl delete secret {record.ref.name} -n {namespace}, after which Helm has never heard of it."
    )


RULE = Rule("ST410", "pending-release-lock", check)
