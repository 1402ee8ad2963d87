"""The steps of ApplicationSets: who is in them, how many sync at once, and when the next begins."""

from __future__ import annotations

import pytest

from seatrial.engines.argocd.rollout import (
    PENDING,
    PROGRESSING,
    WAITING,
    ApplicationStatus,
    Rollout,
    RolloutProgress,
    judged,
    may_sync,
    rollout_of,
)
from seatrial.engines.argocd.sets import AppSet, dropped
from seatrial.model.resource import Body, Ref
from seatrial.readiness.argocd.verdict import HEALTHY

NEWEST, BEFORE_REVISIONS = (3, 5), (3, 2)


def test_the_first_matching_step_counts_and_a_missing_label_matches_not_in() -> None:
    steps = [_step("In", "a"), _step("NotIn", "b"), _step("Exists", "a")]
    rollout = _rollout(steps, {"a": "a", "b": "b", "c": "c", "none": ""})
    assert {app.name: rollout.step_of(app) for app in rollout.apps} == {"a": 1, "b": -1, "c": 2, "none": 2}


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [(None, 7), (2, 2), (0, 0), ("50%", 3), ("1%", 1), ("0%", 0), ("100%", 7), ("many", 1)],
)
def test_max_update_limits_concurrent_syncs(at_once: int | str | None, expected: int) -> None:
    rollout = _rollout([{**_step("In", "a"), "maxUpdate": at_once}], dict.fromkeys("abcdefg", "a"))
    assert len(list(may_sync(rollout, _all(rollout, WAITING)))) == expected


def test_running_syncs_count_against_max_update() -> None:
    rollout = _rollout([{**_step("In", "a"), "maxUpdate": 2}], dict.fromkeys("abc", "a"))
    progress = {**_all(rollout, WAITING), rollout.apps[0]: RolloutProgress(PROGRESSING, "", "1")}
    assert [app.name for app in may_sync(rollout, progress)] == ["b"]


def test_the_next_step_waits_until_all_of_this_one_are_healthy() -> None:
    rollout = _rollout([_step("In", "a"), _step("In", "b")], {"a": "a", "other": "a", "b": "b"})
    a, other, b = rollout.apps
    progress = {
        a: RolloutProgress(HEALTHY, "", "1"),
        other: RolloutProgress(PENDING, "", "1"),
        b: RolloutProgress(WAITING, "", "1"),
    }
    assert list(may_sync(rollout, progress)) == []
    assert list(may_sync(rollout, {**progress, other: RolloutProgress(HEALTHY, "", "1")})) == [b]


def test_an_application_counts_as_healthy_only_when_synced() -> None:
    progressing = RolloutProgress(PROGRESSING, "", "1")
    assert judged(progressing, ApplicationStatus("1", synced=False, health=HEALTHY), NEWEST) == progressing
    assert judged(progressing, ApplicationStatus("1", synced=True, health="Degraded"), NEWEST) == progressing
    assert judged(progressing, ApplicationStatus("1", synced=True, health=HEALTHY), NEWEST).message == (
        "Application resource became Healthy, updating status from Progressing to Healthy"
    )


def test_a_synced_application_needs_no_sync_of_a_new_revision() -> None:
    now = judged(RolloutProgress(HEALTHY, "", "1"), ApplicationStatus("2", synced=True, health=HEALTHY), NEWEST)
    assert now == RolloutProgress(HEALTHY, "Application resource has synced, updating status to Healthy", "2")


def test_drift_started_a_sync_before_3_3() -> None:
    drifted = ApplicationStatus("1", synced=False, health=HEALTHY)
    healthy = RolloutProgress(HEALTHY, "", "1")
    assert judged(healthy, drifted, NEWEST) == healthy
    assert judged(healthy, drifted, BEFORE_REVISIONS).status == WAITING


@pytest.mark.parametrize("phase", ["Running", "Succeeded", "Failed", "Error"])
def test_a_pending_application_progresses_whatever_its_operation_result(phase: str) -> None:
    now = judged(
        RolloutProgress(PENDING, "", "1"),
        ApplicationStatus("1", synced=False, health="Missing", operation=phase),
        NEWEST,
    )
    assert now.status == PROGRESSING


def test_a_set_without_steps_rolls_nothing_out() -> None:
    strategies: list[Body] = [{}, {"type": "AllAtOnce"}, {"type": "RollingSync", "rollingSync": {"steps": []}}]
    assert [rollout_of({"spec": {"strategy": strategy}}, ()) for strategy in strategies] == [None, None, None]


def test_a_set_deletes_dropped_applications_if_its_policy_allows() -> None:
    name, app = Ref("ApplicationSet", "argocd", "web"), {"kind": "Application", "metadata": {"name": "old"}}
    before = AppSet(name, (app,))
    assert [ref.name for ref in dropped(AppSet(name, ()), before)] == ["old"]
    assert list(dropped(AppSet(name, (), deletes=False), before)) == []


def _step(operator: str, value: str) -> Body:
    return {"matchExpressions": [{"key": "env", "operator": operator, "values": [value]}]}


def _rollout(steps: list[Body], apps: dict[str, str]) -> Rollout:
    bodies = tuple(
        {"kind": "Application", "metadata": {"name": name, "labels": {"env": label} if label else {}}}
        for name, label in apps.items()
    )
    found = rollout_of({"spec": {"strategy": {"type": "RollingSync", "rollingSync": {"steps": steps}}}}, bodies)
    assert found is not None
    return found


def _all(rollout: Rollout, status: str) -> dict[Ref, RolloutProgress]:
    return {app: RolloutProgress(status, "", "1") for app in rollout.apps}
