"""How `make lab` compares the two clusters. The lab itself needs a control plane."""

from __future__ import annotations

from pathlib import Path

from lab.containers import moved
from lab.node_time import GAP_SECONDS, NodeTime
from lab.outcomes import Ran, differences, fates_between, outcome_of, plain
from lab.stories import told

from seatrial.model.resource import Ref

APP, OLD, KEPT = (Ref("ConfigMap", "default", name) for name in ("app", "old", "kept"))


def test_the_plans_of_a_story_are_found_without_running_it() -> None:
    found = list(told("configmap-becomes-a-hook", bundle=""))
    assert [step.step.action for step in found[0].plan.steps][:2] == ["install", "upgrade"]


def test_the_fate_of_an_object_follows_from_its_uids() -> None:
    before, after = {OLD: "1", KEPT: "2", APP: "3"}, {KEPT: "2", APP: "4", Ref("Pod", "default", "new"): "5"}
    assert fates_between(before, after) == {
        "ConfigMap/default/old": "deleted",
        "ConfigMap/default/app": "recreated",
        "Pod/default/new": "created",
    }


def test_a_timeout_of_helm_is_a_hang() -> None:
    assert outcome_of("") == "ok"
    assert outcome_of("failed pre-install: timed out waiting for the condition") == "hung"
    assert outcome_of('jobs.batch "migrate" already exists') == "failed"


def test_a_step_after_a_difference_says_that_it_follows() -> None:
    ours = [Ran("install", "ok", "", {}), Ran("upgrade", "failed", "no", {})]
    real = [Ran("install", "failed", "refused", {}), Ran("upgrade", "failed", "not found", {})]
    assert [(one.step, one.about, one.follows) for one in differences(ours, real)] == [
        (1, "outcome", False),
        (2, "words", True),
    ]


def test_errors_are_compared_without_what_differs_from_run_to_run() -> None:
    one = 'Post "https://127.0.0.1:6443/api/v1/pods": pods "web-x7k2p" not found'
    other = 'Post "https://127.0.0.1:7001/api/v1/pods":  pods "web-bcdfg" not found'
    assert plain(one) == plain(other)


def test_paths_of_volumes_lead_into_the_folder_of_the_pod() -> None:
    paths = {"/data": "/pod/volumes/data", "/data/etc": "/pod/volumes/etc"}
    assert moved("cat /data/etc/app.conf > /data/out; ls /database", paths) == (
        "cat /pod/volumes/etc/app.conf > /pod/volumes/data/out; ls /database"
    )


def test_the_folder_of_a_pod_below_tmp_is_not_moved_again() -> None:
    paths = {"/tmp": "/tmp/pod/tmp", "/scripts": "/tmp/pod/volumes/scripts"}
    assert moved("sh /scripts/create.sh > /tmp/out", paths) == (
        "sh /tmp/pod/volumes/scripts/create.sh > /tmp/pod/tmp/out"
    )


def test_a_pod_starts_while_the_client_waits_and_not_between_two_of_its_requests(tmp_path: Path) -> None:
    log, now = tmp_path / "audit.log", 0.0
    clock = NodeTime(log, lambda: now)
    clock.begin_step()
    log.write_text("")
    for _ in range(20):
        with log.open("a") as out:
            out.write("a request\n")
        now += GAP_SECONDS
        clock.tick()
        assert not clock.is_over("start", 0.5)
    now += 0.6 + GAP_SECONDS
    clock.tick()
    assert clock.is_over("start", 0.5)


def test_no_time_passes_on_nodes_between_steps_unless_the_cluster_settles(tmp_path: Path) -> None:
    now = 0.0
    clock = NodeTime(tmp_path / "audit.log", lambda: now)
    clock.begin_step()
    clock.end_step()
    assert not clock.is_over("start", 0.5)
    now = 60.0
    clock.tick()
    assert not clock.is_over("start", 0.5)
    clock.settle()
    assert clock.is_over("start", 0.5)
