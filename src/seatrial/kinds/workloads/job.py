"""Job: pods that run to completion, until enough succeed or too many fail.

From pkg/controller/job, ttlafterfinished and pkg/registry/batch/job of Kubernetes 1.34. Success policies are not
modelled, and of failure policies only exit codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from seatrial.kinds import Acts, Create, Deadline, Delete, Emit, Kind, Need, Status, World, always
from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition, with_condition, without_zeros
from seatrial.kinds.core.immutable import (
    NEWEST,
    immutable_field,
    invalid,
    pod_template,
    scalar,
    selector,
)
from seatrial.kinds.core.objectmeta import created_at, is_terminating, namespace_of, with_metadata
from seatrial.kinds.scripts.containers import awaited, made_by_scripts
from seatrial.kinds.scripts.programs import template_products
from seatrial.kinds.workloads.kubelet import FAILED_AT
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.kinds.workloads.pods import is_active, is_finished, is_ready, phase_of, pod_from
from seatrial.kinds.workloads.replicaset import refused_creation
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of, listed, name_of, uid_of

INDEX = "batch.kubernetes.io/job-completion-index"
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")

MET = ("CompletionsReached", "Reached expected number of succeeded pods")
EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
OVERDUE = ("DeadlineExceeded", "Job was active longer than specified deadline")
BACKOFF_SECONDS = 10.0
BACKOFF_SECONDS_MAX = 600.0
"""DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff."""
SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
"""Template fields that may change while a Job is suspended and was never started, besides labels and annotations."""


class Count(Struct, frozen=True):
    """The pods of a Job, counted."""

    active: list[Body]
    terminating: int
    succeeded: int
    failed: int
    restarts: int
    done: frozenset[int]
    """Indexes that succeeded, in an Indexed Job."""
    policy_failure: str = ""
    """The message of `podFailurePolicy` if a failure ends the Job."""


def behave(job: Body, world: World) -> Acts:
    # Watchers see that the Job finished before it is deleted, and can react.
    if is_done(job) and dig(job, "spec", "ttlSecondsAfterFinished") == 0 and not is_terminating(job) and world.idle:
        yield Delete(job, why="it has finished and ttlSecondsAfterFinished is 0")
    if is_done(job) or dig(job, "spec", "managedBy") not in (None, "kubernetes.io/job-controller"):
        return
    count = _count(job, world.owned(job, "Pod"))
    end = _result(job, count)
    if end is not None:
        yield from _finish(job, count, end)
        return
    if not is_terminating(job) and not backoff_seconds(job, world.owned(job, "Pod"), world):
        yield from _manage(job, count)
    yield Status(job, _status(job, _count(job, world.owned(job, "Pod"))))


def needs(job: Body) -> Iterator[Need]:
    """What its pods refer to, and what their scripts wait for."""
    yield from template_needs("spec", "template")(job)
    spec = dig(job, "spec", "template", "spec")
    if isinstance(spec, dict):
        yield from awaited(spec, namespace_of(job), ("spec", "template", "spec"))


def produces(job: Body) -> Iterator[Ref]:
    """What its scripts and programs create."""
    yield from template_products("spec", "template")(job)
    yield from made_by_scripts(dig(job, "spec", "template", "spec") or {}, namespace_of(job))


def is_done(job: Body) -> bool:
    return conditions.is_true(job, "Complete") or conditions.is_true(job, "Failed")


def immutable(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from _immutable_completions(old, new, minor)
    yield from immutable_field(old, new, "spec.selector", minor, selector)
    if _comparable(old, old) != _comparable(old, new):
        yield invalid("spec.template", pod_template(dig(new, "spec", "template") or {}, minor))
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from immutable_field(old, new, f"spec.{field}", minor)


def default(job: Body) -> Body:
    spec = {
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "manualSelector": False,
        "podReplacementPolicy": "Failed" if dig(job, "spec", "podFailurePolicy") else "TerminatingOrFailed",
        **(job.get("spec") or {}),
    }
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    if isinstance(spec.get("template"), dict):
        spec["template"] = default_template(spec["template"])
    return {**job, "spec": spec}


def prepare(job: Body, old: Body | None) -> Body:
    """A new Job gets a selector from its uid. An update keeps the old one or is rejected."""
    spec = job.get("spec") or {}
    if old is not None or spec.get("manualSelector"):
        return job
    template = spec.get("template") or {}
    made = {**dict.fromkeys(NAME_LABELS, name_of(job)), **dict.fromkeys(UID_LABELS, uid_of(job))}
    labels = {**made, **labels_of(template)}
    chosen = spec.get("selector") or {}
    matched = {UID_LABELS[1]: uid_of(job), **(chosen.get("matchLabels") or {})}
    labelled = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
    spec = {**spec, "selector": {**chosen, "matchLabels": matched}, "template": labelled}
    return {**with_metadata(job, labels=labels_of(job) or labels), "spec": spec}


def deadline(job: Body, world: World) -> Deadline | None:
    """The first of its TTL, `activeDeadlineSeconds` (from the first start, including retries), and its next retry."""
    if _is_suspended(job) or is_terminating(job):
        return None
    if is_done(job):
        ttl = dig(job, "spec", "ttlSecondsAfterFinished")
        return Deadline(int(ttl), _expire(job), says="its TTL of {} seconds is over") if ttl else None
    pods = world.owned(job, "Pod")
    count = _count(job, pods)
    if not dig(job, "status", "startTime") or _result(job, count) is not None:
        return None
    retry = backoff_seconds(job, pods, world)
    seconds = dig(job, "spec", "activeDeadlineSeconds")
    if seconds is not None and (not retry or world.age_seconds(job) + retry > int(seconds)):
        return Deadline(int(seconds), _finish(job, count, ("FailureTarget", *OVERDUE)), since="creation")
    return Deadline(retry, _nothing(), since="now", says="its next pod comes after {} seconds") if retry else None


def backoff_seconds(job: Body, pods: list[Body], world: World) -> float:
    """How long until a pod that failed for lack of something is replaced; 0 where nothing is waited for.

    Other failures repeat themselves whatever the time, so they are repeated at once.
    """
    failed = [pod for pod in pods if phase_of(pod) == "Failed"]
    times = [float(at) for pod in failed if (at := world.memory(uid_of(pod)).get(FAILED_AT)) is not None]
    if not times or any(is_active(pod) for pod in pods):
        return 0.0
    pause = min(BACKOFF_SECONDS * float(2 ** (len(failed) - 1)), BACKOFF_SECONDS_MAX)
    return max(0.0, max(times) + pause - world.now_seconds)


def _nothing() -> Acts:
    """Its controller runs anyway when a deadline has passed."""
    yield from ()


def _expire(job: Body) -> Acts:
    yield Delete(job, why="it has finished, and ttlSecondsAfterFinished is over")


def ready(job: Body) -> bool:
    return conditions.is_true(job, "Complete")


def _count(job: Body, pods: list[Body]) -> Count:
    """Pods that were counted once stay counted after their deletion."""
    phases = [phase_of(pod) for pod in pods]
    done = frozenset(_index(pod) for pod in pods if phase_of(pod) == "Succeeded")
    succeeded = len(done) if _is_indexed(job) else phases.count("Succeeded")
    return Count(
        active=[pod for pod in pods if is_active(pod)],
        terminating=sum(is_terminating(pod) and not is_finished(pod) for pod in pods),
        succeeded=max(succeeded, int(dig(job, "status", "succeeded") or 0)),
        failed=max(phases.count("Failed"), int(dig(job, "status", "failed") or 0)),
        restarts=sum(_restarts(pod) for pod in pods),
        done=done,
        policy_failure=next(_policy_failures(job, pods), ""),
    )


def _result(job: Body, count: Count) -> tuple[str, str, str] | None:
    """(condition, reason, message) once the result of the Job is known."""
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        if met := conditions.find(job, type_):
            return type_, str(met.get("reason")), str(met.get("message"))
    if count.policy_failure:
        return "FailureTarget", "PodFailurePolicy", count.policy_failure
    limit = int(dig(job, "spec", "backoffLimit") or 0)
    restarting = dig(job, "spec", "template", "spec", "restartPolicy") == "OnFailure"
    if count.failed > limit or (restarting and count.restarts > 0 and count.restarts >= limit):
        return "FailureTarget", *EXCEEDED
    completions = dig(job, "spec", "completions")
    enough = count.succeeded > 0 if completions is None else count.succeeded >= int(completions)
    return ("SuccessCriteriaMet", *MET) if enough and not count.active else None


def _policy_failures(job: Body, pods: list[Body]) -> Iterator[str]:
    """The message of `podFailurePolicy` if an exit code fails the Job: pkg/controller/job/pod_failure_policy.go."""
    rules = listed(job, "spec", "podFailurePolicy", "rules")
    for pod in (pod for pod in pods if phase_of(pod) == "Failed"):
        matched = ((index, rule, found) for index, rule in enumerate(rules) if (found := _matched(rule, pod)))
        for index, rule, (name, code) in islice(matched, 1):  # The first matching rule decides.
            if rule.get("action") == "FailJob":
                where = f"Container {name} for pod {namespace_of(pod)}/{name_of(pod)}"
                yield f"{where} failed with exit code {code} matching FailJob rule at index {index}"


def _matched(rule: Body, pod: Body) -> tuple[str, int] | None:
    """The container of a pod that a rule matches, and its exit code."""
    codes = rule.get("onExitCodes") or {}
    for container in listed(pod, "status", "containerStatuses"):
        code = int(dig(container, "state", "terminated", "exitCode") or 0)
        applies = code and codes.get("containerName") in (None, container.get("name"))
        if applies and (code in listed(codes, "values")) == (codes.get("operator") == "In") and codes:
            return str(container.get("name")), code
    return None


def _finish(job: Body, count: Count, end: tuple[str, str, str]) -> Acts:
    """Delete active pods. Complete or Failed is set when no pod is terminating."""
    interim, reason, message = end
    for pod in count.active:
        yield Delete(pod, why="its Job has ended")
    status = without_zeros(_counts(job, count, active=0))
    if interim == "FailureTarget":
        status["failed"] = count.failed + len(count.active)
    kept = with_condition(listed(job, "status", "conditions"), _condition(job, interim, reason, message))
    if not count.terminating and not count.active:
        last = "Failed" if interim == "FailureTarget" else "Complete"
        kept = with_condition(kept, _condition(job, last, reason, message))
        if last == "Complete":
            status["completionTime"] = created_at(job)
            yield Emit(job, "Completed", "Job completed", warning=False)
        else:
            yield Emit(job, reason, message)
    yield Status(job, {**status, **_always(count), "conditions": kept})


def _manage(job: Body, count: Count) -> Acts:
    """Keep as many pods running as completions and parallelism ask for; none while suspended."""
    wanted = _wanted(job, count)
    for extra in count.active[wanted:]:
        yield Delete(extra, why="the Job is suspended" if _is_suspended(job) else "more pods than the Job needs")
    taken = {_index(pod) for pod in count.active} | count.done
    for _ in range(wanted - len(count.active)):
        pod = _pod(job, taken)
        refusal = yield Create(pod, owner=job)
        if refusal:
            yield from refused_creation(job, refusal)
            return
        taken.add(_index(pod))


def _wanted(job: Body, count: Count) -> int:
    if _is_suspended(job):
        return 0
    parallelism = int(dig(job, "spec", "parallelism") or 0)
    completions = dig(job, "spec", "completions")
    if completions is None:
        return len(count.active) if count.succeeded else parallelism
    return min(parallelism, int(completions) - count.succeeded)


def _pod(job: Body, taken: set[int]) -> Body:
    template = dig(job, "spec", "template") or {}
    pod = pod_from(template, job)
    if not _is_indexed(job):
        return pod
    index = next(number for number in range(len(taken) + 1) if number not in taken)
    variable = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    spec = {**pod["spec"], "hostname": f"{name_of(job)}-{index}"}
    for field in ("containers", "initContainers"):
        if field in spec:
            spec[field] = [{**c, "env": [*listed(c, "env"), variable]} for c in listed(spec, field)]
    meta = pod["metadata"]
    marked = {INDEX: str(index)}
    meta = {
        **meta,
        "generateName": f"{name_of(job)}-{index}-",
        "labels": {**(meta.get("labels") or {}), **marked},
        "annotations": {**(meta.get("annotations") or {}), **marked},
    }
    return {**pod, "metadata": meta, "spec": spec}


def _status(job: Body, count: Count) -> Body:
    kept = listed(job, "status", "conditions")
    suspended = conditions.find(job, "Suspended")
    if _is_suspended(job):
        kept = with_condition(kept, _condition(job, "Suspended", "JobSuspended", "Job suspended"))
    elif suspended is not None and suspended.get("status") == "True":
        resumed = _condition(job, "Suspended", "JobResumed", "Job resumed")
        kept = with_condition(kept, {**resumed, "status": "False"})
    counted = without_zeros({**_counts(job, count, active=len(count.active)), "conditions": kept})
    return {**counted, **_always(count)}


def _counts(job: Body, count: Count, *, active: int) -> Body:
    started = None if _is_suspended(job) else created_at(job)
    return {
        "active": active,
        "succeeded": count.succeeded,
        "failed": count.failed,
        "startTime": dig(job, "status", "startTime") or started,
        "completedIndexes": _ranges(sorted(count.done)) if _is_indexed(job) else "",
    }


def _always(count: Count) -> Body:
    """Counters that are shown even if they are zero."""
    ready_pods = sum(is_ready(pod) for pod in count.active)
    return {"ready": ready_pods, "terminating": count.terminating, "uncountedTerminatedPods": {}}


def _condition(job: Body, type_: str, reason: str, message: str) -> Body:
    return condition(job, type_, "True", reason, message, lastProbeTime=created_at(job))


def _ranges(numbers: list[int]) -> str:
    """1,3-5"""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _restarts(pod: Body) -> int:
    fields = ("initContainerStatuses", "containerStatuses")
    return sum(
        int(container.get("restartCount") or 0) for field in fields for container in listed(pod, "status", field)
    )


def _index(pod: Body) -> int:
    return int(annotations_of(pod).get(INDEX) or -1)


def _is_indexed(job: Body) -> bool:
    return bool(dig(job, "spec", "completionMode") == "Indexed")


def _is_suspended(job: Body) -> bool:
    return bool(dig(job, "spec", "suspend"))


def _immutable_completions(old: Body, new: Body, minor: int) -> Iterator[str]:
    """In an Indexed Job, completions may change together with parallelism."""
    was, wanted = dig(old, "spec", "completions"), dig(new, "spec", "completions")
    if was == wanted:
        return
    if not _is_indexed(new):
        yield invalid("spec.completions", scalar(wanted, minor))
    elif wanted is not None and wanted != dig(new, "spec", "parallelism"):
        message = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", scalar(wanted, minor), message)


def _comparable(old: Body, job: Body) -> Body:
    """The template of `job` without the fields that may change: scheduling fields, if `old` was never started."""
    template: Body = dig(job, "spec", "template") or {}
    if not _is_suspended(old) or dig(old, "status", "startTime"):
        return template
    spec = {key: value for key, value in (template.get("spec") or {}).items() if key not in SCHEDULING}
    if affinity := spec.get("affinity"):
        spec["affinity"] = {key: value for key, value in affinity.items() if key != "nodeAffinity"}
    if not spec.get("affinity"):
        spec.pop("affinity", None)
    meta = {k: v for k, v in (template.get("metadata") or {}).items() if k not in ("labels", "annotations")}
    return {"metadata": meta, "spec": spec}


KINDS = (
    Kind(
        "Job",
        "batch",
        actor="job-controller",
        needs=needs,
        behave=behave,
        quick=always,
        produces=produces,
        immutable=immutable,
        default=default,
        prepare=prepare,
        deadline=deadline,
        ready=ready,
    ),
)
