"""Validation of pod controllers: apps, batch, autoscaling and disruption budgets."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.cluster.validation import Rules, names
from seatrial.cluster.validation.causes import (
    each,
    forbidden,
    internal,
    invalid,
    required,
    unsupported,
)
from seatrial.cluster.validation.cron import schedule_fault, zone_faults
from seatrial.cluster.validation.pods import template_problems
from seatrial.cluster.validation.scalars import (
    is_zero,
    no_more_than_all,
    not_negative,
    number_or_percent,
    one_of,
    selector,
)
from seatrial.cluster.validation.storage import claim_problems
from seatrial.kinds.core.selection import fits
from seatrial.model.resource import Body, metadata

_STRATEGY = ("Type", "RollingUpdate")
_CRON_NAME_MAX = 52
"""For a CronJob's name, so that its Jobs' names stay within 63."""


def _deployment(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    yield from not_negative("spec", spec, "replicas")
    yield from _replicated(spec, "deployment", "invalid label selector")
    yield from _deployment_strategy(spec.get("strategy") or {})
    yield from not_negative("spec", spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _replica_set(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    yield from not_negative("spec", spec, "replicas", "minReadySeconds")
    yield from _replicated(spec, "deployment", "invalid label selector")


def _replicated(spec: Body, called: str, bad_selector: str, claims: frozenset[str] = frozenset()) -> Iterator[str]:
    """The selector and template of a kind that keeps pods running."""
    chosen = spec.get("selector")
    if chosen is None:
        yield required("spec.selector")
    else:
        faults = list(selector("spec.selector", chosen))
        yield from faults
        if not chosen.get("matchLabels") and not chosen.get("matchExpressions"):
            yield invalid("spec.selector", chosen, f"empty selector is invalid for {called}")
        if faults:
            yield invalid("spec.selector", chosen, bad_selector).removesuffix(": ")
            return
    template = spec.get("template") or {}
    yield from _labels_fit(chosen, template)
    yield from template_problems("spec.template", template, claims)
    yield from _always_restarts(template, "ReplicaSet" if called == "deployment" else "StatefulSet")


def _labels_fit(chosen: Body | None, template: Body) -> Iterator[str]:
    labels = metadata(template).get("labels")
    # A missing selector matches nothing; an empty one matches everything.
    if chosen is None or not fits(labels or {}, chosen):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _always_restarts(template: Body, called: str) -> Iterator[str]:
    spec = template.get("spec") or {}
    policy = spec.get("restartPolicy")
    if policy not in (None, "", "Always"):
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {called} is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def _deployment_strategy(strategy: Body) -> Iterator[str]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                yield forbidden(
                    "spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"
                )
        case None | "" | "RollingUpdate":
            yield from _rolling_deployment(rolling or {})
        case _:
            yield unsupported("spec.strategy", internal(strategy, _STRATEGY), ("Recreate", "RollingUpdate"))


def _rolling_deployment(rolling: Body) -> Iterator[str]:
    at = "spec.strategy.rollingUpdate"
    for key in ("maxUnavailable", "maxSurge"):
        if rolling.get(key) is not None:
            yield from number_or_percent(f"{at}.{key}", rolling[key])
    if is_zero(rolling.get("maxUnavailable")) and is_zero(rolling.get("maxSurge")):
        yield invalid(f"{at}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
    if rolling.get("maxUnavailable") is not None:
        yield from no_more_than_all(f"{at}.maxUnavailable", rolling["maxUnavailable"])


def _stateful_set(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy and policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _stateful_strategy(spec.get("updateStrategy") or {})
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for key in ("whenDeleted", "whenScaled"):
        at = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
        yield from one_of(at, retention.get(key), ("Retain", "Delete"))
    templates = spec.get("volumeClaimTemplates") or []
    for index, template in enumerate(templates):
        yield from claim_problems(f"spec.volumeClaimTemplates[{index}].spec", template.get("spec") or {})
    yield from not_negative("spec", spec, "replicas", "minReadySeconds")
    yield from not_negative("spec.ordinals", spec.get("ordinals") or {}, "start")
    if service := spec.get("serviceName"):
        yield from each("spec.serviceName", service, names.label(service))
    claims = frozenset(str(metadata(template).get("name") or "") for template in templates)
    yield from _replicated(spec, "statefulset", "", claims)


def _stateful_strategy(strategy: Body) -> Iterator[str]:
    rolling = strategy.get("rollingUpdate")
    at = "spec.updateStrategy"
    match strategy.get("type"):
        case "OnDelete":
            if rolling is not None:
                shown = internal(rolling, ("Partition", "MaxUnavailable"))
                yield invalid(f"{at}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
        case None | "" | "RollingUpdate":
            yield from not_negative(f"{at}.rollingUpdate", rolling or {}, "partition")
        case _:
            yield invalid(at, internal(strategy, _STRATEGY), "must be 'RollingUpdate' or 'OnDelete'")


def _daemon_set(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    chosen, template = spec.get("selector"), spec.get("template") or {}
    faults = list(selector("spec.selector", chosen or {}))
    yield from faults
    if not faults:
        yield from _labels_fit(chosen, template)
    if chosen is not None and not chosen.get("matchLabels") and not chosen.get("matchExpressions"):
        yield invalid("spec.selector", chosen, "empty selector is invalid for daemonset")
    yield from template_problems("spec.template", template)
    yield from _always_restarts(template, "DaemonSet")
    yield from not_negative("spec", spec, "minReadySeconds")
    yield from _daemon_strategy(spec.get("updateStrategy") or {})
    yield from not_negative("spec", spec, "revisionHistoryLimit")


def _daemon_strategy(strategy: Body) -> Iterator[str]:
    at = "spec.updateStrategy.rollingUpdate"
    match strategy.get("type"):
        case "OnDelete":
            return
        case None | "" | "RollingUpdate":
            rolling = strategy.get("rollingUpdate") or {}
            for key in ("maxUnavailable", "maxSurge"):
                if rolling.get(key) is not None:
                    yield from number_or_percent(f"{at}.{key}", rolling[key])
            if is_zero(rolling.get("maxUnavailable")) and is_zero(rolling.get("maxSurge") or 0):
                yield required(f"{at}.maxUnavailable", "cannot be 0 when maxSurge is 0")
        case _:
            yield unsupported("spec.updateStrategy", internal(strategy, _STRATEGY), ("RollingUpdate", "OnDelete"))


def _job(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    if spec.get("manualSelector"):
        if spec.get("selector") is None:
            yield required("spec.selector")
        yield from _labels_fit(spec.get("selector"), spec.get("template") or {})
    yield from _job_spec("spec", spec, name=str(metadata(body).get("name") or ""))


def _job_spec(at: str, spec: Body, name: str = "") -> Iterator[str]:
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from not_negative(at, spec, *numbers)
    mode = spec.get("completionMode")
    yield from one_of(f"{at}.completionMode", mode, ("NonIndexed", "Indexed"))
    # A Job's name becomes a label of its pods.
    if len(name) > 63:
        yield from each(f"{at}.template.labels", name, names.label_value(name))
    template = spec.get("template") or {}
    yield from template_problems(f"{at}.template", template)
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy in (None, "", "Always"):
        yield required(f"{at}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(f"{at}.template.spec.restartPolicy", policy, ("OnFailure", "Never"))


def _cron_job(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    schedule = spec.get("schedule")
    if not schedule:
        yield required("spec.schedule")
    else:
        if fault := schedule_fault(schedule):
            yield invalid("spec.schedule", schedule, fault)
        if "TZ" in schedule:
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            yield invalid("spec.schedule", schedule, detail)
    yield from not_negative("spec", spec, "startingDeadlineSeconds")
    if (zone := spec.get("timeZone")) is not None:
        yield from (invalid("spec.timeZone", zone, fault) for fault in zone_faults(zone))
    yield from one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), ("Allow", "Forbid", "Replace"))
    yield from _job_spec("spec.jobTemplate.spec", (spec.get("jobTemplate") or {}).get("spec") or {})
    yield from not_negative("spec", spec, "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    name = str(metadata(body).get("name") or "")
    if len(name) > _CRON_NAME_MAX:
        yield invalid("metadata.name", name, f"must be no more than {_CRON_NAME_MAX} characters")


def _budget(body: Body) -> Iterator[str]:
    spec = body.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        fields = ("MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy")
        yield invalid("spec", internal(spec, fields), "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        if (value := spec.get(key)) is not None:
            yield from number_or_percent(f"spec.{key}", value)
            yield from no_more_than_all(f"spec.{key}", value)
    yield from selector("spec.selector", spec.get("selector") or {})


RULES: Rules = {
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("policy", "PodDisruptionBudget"): _budget,
}
