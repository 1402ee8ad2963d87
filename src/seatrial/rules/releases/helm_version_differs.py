"""A step succeeds with one major version of Helm and fails with the other.

## What happens
Helm 4 behaves differently from Helm 3. It uses server-side apply, where Helm 3 creates and patches; it knows webhook
configurations and creates them before custom resources, where Helm 3 sorts both by kind name; it no longer waits until
the CRDs of `crds/` are served or until a deleted hook is gone; and its `--wait` checks the `Ready` condition of custom
resources. So some charts deploy with only one of them, and a team that uses both, or a pipeline that moves from one to
the other, sees a failure although nothing changed.

seatrial rehearses the trial a second time, on its own cluster, with the other version: a model of Helm 3 beside the
built-in Helm 4, or the built-in Helm 4 if `--helm-binary` is a Helm 3. It reports the first step that succeeds with one
and fails with the other; later steps cannot be compared. It is always a `may`: a chart does not say which version
deploys it. If another finding explains the failure, that one also says which version works.
[The differences](../helm-3-and-4.md), one by one.

## Example
```yaml
kind: Deployment
metadata:
  name: gate
spec:
  replicas: 2        # a user applies 5: Helm 3 sets 2 again, Helm 4 fails with "Apply failed with 1 conflict"
```

## Instead
Write charts that work with both: hooks with `before-hook-creation`; objects that are either a hook or a regular
resource; custom resources in a later release or hook than the webhook that validates them; no field that a controller
also writes. Or pin the Helm version in every pipeline.

## Fix safety
There is no general fix: the finding names the version that fails, and the page of the underlying hazard has the fix.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from seatrial.evidence.copies import differing_copies
from seatrial.evidence.faults import has_fault
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.refusal import Refusal
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref
from seatrial.model.timeline import Rehearsal, StepResult

Shown = Literal["exists", "null", "webhook", "conflict", "unserved", "terminating", "unknown field", "crds"]
POSTS = "Helm 3 fails on an object that already exists; Helm 4 uses server-side apply and merges into it"
WHY: dict[str, tuple[tuple[Shown, str], ...]] = {
    "3": (
        ("exists", f"{POSTS}."),
        ("null", "Helm 3 treats fields that it did not write as removed from the chart, and tries to remove them."),
        (
            "webhook",
            "Helm 3 has no order for webhook configurations: it sorts them among the custom resources, which come "
            "last.",
        ),
    ),
    "4": (
        ("conflict", "Helm 3 overwrites changes by others; Helm 4 does so only with --force-conflicts."),
        ("unserved", "Helm 3 waits until the CRDs of crds/ are served; Helm 4 only does with --wait."),
        (
            "webhook",
            "Helm 4 creates webhook configurations before custom resources; Helm 3 sorts both by kind name.",
        ),
        (
            "terminating",
            "Helm 3 waits until a deleted hook is gone; Helm 4 continues at once unless it runs with --wait.",
        ),
        ("unknown field", "With Helm 4 the server rejects unknown fields; with Helm 3 it drops them."),
        ("crds", "Helm 3 leaves existing CRDs of crds/ as they are; Helm 4 applies them."),
    ),
}
"""By the version that fails: the difference that its failure shows."""
WORDS_MAX = 400


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    other = rehearsal.otherwise
    if other is None:
        return
    for step, (ended, otherwise) in enumerate(zip(rehearsal.steps, other.steps, strict=False)):
        if _is_well(ended) != _is_well(otherwise):
            fails = other if _is_well(ended) else rehearsal
            objects = list(dict.fromkeys(_to_blame(Moment(fails, case, step))))
            if not _has_its_own_rule(case, step, fails, objects):
                yield _finding(Moment(rehearsal, case, step), other, objects)
            return


def _has_its_own_rule(case: Case, step: int, fails: Rehearsal, objects: list[Ref]) -> bool:
    """The rules for existing hooks and duplicate objects report Helm 3's failure themselves."""
    release = case.releases[step]
    if release is None or _major(fails) != "3" or "exists" not in _shown(Moment(fails, case, step)):
        return False
    made = {resource.ref for resource in release.resources if hooks.is_hook(resource.body)}
    return not {*made, *differing_copies(release)}.isdisjoint(objects)


