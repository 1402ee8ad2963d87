"""Health checks for Argo CD in Lua: nil-safe, and never Healthy without a reason. Each is run before it is returned."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec import Struct

from seatrial.model.errors import CannotContinue
from seatrial.model.release import Resource
from seatrial.model.resource import Body, dig, listed
from seatrial.readiness.argocd import builtin, bundled, lua
from seatrial.readiness.argocd.examples import examples
from seatrial.readiness.argocd.verdict import DEGRADED, HEALTHY, PROGRESSING, HealthScript

VERSION = (99, 0)
"""Newer than any: every check that Argo CD has counts."""
READY_CONDITIONS = ("Ready", "Available", "Healthy", "Succeeded", "Complete", "Established")
FAILED_CONDITIONS = ("Degraded", "Failed", "Failure", "Stalled")
FAILED_REASONS = ("Error", "Failed", "Invalid", "InvalidSpec", "ReconcileError", "ReconciliationFailed")
READY_PHASES = (
    *("Active", "Available", "Bound", "Complete", "Completed", "Deployed", "Healthy", "Ready", "Running"),
    *("Succeeded", "Synced"),
)
FAILED_PHASES = ("CrashLoop", "Degraded", "Error", "Errored", "Failed", "Failure", "Invalid")
APPLICATION = ("argoproj.io", "Application")
EXPECTED = {
    "that was just created": PROGRESSING,
    "with an empty status": PROGRESSING,
    "without conditions": PROGRESSING,
    "that is progressing": PROGRESSING,
    "of an older generation": PROGRESSING,
    "that is ready": HEALTHY,
    "that is degraded": DEGRADED,
    "that is being deleted": PROGRESSING,
}


class HealthCheck(Struct, frozen=True):
    """The check of one kind."""

    group: str
    kind: str
    script: str
    reads: str
    """What it reads, as in sentences: `the condition Ready`."""


class Wanted(Struct, frozen=True):
    """What the user says of a kind."""

    conditions: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()


NO_WISHES = Wanted()


def health_check(group: str, kind: str, crd: Resource | None, wanted: Wanted = NO_WISHES) -> HealthCheck:
    """The check for a kind, from the status that its CRD describes; run on example states."""
    if (group, kind) == APPLICATION:
        return _proven(HealthCheck(group, kind, _APPLICATION, "status.health"), ("Ready", ""))
    if builtin.check_for(group, kind, VERSION) or bundled.check_for(group, kind, VERSION):
        raise CannotContinue(f"{kind}.{group}: Argo CD has a check for it already; your own would replace that")
    status = _status_schema(crd)
    if crd is not None and status is None and not (wanted.conditions or wanted.phases):
        raise CannotContinue(
            f"{kind}.{group}: its CRD has no status, so nothing tells whether it works; without a check Argo CD "
            "considers it healthy as soon as it exists"
        )
    phases, failed = _phases(status, wanted)
    conditions = wanted.conditions or (() if wanted.phases or _only_phases(status) else READY_CONDITIONS)
    script = _HEAD
    reads = []
    if conditions:
        script += _CONDITIONS % (_set(FAILED_CONDITIONS), _set(FAILED_REASONS), _set(conditions))
        reads.append(f"the condition {' or '.join(conditions)}")
    if phases:
        field = "phase" if status is None or dig(status, "properties", "phase") is not None else "state"
        script += _PHASES % (_set(phases), _set(failed), *(field,) * 4)
        reads.append(f"status.{field}")
    made = HealthCheck(group, kind, script + "return health\n", " and ".join(reads))
    return _proven(made, (conditions[0] if conditions else "None", phases[0] if phases else ""))


def _proven(made: HealthCheck, ready: tuple[str, str]) -> HealthCheck:
    """The check, if it returns what it must for every example state."""
    for example in examples(made.group, made.kind, ready):
        body = _as_state(example.body)
        verdict = lua.health(HealthScript(made.script), body)
        expected = EXPECTED[example.name]
        if verdict.broken or verdict.status != expected:
            said = verdict.message if verdict.broken else verdict.status
            raise CannotContinue(
                f"{made.kind}.{made.group}: the check for an object {example.name} returns {said}, not {expected}"
            )
    return made


def _as_state(body: Body) -> Body:
    """Examples with a phase also have it as a state, the other usual name of the field."""
    status = body.get("status")
    return {**body, "status": {"state": status["phase"], **status}} if status and "phase" in status else body


def _status_schema(crd: Resource | None) -> Body | None:
    versions = listed(crd.body, "spec", "versions") if crd is not None else []
    stored = [version for version in versions if isinstance(version, dict) and version.get("storage")]
    found = dig((stored or versions)[-1], "schema", "openAPIV3Schema", "properties", "status") if versions else None
    return found if isinstance(found, dict) else None


def _only_phases(status: Body | None) -> bool:
    fields = dig(status, "properties")
    return isinstance(fields, dict) and "conditions" not in fields and bool({"phase", "state"} & set(fields))


def _phases(status: Body | None, wanted: Wanted) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The phases of an object that is ready, and of one that failed."""
    if wanted.phases:
        return wanted.phases, FAILED_PHASES
    for field in ("phase", "state"):
        described = dig(status, "properties", field)
        if isinstance(described, dict):
            named = [str(value) for value in listed(described, "enum")]
            good = tuple(value for value in named if value.lower() in {word.lower() for word in READY_PHASES})
            bad = tuple(value for value in named if value.lower() in {word.lower() for word in FAILED_PHASES})
            return good or READY_PHASES, tuple(dict.fromkeys((*bad, *FAILED_PHASES)))
    return (), ()


