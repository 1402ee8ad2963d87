"""Immutable fields, with the errors of a real API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.kinds import known
from seatrial.model.resource import Body, group_of

CASES = yaml.safe_load(Path(__file__).with_name("immutable.yaml").read_text())
UID = "11d6dd47-93f1-496b-a8b3-57a2157d7868"


def stored(body: Body, old: Body | None) -> Body:
    kind = known()[group_of(body["apiVersion"]), body["kind"]]
    body = {**body, "metadata": {**body["metadata"], "namespace": "t", "uid": UID}}
    body = kind.default(body) if kind.default else body
    return kind.prepare(body, old) if kind.prepare else body


def merged(body: Any, change: Any) -> Any:
    """A merge patch, except that containers keep their names and are patched one by one."""
    if isinstance(body, list) and isinstance(change, list) and change and "image" in str(change[0]):
        return [{**old, **new} for old, new in zip(body, change, strict=True)]
    if not isinstance(body, dict) or not isinstance(change, dict):
        return change
    found = {**body, **{key: merged(body.get(key), value) for key, value in change.items()}}
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['given']['kind']}-{case['change']}")
def test_a_change_is_refused_with_the_api_servers_error(case: Body) -> None:
    old = stored(case["given"], None)
    new = stored(merged(old, case["change"]), old)
    frozen = known()[group_of(old["apiVersion"]), old["kind"]].immutable
    assert frozen is not None
    assert list(frozen(old, new, case.get("minor", 34))) == case["words"]


def test_scheduling_fields_of_a_job_that_never_ran_may_change() -> None:
    job = yaml.safe_load(
        """
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: m, image: nginx}]}}}
"""
    )
    old = stored(job, None)
    where = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}]}
    new = stored(merged(old, {"spec": {"template": {"spec": where}}}), old)
    frozen = known()["batch", "Job"].immutable
    assert frozen is not None
    assert list(frozen(old, new)) == []
    started = {**old, "status": {"startTime": "2026-01-01T00:00:00Z"}}
    assert len(list(frozen(started, new))) == 1
