"""CronJob: creates no Jobs here, because no time passes. The needs of its Jobs are known."""

from __future__ import annotations

from seatrial.kinds import Kind
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.model.resource import Body, dig


def default(body: Body) -> Body:
    spec = {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        **(body.get("spec") or {}),
    }
    template = dig(spec, "jobTemplate", "spec", "template")
    if isinstance(template, dict):
        job = spec["jobTemplate"]
        spec["jobTemplate"] = {**job, "spec": {**job["spec"], "template": default_template(template)}}
    return {**body, "spec": spec}


KINDS = (
    Kind(
        "CronJob",
        "batch",
        actor="cronjob-controller",
        needs=template_needs("spec", "jobTemplate", "spec", "template"),
        default=default,
    ),
)
