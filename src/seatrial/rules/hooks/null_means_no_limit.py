"""A limit of a Job is written without a value, so there is no limit.

## What happens
`ttlSecondsAfterFinished: {{ .Values.job.ttl }}` with an empty value renders to nothing after the colon. Kubernetes
reads that as `null`, as if the line were missing: no error, no warning, and the default, which for these fields is no
limit. The Job stays after it completes, with its pods, until a user or the release deletes it; or it may run forever. A
reader of the template believes that it is limited.

Only Jobs that were created and stayed are reported. A hook that Helm deletes by its delete policy needs no TTL.

## Example
```yaml
kind: Job
spec:
  ttlSecondsAfterFinished: {{ .Values.job.ttl }}       # ttl: ""
```

## Instead
Set a number in the values, or put `{{- with .Values.job.ttl }}` around the line, which shows that it is optional.
`{{ .Values.job.ttl | required "job.ttl" }}` rejects an empty value.

## Fix safety
A TTL can be set while the Job exists. An hour is enough to read its log.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found, moments
from seatrial.model import lazy_re
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl

DEPLOYS = ("install", "upgrade")
LIMITS = {
    "ttlSecondsAfterFinished": "it is not deleted after it completes",
    "activeDeadlineSeconds": "it may run forever",
}
"""What happens without the limit."""
NUMBER = lazy_re.compile(r"\d+")
"""In a name: the revision of the release, or the version of the chart. The template is the same."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[str, str]] = set()
    for moment in moments(rehearsal, case):
        release = moment.release if moment.ended.action in DEPLOYS and moment.ended.outcome == "ok" else None
        for job in release.resources if release else ():
            for field in _without_value(job):
                one = NUMBER.sub("", str(job.ref)), field
                if one not in seen and moment.live(job.ref) is not None:
                    seen.add(one)
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
        details=("The value renders to nothing, which YAML reads as null, and the API server drops the field.",),
        places=[job.place("spec", field)],
        evidence=[e for e in moment.events() if e.object == job.ref and e.effect == "created"][:1],
        confirm=f"kubectl get {in_kubectl(job.ref)} -o jsonpath='{{.spec.{field}}}'  # prints nothing",
    )


RULE = Rule("ST227", "null-means-no-limit", check)
