"""Trial files: the steps and assumptions of a plan as YAML, with or without what must be so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seatrial.generate.yamltext import comment, document
from seatrial.model.errors import CannotContinue
from seatrial.model.finding import Finding
from seatrial.model.options import CheckOptions
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.model.trial import Expectations, Step, StepExpectation
from seatrial.plan.plan import Plan

NOT_WRITTEN = {
    "set_string": "--set-string",
    "set_file": "--set-file",
    "set_json": "--set-json",
    "set_literal": "--set-literal",
}
EXISTS_MAX = 100
HELPERS = ("Job", "Pod")
"""Kinds that come and go by design."""


def refuse_what_has_no_place(options: CheckOptions) -> None:
    """Refuse flags that a trial file cannot say."""
    for name, flag in NOT_WRITTEN.items():
        if getattr(options.values, name):
            raise CannotContinue(f"{flag}: a trial file cannot say this; write the value into a values file")
    if options.charts or options.api_versions or options.include_crds:
        flag = "--chart" if options.charts else "--api-versions" if options.api_versions else "--include-crds"
        raise CannotContinue(f"{flag}: a trial file cannot say this; pass it to seatrial run as well")


def trial(plan: Plan, options: CheckOptions) -> str:
    """The trial of these options, as a file beside the input."""
    steps = [_step(planned.step, options) for planned in plan.steps]
    return _head("Run it with seatrial check or seatrial run.") + document(_file(plan, options, steps, None))


def test(plan: Plan, options: CheckOptions, rehearsal: Rehearsal, findings: Sequence[Finding]) -> str:
    """The same with what is so now: outcomes, what exists, what is never deleted, and which rules report nothing."""
    steps = []
    for number, planned in enumerate(plan.steps):
        expect = _expected(number, rehearsal, plan.case)
        steps.append(_step(planned.step, options) | {"expect": expect})
    known = tuple(dict.fromkeys(finding.rule for finding in findings))
    whole = Expectations(_never_deleted(rehearsal, plan.case), ("ST",), known)
    found = [f"{finding.rule} is reported today and allowed here: {finding.message}" for finding in findings]
    head = _head("Run it with seatrial run: it fails as soon as one of this is no longer so.", *dict.fromkeys(found))
    return head + document(_file(plan, options, steps, whole))


def _head(*texts: str) -> str:
    return "".join(f"{line}\n" for text in texts for line in comment(text))


def _file(
    plan: Plan, options: CheckOptions, steps: list[dict[str, Any]], expect: Expectations | None
) -> dict[str, Any]:
    assume = {
        "kubernetes": options.kube_version,
        "only": options.assume_only,
        "absent": list(options.absent),
        "objects": list(options.assume),
    }
    written: dict[str, Any] = {
        "engine": options.engines[0] if options.engines else plan.engine.name,
        "namespace": options.namespace,
        "release": options.release_name,
        "assume": {key: value for key, value in assume.items() if value},
        "steps": steps,
    }
    if expect is not None:
        written["expect"] = _plain(expect)
    return {key: value for key, value in written.items() if value}


def _plain(expectation: Expectations | StepExpectation) -> dict[str, Any]:
    """As YAML has it, without what says nothing."""
    written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(expectation))
    return {key: value for key, value in written.items() if value}


def _step(step: Step, options: CheckOptions) -> dict[str, Any]:
    values = options.values
    deploys = bool(step.source) and step.action not in ("delete",)
    what: Any = step.source or (step.revision or None)
    beside = {
        "values": [*step.values, *(values.files if deploys else ())],
        "set": [*step.set, *(values.set if deploys else ())],
        "flags": list(step.flags),
        "repos": dict(entry.partition("=")[::2] for entry in options.repos) | step.repos,
    }
    return {step.action: what if what is not None else {}} | {key: value for key, value in beside.items() if value}


def _expected(number: int, rehearsal: Rehearsal, case: Case) -> dict[str, Any]:
    """The outcome of a step, and the objects of its release that are there after it."""
    ended = rehearsal.steps[number]
    release = case.releases[number]
    there: list[str] = []
    if release is not None and ended.outcome == "ok" and ended.role in ("install", "replace", "back"):
        gone = {*ended.missing, *(ref for ref in ended.deleted if ref not in ended.recreated)}
        refs = dict.fromkeys(resource.ref for resource in (*release.crds, *release.resources))
        exists = [ref for ref in refs if ref not in gone and _is_live(rehearsal, ref, number)]
        there = sorted(str(ref) for ref in exists if ref.kind not in HELPERS)[:EXISTS_MAX]
    absent: list[str] = []
    if ended.outcome == "ok" and ended.role == "remove":
        there = sorted(str(ref) for ref in ended.orphans if ref.kind not in HELPERS)[:EXISTS_MAX]
        absent = sorted(str(ref) for ref in ended.deleted if ref.kind not in HELPERS)[:EXISTS_MAX]
    expectation = StepExpectation(ended.outcome, tuple(there), tuple(absent))
    return _plain(expectation)


def _is_live(rehearsal: Rehearsal, ref: Any, step: int) -> bool:
    last = [e.effect for e in rehearsal.of_object(ref) if e.step <= step and e.effect in LASTING]
    return bool(last) and last[-1] != "deleted"


LASTING = ("created", "changed", "unchanged", "deleting", "deleted")


def _never_deleted(rehearsal: Rehearsal, case: Case) -> tuple[str, ...]:
    """Objects of the releases that no step deletes, except those that remove them."""
    refs = {resource.ref for resource in case.all_resources() if resource.ref.kind not in HELPERS}
    kept = []
    for ref in sorted(refs):
        events = list(rehearsal.of_object(ref))
        deleted = [e for e in events if e.effect == "deleted" and e.step >= 0]
        if any(e.effect == "created" for e in events) and all(
            rehearsal.steps[e.step].role == "remove" for e in deleted
        ):
            kept.append(str(ref))
    return tuple(kept)