def _set(words: tuple[str, ...]) -> str:
    return ", ".join(f"[{json.dumps(word)}] = true" for word in dict.fromkeys(words))


def kinds_without_check(resources: Iterator[Resource]) -> Iterator[tuple[str, str, Resource]]:
    """The kinds of CRDs with a status that Argo CD has no check for."""
    for resource in resources:
        group, kind = str(dig(resource.body, "spec", "group")), str(dig(resource.body, "spec", "names", "kind"))
        known = builtin.check_for(group, kind, VERSION) or bundled.check_for(group, kind, VERSION)
        if resource.ref.kind == "CustomResourceDefinition" and not known and _status_schema(resource) is not None:
            yield group, kind, resource


_HEAD = """\
local health = {status = "Progressing", message = "Waiting for the controller to report a status"}
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "Being deleted"
  return health
end
local status = obj.status
if status == nil then
  return health
end
if status.observedGeneration ~= nil and obj.metadata.generation ~= nil
    and status.observedGeneration < obj.metadata.generation then
  health.message = "Waiting for the controller to see the last change"
  return health
end
"""
_CONDITIONS = """\
local failures = {%s}
local reasons = {%s}
local ready = {%s}
for _, condition in ipairs(status.conditions or {}) do
  if failures[condition.type] and condition.status == "True" then
    return {status = "Degraded", message = condition.message or condition.reason or condition.type}
  end
end
for _, condition in ipairs(status.conditions or {}) do
  if ready[condition.type] and condition.status == "True" then
    health = {status = "Healthy", message = condition.message or ""}
  elseif ready[condition.type] and condition.status == "False" and reasons[condition.reason or ""] then
    return {status = "Degraded", message = condition.message or condition.reason}
  elseif ready[condition.type] then
    return {status = "Progressing", message = condition.message or condition.reason or "Not ready yet"}
  end
end
"""
_PHASES = """\
local good = {%s}
local bad = {%s}
if bad[status.%s or ""] then
  return {status = "Degraded", message = status.message or status.%s}
end
if good[status.%s or ""] then
  health = {status = "Healthy", message = status.message or ""}
elseif status.%s ~= nil then
  return {status = "Progressing", message = status.message or "Not ready yet"}
end
"""
_APPLICATION = """\
local health = {status = "Progressing", message = "Waiting for the first sync"}
if obj.metadata.deletionTimestamp ~= nil then
  health.message = "Being deleted"
  return health
end
if obj.status == nil or obj.status.health == nil or obj.status.health.status == nil then
  return health
end
return {status = obj.status.health.status, message = obj.status.health.message or ""}
"""
