"""Job: pods that run to their end, counted until there are enough successes or too many failures.

From pkg/controller/job, ttlafterfinished and pkg/registry/batch/job of Kubernetes 1.34. Failure and success policies
are not modelled. No time passes here, so of the times to live only the shortest, 0, is ever over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from seatrial.kinds import Acts, Create, Deadline, Delete, Kind, Need, Say, Status, World
from seatrial.kinds.core import conditions
from seatrial.kinds.core.conditions import condition, with_condition, without_zeros
from seatrial.kinds.core.immutable import (
    NEWEST,
    frozen_field,
    invalid,
    pod_template,
    scalar,
    selector,
)
from seatrial.kinds.core.objectmeta import is_going, moment, namespace_of, with_metadata
from seatrial.kinds.scripts.containers import awaited
from seatrial.kinds.workloads.pod_template import default_template, template_needs
from seatrial.kinds.workloads.pods import is_active, is_finished, is_ready, phase_of, pod_from
from seatrial.kinds.workloads.replicaset import refused_creation
from seatrial.model.resource import Body, annotations_of, dig, labels_of, listed, name_of, uid_of

INDEX = "batch.kubernetes.io/job-completion-index"
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")

MET = ("CompletionsReached", "Reached expected number of succeeded pods")
EXCEEDED = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
OVERDUE = ("DeadlineExceeded", "Job was active longer than specified deadline")
SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
"""What may change in the template of a Job that is suspended and never started, beside labels and annotations."""


class Count(Struct, frozen=True):
    """The pods of a Job, as it counts them."""

    active: list[Body]
    terminating: int
    succeeded: int
    failed: int
    restarts: int
    done: frozenset[int]
    """Indexes that succeeded, of an Indexed Job."""
    ruled_out: str = ""
    """What its policy says of a failure that no further pod is tried after."""


def behave(job: Body, world: World) -> Acts:
    # Whoever watches it is told of its end before it goes, and has a moment to act on it.
    if is_over(job) and dig(job, "spec", "ttlSecondsAfterFinished") == 0 and not is_going(job) and world.at_rest:
        yield Delete(job, why="it has ended, and ttlSecondsAfterFinished keeps it no longer")
    if is_over(job) or dig(job, "spec", "managedBy") not in (None, "kubernetes.io/job-controller"):
        return
    count = _count(job, world.owned(job, "Pod"))
    end = _ending(job, count)
    if end is not None:
        yield from _finish(job, count, end)
        return
    if not is_going(job):
        yield from _manage(job, count)
    yield Status(job, _status(job, _count(job, world.owned(job, "Pod"))))


def needs(job: Body) -> Iterator[Need]:
    """What its pods refer to, and what their scripts wait for."""
    yield from template_needs("spec", "template")(job)
    spec = dig(job, "spec", "template", "spec")
    if isinstance(spec, dict):
        yield from awaited(spec, namespace_of(job), ("spec", "template", "spec"))


def is_over(job: Body) -> bool:
    return conditions.is_true(job, "Complete") or conditions.is_true(job, "Failed")


def frozen(old: Body, new: Body, minor: int = NEWEST, /) -> Iterator[str]:
    yield from _frozen_completions(old, new, minor)
    yield from frozen_field(old, new, "spec.selector", minor, selector)
    if _comparable(old, old) != _comparable(old, new):
        yield invalid("spec.template", pod_template(dig(new, "spec", "template") or {}, minor))
    for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        yield from frozen_field(old, new, f"spec.{field}", minor)


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
    """A new Job gets a selector of its own, made of its uid; an old one keeps what it has or is refused."""
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
    """`activeDeadlineSeconds`, which runs from the first start, however often pods are tried again."""
    seconds = dig(job, "spec", "activeDeadlineSeconds")
    if seconds is None or _is_suspended(job) or is_going(job) or not dig(job, "status", "startTime"):
        return None
    count = _count(job, world.owned(job, "Pod"))
    if is_over(job) or _ending(job, count) is not None:
        return None
    return Deadline(int(seconds), _finish(job, count, ("FailureTarget", *OVERDUE)))


def ready(job: Body) -> bool:
    return conditions.is_true(job, "Complete")


def _count(job: Body, pods: list[Body]) -> Count:
    """What was counted once stays counted, even where the pod is gone."""
    phases = [phase_of(pod) for pod in pods]
    done = frozenset(_index(pod) for pod in pods if phase_of(pod) == "Succeeded")
    succeeded = len(done) if _is_indexed(job) else phases.count("Succeeded")
    return Count(
        active=[pod for pod in pods if is_active(pod)],
        terminating=sum(is_going(pod) and not is_finished(pod) for pod in pods),
        succeeded=max(succeeded, int(dig(job, "status", "succeeded") or 0)),
        failed=max(phases.count("Failed"), int(dig(job, "status", "failed") or 0)),
        restarts=sum(_restarts(pod) for pod in pods),
        done=done,
        ruled_out=next(_ruled_out(job, pods), ""),
    )


def _ending(job: Body, count: Count) -> tuple[str, str, str] | None:
    """(condition, reason, message) once it is clear how the Job ends."""
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        if met := conditions.find(job, type_):
            return type_, str(met.get("reason")), str(met.get("message"))
    if count.ruled_out:
        return "FailureTarget", "PodFailurePolicy", count.ruled_out
    limit = int(dig(job, "spec", "backoffLimit") or 0)
    restarting = dig(job, "spec", "template", "spec", "restartPolicy") == "OnFailure"
    if count.failed > limit or (restarting and count.restarts > 0 and count.restarts >= limit):
        return "FailureTarget", *EXCEEDED
    completions = dig(job, "spec", "completions")
    enough = count.succeeded > 0 if completions is None else count.succeeded >= int(completions)
    return ("SuccessCriteriaMet", *MET) if enough and not count.active else None


def _ruled_out(job: Body, pods: list[Body]) -> Iterator[str]:
    """What `podFailurePolicy` says where an exit code ends the whole Job: pkg/controller/job/pod_failure_policy.go."""
    rules = listed(job, "spec", "podFailurePolicy", "rules")
    for pod in (pod for pod in pods if phase_of(pod) == "Failed"):
        matched = ((index, rule, found) for index, rule in enumerate(rules) if (found := _matched(rule, pod)))
        for index, rule, (name, code) in islice(matched, 1):  # The first rule that fits decides.
            if rule.get("action") == "FailJob":
                where = f"Container {name} for pod {namespace_of(pod)}/{name_of(pod)}"
                yield f"{where} failed with exit code {code} matching FailJob rule at index {index}"


def _matched(rule: Body, pod: Body) -> tuple[str, int] | None:
    """The container of a pod that a rule is about, and its exit code."""
    codes = rule.get("onExitCodes") or {}
    for container in listed(pod, "status", "containerStatuses"):
        code = int(dig(container, "state", "terminated", "exitCode") or 0)
        meant = code and codes.get("containerName") in (None, container.get("name"))
        if meant and (code in listed(codes, "values")) == (codes.get("operator") == "In") and codes:
            return str(container.get("name")), code
    return None


def _finish(job: Body, count: Count, end: tuple[str, str, str]) -> Acts:
    """Delete what still runs; the last word (Complete, Failed) is spoken when no pod is left on its way out."""
    interim, reason, message = end
    for pod in count.active:
        yield Delete(pod, why="its Job has ended")
    gone = without_zeros(_counts(job, count, active=0))
    if interim == "FailureTarget":
        gone["failed"] = count.failed + len(count.active)
    kept = with_condition(listed(job, "status", "conditions"), _said(job, interim, reason, message))
    if not count.terminating and not count.active:
        last = "Failed" if interim == "FailureTarget" else "Complete"
        kept = with_condition(kept, _said(job, last, reason, message))
        if last == "Complete":
            gone["completionTime"] = moment(job)
            yield Say(job, "Completed", "Job completed", warning=False)
        else:
            yield Say(job, reason, message)
    yield Status(job, {**gone, **_always(count), "conditions": kept})


def _manage(job: Body, count: Count) -> Acts:
    """Keep as many pods running as completions and parallelism ask for; none while suspended."""
    wanted = _wanted(job, count)
    for extra in count.active[wanted:]:
        yield Delete(extra, why="the Job is suspended" if _is_suspended(job) else "more pods than the Job asks for")
    taken = {_index(pod) for pod in count.active} | count.done
    for _ in range(wanted - len(count.active)):
        pod = _pod(job, taken)
        refusal = yield Create(pod, owner=job)
        if refusal:
            yield from refused_creation(job, pod, refusal)
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
        kept = with_condition(kept, _said(job, "Suspended", "JobSuspended", "Job suspended"))
    elif suspended is not None and suspended.get("status") == "True":
        resumed = _said(job, "Suspended", "JobResumed", "Job resumed")
        kept = with_condition(kept, {**resumed, "status": "False"})
    counted = without_zeros({**_counts(job, count, active=len(count.active)), "conditions": kept})
    return {**counted, **_always(count)}


def _counts(job: Body, count: Count, *, active: int) -> Body:
    started = None if _is_suspended(job) else moment(job)
    return {
        "active": active,
        "succeeded": count.succeeded,
        "failed": count.failed,
        "startTime": dig(job, "status", "startTime") or started,
        "completedIndexes": _ranges(sorted(count.done)) if _is_indexed(job) else "",
    }


def _always(count: Count) -> Body:
    """Counters that are shown even when they are zero."""
    ready_pods = sum(is_ready(pod) for pod in count.active)
    return {"ready": ready_pods, "terminating": count.terminating, "uncountedTerminatedPods": {}}


def _said(job: Body, type_: str, reason: str, message: str) -> Body:
    return condition(job, type_, "True", reason, message, lastProbeTime=moment(job))


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


def _frozen_completions(old: Body, new: Body, minor: int) -> Iterator[str]:
    """Of an Indexed Job they may change together with parallelism."""
    was, wanted = dig(old, "spec", "completions"), dig(new, "spec", "completions")
    if was == wanted:
        return
    if not _is_indexed(new):
        yield invalid("spec.completions", scalar(wanted, minor))
    elif wanted is not None and wanted != dig(new, "spec", "parallelism"):
        words = "can only be modified in tandem with spec.parallelism"
        yield invalid("spec.completions", scalar(wanted, minor), words)


def _comparable(old: Body, job: Body) -> Body:
    """The template of `job` without what may change: where to run, as long as nothing of `old` ever ran."""
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
        frozen=frozen,
        default=default,
        prepare=prepare,
        deadline=deadline,
        ready=ready,
    ),
)