def _is_well(ended: StepResult) -> bool:
    return "ok" in (ended.outcome, ended.again)


def _finding(moment: Moment, other: Rehearsal, objects: list[Ref]) -> Finding:
    fails, works = (other, moment.rehearsal) if _is_well(moment.ended) else (moment.rehearsal, other)
    ended = fails.steps[moment.index]
    bad, good = _major(fails), _major(works)
    about = f" at {objects[0]}" if objects else ""
    act = " ".join((ended.action, *ended.flags))
    well = "works" if works.steps[moment.index].outcome == "ok" else "works on retry"
    return found(
        RULE,
        moment,
        objects=objects,
        damage="failed-deploy",
        certainty="may",
        message=f"helm {act} {well} with Helm {good} and fails with Helm {bad}{about}",
        details=(
            f"Helm {bad} {'hangs' if ended.outcome == 'hung' else 'reports'}: {_shortened(ended.error)}",
            _refusal(Moment(fails, moment.case, moment.index)),
            _why(Moment(fails, moment.case, moment.index)),
        ),
        places=_places(moment.case, moment.index, objects),
        confirm="helm version --short  # wherever this release is deployed from",
    )


def _major(rehearsal: Rehearsal) -> str:
    return rehearsal.engine.major


def _to_blame(moment: Moment) -> Iterator[Ref]:
    """What it waits for, or what the API server rejected last."""
    ended = moment.ended
    yield from ended.waits_for
    refused = [e for e in moment.events() if e.actor == "helm" and e.effect == "refused"]
    named = list(moment.rehearsal.refusals_of(ended.failure))
    yield from (event.object for event in (named or refused)[-1:])


def _refusal(moment: Moment) -> str:
    """The API server's error, if Helm does not show it."""
    refused = [e.message for e in moment.events() if e.actor == "helm" and e.effect == "refused"]
    if not refused or any(words in moment.ended.error for words in refused):
        return ""
    return f"The API server reports: {_shortened(refused[-1])}"


def _shortened(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= WORDS_MAX else line[:WORDS_MAX].rpartition(" ")[0] + " ..."


def _why(moment: Moment) -> str:
    shown = set(_shown(moment))
    return next((why for what, why in WHY[_major(moment.rehearsal)] if what in shown), "")


def _shown(moment: Moment) -> Iterator[Shown]:
    """What the failure of a step shows of the difference."""
    ended, release = moment.ended, moment.release
    if ended.action == "install" and has_fault(ended.failure, "unserved"):
        yield "unserved"
    for event in moment.rehearsal.refusals_of(ended.failure):
        if event.refusal is not None:
            yield from _shown_by(event.refusal)
        if release is not None and any(crd.ref == event.object for crd in release.crds):
            yield "crds"


def _shown_by(refusal: Refusal) -> Iterator[Shown]:
    if refusal.terminating is not None:
        yield "terminating"
    if refusal.reason == "AlreadyExists":
        yield "exists"
    if refusal.call is not None and refusal.call.webhook:
        yield "webhook"
    if refusal.by == "unknown-field":
        yield "unknown field"
    if refusal.by == "unchangeable" and any(cause.value == "null" for cause in refusal.causes):
        yield "null"
    if any(cause.reason == "FieldManagerConflict" for cause in refusal.causes):
        yield "conflict"


def _places(case: Case, step: int, objects: list[Ref]) -> list[Pointer]:
    written = (case.written(step, ref) for ref in objects)
    return [resource.place("kind") for resource in written if resource]


RULE = Rule("ST703", "helm-version-differs", check)
