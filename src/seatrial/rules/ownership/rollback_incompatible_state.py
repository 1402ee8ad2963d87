"""A rollback restores the old version, but not the data that the new version's migration changed.

## What happens
`helm rollback` applies the manifest of an older revision. It runs only the `pre-rollback` and `post-rollback` hooks of
that revision, and nothing undoes what the upgrade's hooks did: altered tables, rewritten Secrets, rotated keys. The old
version then runs on the new data. `--atomic` (`--rollback-on-failure`) does the same automatically when a later part of
the upgrade fails, after the migration has succeeded.

Only the authors know whether the old version works with that, so this **may** happen. It is reported if a hook Job of
the upgrade looks like a migration (by its name or commands), runs an image that the rollback replaces with an older
one, and no rollback hook runs.

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
Let a migration only add what the old version tolerates, and remove what is no longer needed in a later release (expand,
then contract). Or only roll forward: fix the new version instead of rolling back. A `pre-rollback` hook of the old
revision cannot undo a migration that it does not know.

## Fix safety
Expand and contract needs no change of the chart; it takes two releases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import recorded_by
from seatrial.helm import hooks
from seatrial.model import lazy_re
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import first_named, named

MIGRATES = lazy_re.compile(
    r"migrat|schema|\bdb\b|database|upgrade-?db|\bsql\b|alembic|flyway|liquibase|prisma|\bsequelize|\bknex|\brake\b",
    re.IGNORECASE,
)
"""What tells a Job that changes data from one that sends a message or warms a cache."""
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
    """By repository: a workload whose image the rollback changes, that image, and the one before."""
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
        if job is not None and hooks.runs_at(job.body, moment.ended.action) and _changes_data(job):
            yield job, event


def _changes_data(job: Resource) -> bool:
    """Whether a Job migrates something, by its name, its containers or its commands."""
    spec = dig(job.body, "spec", "template", "spec")
    containers = [
        one for one in (*listed(spec, "initContainers"), *listed(spec, "containers")) if isinstance(one, dict)
    ]
    words = (str(one.get(field) or "") for one in containers for field in ("name", "command", "args", "image"))
    return any(MIGRATES.search(word) for word in (job.ref.name, *words))


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
        message=f"helm rollback restores {workload}, but not the data that {first_named(r.ref for r, _ in ran)} "
        "changed",
        details=(
            f"The rollback restores {image}. The upgrade ran {jobs} with {had}. A rollback runs only the "
            "pre-rollback and post-rollback hooks of its "
            "target revision, which has none, so nothing undoes the change.",
            "--rollback-on-failure (Helm 3: --atomic) does the same when the upgrade fails after that hook.",
            "It is an outage only if the old version does not work with the changes of the new version's hook.",
        ),
        places=[job.place("metadata", "annotations", hooks.HOOK)],
        evidence=[event for _, event in ran],
        confirm=f"helm get hooks {moment.ended.release} -n {moment.ended.namespace}",
    )


RULE = Rule("ST409", "rollback-incompatible-state", check)
