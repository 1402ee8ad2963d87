"""Jobs: pods counted until the Job succeeds or fails."""

from __future__ import annotations

from world import SmallWorld, conditions_of

from seatrial.kinds.workloads.kubelet import OUTCOME

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 2
  template:
    metadata: {annotations: {}}
    spec: {restartPolicy: Never, containers: [{name: main, image: "app:1"}]}
"""
FAILING = JOB.replace("annotations: {}", f"annotations: {{{OUTCOME}: fail}}")


def test_a_job_that_succeeds() -> None:
    world = SmallWorld(JOB).run()
    assert world.status("Job", "migrate", group="batch") == {
        "succeeded": 1,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "conditions": [
            {
                "type": "SuccessCriteriaMet",
                "status": "True",
                "reason": "CompletionsReached",
                "message": "Reached expected number of succeeded pods",
            },
            {
                "type": "Complete",
                "status": "True",
                "reason": "CompletionsReached",
                "message": "Reached expected number of succeeded pods",
            },
        ],
    }
    assert world.object("Job", "migrate", group="batch")["status"]["completionTime"] == "2026-01-01T00:00:00Z"
    assert world.said == ["Job/demo/migrate Completed: Job completed"]


def test_a_finished_job_with_a_ttl_of_zero_is_deleted() -> None:
    for job in (JOB, FAILING):
        world = SmallWorld(job.replace("backoffLimit: 2", "ttlSecondsAfterFinished: 0")).run()
        assert world.names("Job", group="batch") == []


def test_a_finished_job_with_a_ttl_of_an_hour_remains() -> None:
    world = SmallWorld(JOB.replace("backoffLimit: 2", "ttlSecondsAfterFinished: 3600")).run()
    assert world.names("Job", group="batch") == ["migrate"]


def test_a_job_that_exceeds_its_backoff_limit() -> None:
    world = SmallWorld(FAILING).run()
    assert world.names("Pod") == ["migrate-1", "migrate-2", "migrate-3"]
    assert world.status("Job", "migrate", group="batch") == {
        "failed": 3,
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "conditions": [
            {
                "type": "FailureTarget",
                "status": "True",
                "reason": "BackoffLimitExceeded",
                "message": "Job has reached the specified backoff limit",
            },
            {
                "type": "Failed",
                "status": "True",
                "reason": "BackoffLimitExceeded",
                "message": "Job has reached the specified backoff limit",
            },
        ],
    }
    assert world.said == ["Job/demo/migrate BackoffLimitExceeded: Job has reached the specified backoff limit"]


def test_a_job_with_restart_policy_on_failure_fails_and_deletes_its_pod() -> None:
    world = SmallWorld(FAILING.replace("Never", "OnFailure")).run()
    assert world.names("Pod") == []
    assert conditions_of(world.status("Job", "migrate", group="batch")) == {
        "FailureTarget": "True BackoffLimitExceeded: Job has reached the specified backoff limit",
        "Failed": "True BackoffLimitExceeded: Job has reached the specified backoff limit",
    }


def test_a_job_gets_a_generated_selector_and_labels() -> None:
    world = SmallWorld(JOB)
    job = world.object("Job", "migrate", group="batch")
    uid = job["metadata"]["uid"]
    labels = {
        "job-name": "migrate",
        "batch.kubernetes.io/job-name": "migrate",
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
    }
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert job["spec"]["template"]["metadata"]["labels"] == labels
    assert job["metadata"]["labels"] == labels


def test_parallelism_limits_the_running_pods() -> None:
    world = SmallWorld(JOB.replace("backoffLimit: 2", "completions: 3\n  parallelism: 2"))
    world.step("Job", "migrate", group="batch")
    assert world.names("Pod") == ["migrate-1", "migrate-2"]
    assert world.status("Job", "migrate", group="batch")["active"] == 2
    world.run()
    assert world.names("Pod") == ["migrate-1", "migrate-2", "migrate-3"]
    assert world.status("Job", "migrate", group="batch")["succeeded"] == 3


def test_an_indexed_job_runs_each_index_once() -> None:
    world = SmallWorld(
        JOB.replace("backoffLimit: 2", "completions: 3\n  parallelism: 2\n  completionMode: Indexed")
    ).run()
    assert world.names("Pod") == ["migrate-0-1", "migrate-1-1", "migrate-2-1"]
    assert world.status("Job", "migrate", group="batch")["completedIndexes"] == "0-2"


def test_a_suspended_job_runs_when_it_is_resumed() -> None:
    suspended = JOB.replace("backoffLimit: 2", "suspend: true")
    world = SmallWorld(suspended).run()
    assert world.names("Pod") == []
    assert world.status("Job", "migrate", group="batch") == {
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
        "conditions": [
            {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"},
        ],
    }
    job = world.object("Job", "migrate", group="batch")
    world.change(
        next(ref for ref in world.objects if ref.kind == "Job"), {**job, "spec": {**job["spec"], "suspend": False}}
    )
    world.run()
    reported = conditions_of(world.status("Job", "migrate", group="batch"))
    assert reported["Suspended"] == "False JobResumed: Job resumed"
    assert reported["Complete"] == "True CompletionsReached: Reached expected number of succeeded pods"


def test_a_job_waits_for_its_service_account_without_counting_failures() -> None:
    world = SmallWorld(JOB.replace("restartPolicy: Never", "restartPolicy: Never, serviceAccountName: robot")).run()
    words = (
        'pods "migrate-" is forbidden: error looking up service account demo/robot: serviceaccount "robot" not found'
    )
    assert world.said == [f"Job/demo/migrate FailedCreate: Error creating: {words}"]
    assert world.status("Job", "migrate", group="batch") == {
        "ready": 0,
        "terminating": 0,
        "uncountedTerminatedPods": {},
    }
    world.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}").run()
    assert "Complete" in conditions_of(world.status("Job", "migrate", group="batch"))


def test_a_cron_job_creates_no_jobs() -> None:
    world = SmallWorld(
        """
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "0 3 * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: app}]}}}}
"""
    ).run()
    assert world.names("Job", "batch") == []
