"""A rollback brings the old version back, and leaves what the new version's migration did to the data.

## What happens
`helm rollback` applies the manifest of an older revision. It runs only the `pre-rollback` and `post-rollback` hooks
of that revision, and nothing undoes what the upgrade's hooks did: tables that were altered, Secrets that were
rewritten, keys that were turned. The old version then runs on the new data. `--atomic` (`--rollback-on-failure`)
rolls back the same way, by itself, when a later part of the upgrade fails, after the migration has succeeded.

Whether the old version can live with that is known only to its authors, so this **may** happen. It is told where a
Job of the upgrade's hooks runs an image of which the rollback brings an older one back, and no rollback hook runs.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-migrate
  annotations:
    helm.sh/hook: pre-upgrade
spec:
  template:
    spec:
      containers:
        - name: migrate
          image: registry.example/app:2.0.0
```

## Instead
Let a migration only add what the old version does not mind, and take away in a later release what nobody needs any
more (expand, then contract). Or go forward only: fix the new version instead of rolling back. A `pre-rollback` hook
of the old revision cannot undo a migration that it does not know.

## Fix safety
Nothing in the chart needs to change for expand and contract; it takes two releases.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import recorded_by
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import named

Images = dict[str, str]
"""Image by repository."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, ...]] = set()
    for moment in moments(rehearsal, case):
        before = recorded_by(moment) if moment.ended.action == "rollback" else None
        target, current = moment.release, case.releases[before] if before is not None else None
        if before is None or target is None or current is None or _has_rollback_hook(target):
            continue
        older = _older(target, current)
        ran = [
            pair for pair in _hook_jobs(Moment(rehearsal, case, before)) if _images(pair[0].body).keys() & older.keys()
        ]
        jobs = tuple(job.ref for job, _ in ran)
        if jobs and jobs not in seen:
            seen.add(jobs)
            yield _finding(moment, ran, older)


def _has_rollback_hook(target: Release) -> bool:
    return any(hooks.runs_at(resource.body, "rollback") for resource in target.resources)


def _older(target: Release, current: Release) -> dict[str, tuple[Ref, str, str]]:
    """By repository: a workload that the rollback gives another image, that image, and the one it had."""
    found = {}
    for resource in target.resources:
        now = current.find(resource.ref)
        if hooks.is_hook(resource.body) or now is None:
            continue
        had = _images(now.body)
        for repository, image in _images(resource.body).items():
            if had.get(repository, image) != image:
                found[repository] = resource.ref, image, had[repository]
    return found


def _hook_jobs(moment: Moment) -> Iterator[tuple[Resource, Event]]:
    """The Jobs that the last upgrade ran as hooks."""
    release = moment.release
    for event in moment.events():
        if event.actor != "helm" or event.effect != "created" or event.object.kind != "Job" or release is None:
            continue
        job = release.find(event.object)
        if job is not None and hooks.runs_at(job.body, moment.ended.action):
            yield job, event


def _images(body: Body) -> Images:
    spec = dig(body, "spec", "template", "spec")
    containers = [*listed(spec, "initContainers"), *listed(spec, "containers")]
    images = [str(container.get("image") or "") for container in containers if isinstance(container, dict)]
    return {_repository(image): image for image in images if image}


def _repository(image: str) -> str:
    path, _, name = image.partition("@")[0].rpartition("/")
    return f"{path}/{name.partition(':')[0]}"


def _finding(moment: Moment, ran: list[tuple[Resource, Event]], older: dict[str, tuple[Ref, str, str]]) -> Finding:
    job = ran[0][0]
    workload, image, had = next(older[repository] for repository in _images(job.body) if repository in older)
    jobs = named(resource.ref for resource, _ in ran)
    return found(
        RULE,
        moment,
        objects=[resource.ref for resource, _ in ran],
        damage="outage",
        certainty="may",
        message=f"helm rollback puts {workload} back to {image}, and leaves what {jobs} did to its data",
        details=(
            f"The upgrade ran {jobs} with {had}. A rollback runs only pre-rollback and post-rollback hooks of the "
            "revision that it goes back to, and there are none; nothing undoes what was done.",
            "--rollback-on-failure (Helm 3: --atomic) does the same by itself, when the upgrade fails after that hook.",
            "What decides: whether the old version can work with what the new one's hook has left.",
        ),
        places=[job.place("metadata", "annotations", hooks.HOOK)],
        evidence=[event for _, event in ran],
        confirm=f"helm get hooks {moment.ended.release} -n {moment.ended.namespace}",
    )


RULE = Rule("ST409", "rollback-incompatible-state", check)
