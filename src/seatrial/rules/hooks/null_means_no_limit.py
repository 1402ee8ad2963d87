"""A limit of a Job is written without a value, and so there is none.

## What happens
`ttlSecondsAfterFinished: {{ .Values.job.ttl }}` with a value that is empty renders to nothing behind the colon. To
Kubernetes that is `null`, the same as if the line were not there: no error, no warning, and the default, which for
these limits is none. The Job stays when it has ended, with its pods, until somebody or the release deletes it; or it
may run for as long as it likes. Whoever reads the template believes that it is limited.

Told is of Jobs that were made and stayed. A hook that Helm deletes by its policy needs no time to live.

## Example
```yaml
kind: Job
spec:
  ttlSecondsAfterFinished: {{ .Values.job.ttl }}       # ttl: ""
```

## Instead
A number in the values, or `{{- with .Values.job.ttl }}` around the line, so that it is seen to be left out.
`{{ .Values.job.ttl | required "job.ttl" }}` does not take an empty one.

## Fix safety
A time to live may be set while the Job is there. An hour is enough for whoever wants to read its log.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref, dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl

DEPLOYS = ("install", "upgrade")
LIMITS = {
    "ttlSecondsAfterFinished": "it stays when it has ended, with its pods, until somebody or the release deletes it",
    "activeDeadlineSeconds": "it may run for as long as it likes",
}
"""What it means that there is none."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, str]] = set()
    for moment in moments(rehearsal, case):
        release = moment.release if moment.ended.action in DEPLOYS and moment.ended.outcome == "ok" else None
        for job in release.resources if release else ():
            for field in _without_value(job):
                if (job.ref, field) not in seen and moment.live(job.ref) is not None:
                    seen.add((job.ref, field))
                    yield _finding(moment, job, field)


def _without_value(job: Resource) -> Iterator[str]:
    spec = dig(job.body, "spec")
    if job.ref.kind == "Job" and isinstance(spec, dict):
        yield from (field for field in LIMITS if field in spec and spec[field] is None)


def _finding(moment: Moment, job: Resource, field: str) -> Finding:
    return found(
        RULE,
        moment,
        objects=[job.ref],
        damage="nuisance",
        message=f"{field} of {job.ref} has no value: {LIMITS[field]}",
        details=(
            "What stands behind the colon renders to nothing, which is null: the API server leaves the field out.",
        ),
        places=[job.place("spec", field)],
        evidence=[e for e in moment.events() if e.object == job.ref and e.effect == "created"][:1],
        confirm=f"kubectl get {in_kubectl(job.ref)} -o jsonpath='{{.spec.{field}}}'  # prints nothing",
    )


RULE = Rule("ST227", "null-means-no-limit", check)
