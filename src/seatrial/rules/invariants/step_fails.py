"""A step fails or hangs, and no other finding explains why.

## What happens
Every step of a trial must succeed: `helm install`, a sync, `pulumi up`, `kubectl apply`. When a step fails, or waits
forever, the rules look for the cause. A rule that knows the cause reports it under its own name, with what to change.
If there is none, this finding is reported. It shows the engine's error, the object that it names, and the events that
led to it.

`will` means that the step fails on an ordinary cluster, on a slow one and on a fast one, even if it fails for different
reasons. `likely` means that it fails on an ordinary one, but not on all of them, and `may` that it does not, or that it
fails after a line of a script that is not followed: the finding names the line.

Steps that fail for the same reason are reported once. A step that fails only because an earlier one did - `has no
deployed releases` after a failed install - is not reported again.

## Example
```yaml
kind: Job
metadata:
  annotations: {helm.sh/hook: pre-install}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: migrate
          image: registry.example/migrate
          command: [sh, -c, "exit 1"]      # the install stops here
```

## Instead
Read the error first: it is the engine's own. `seatrial run` prints all events of the trial. If the step fails only
because a prerequisite is missing in the rehearsal, add it with `--assume FILE`.

## Fix safety
There is no automatic fix: the cause is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.evidence.breaches import Breaches, certain, unexplained
from seatrial.evidence.explained import explains
from seatrial.evidence.failures import StepFailure, failures
from seatrial.evidence.moment import found
from seatrial.evidence.unstarted import breaches
from seatrial.kinds.scripts.containers import RUNS_AT_LEAST
from seatrial.model.finding import Damage, Finding, Invariant, Reviewed, hazard
from seatrial.model.timeline import Event
from seatrial.phrases.breaches import quote_of, steps_sentence
from seatrial.phrases.headline import HEADLINE_MAX, fit_quote
from seatrial.phrases.objects import in_kubectl

FAILS: Damage = "failed-deploy"
CLUSTERS = {"ordinary": "an ordinary cluster", "lazy": "a slow cluster", "eager": "a fast cluster"}
SEEDED = "a seeded cluster"
WAITS = "waits for "
SHOWN = ("created", "deleting", "deleted", "said")
EVENTS_MAX = 6
NAMES_MAX = 3


class FailedStep(Struct, frozen=True):
    """How one step failed in one rehearsal, and the findings of that rehearsal that explain it."""

    failure: StepFailure
    explained_by: tuple[Finding, ...]

    @property
    def schedule(self) -> str:
        return self.failure.moment.rehearsal.schedule


class UnexplainedFailure(Struct, frozen=True):
    """A failed step that no rule explains."""

    failed: tuple[FailedStep, ...]
    """Its failures, one per rehearsal, unexplained ones first; without failures that follow from an earlier step."""
    schedules: tuple[str, ...]
    """The schedules under which it failed."""

    @property
    def failure(self) -> StepFailure:
        return self.failed[0].failure


def check(trial: Sequence[Reviewed]) -> Iterator[Finding]:
    sure_hazards, unstarted = certain(trial), list(unexplained(trial, breaches))
    by_step: dict[int, list[FailedStep]] = {}
    told: set[tuple[int, str]] = set()
    for failed in (failed for reviewed in trial for failed in _failed_steps(reviewed)):
        if any(_cannot_start(failed, group) for group in unstarted):
            told.add((failed.failure.step, failed.schedule))
        else:
            by_step.setdefault(failed.failure.step, []).append(failed)
    alike: list[list[UnexplainedFailure]] = []
    for step, failed_alike in sorted(by_step.items()):
        every = (one.rehearsal.schedule for one in trial if one.rehearsal.steps[step].outcome != "ok")
        schedules = [schedule for schedule in every if (step, schedule) not in told]
        left = [one for one in failed_alike if not one.explained_by]
        sure = any(hazard(finding) in sure_hazards for one in failed_alike for finding in one.explained_by)
        if not left and (sure or len(schedules) < len(trial)):
            continue
        first, *others = sorted(failed_alike, key=lambda one: one.explained_by != ())
        breach = UnexplainedFailure((first, *others), tuple(dict.fromkeys((first.schedule, *schedules))))
        same = (group for group in alike if group[0].failure.reasons & breach.failure.reasons)
        group = next(same, None)
        if group is None:
            alike.append([breach])
        else:
            group.append(breach)
    yield from map(_finding, alike)


def _cannot_start(failed: FailedStep, group: Breaches) -> bool:
    """Whether the step waits for pods that cannot start: the invariant of that name reports it, with the cause."""
    failure = failed.failure
    if failure.step not in group.steps or failed.schedule not in group.schedules:
        return False
    return not failed.explained_by and not set(failure.objects).isdisjoint(group.objects)


def _failed_steps(reviewed: Reviewed) -> Iterator[FailedStep]:
    """The failed steps of one rehearsal, without those that fail only because an earlier one did."""
    before: list[FailedStep] = []
    for failure in failures(reviewed.rehearsal, reviewed.case):
        direct = [finding for finding in reviewed.findings if explains(finding, failure)]
        alike = [f for one in before if one.failure.reasons & failure.reasons for f in one.explained_by]
        before.append(FailedStep(failure, (*direct, *alike)))
    yield from (one for one in before if one.failure.follows is None)


def _finding(breaches: list[UnexplainedFailure]) -> Finding:
    """One finding for the steps of a trial that fail for the same reason."""
    first = breaches[0]
    failure = first.failure
    others = [one for one in first.failed if not _fails_alike(one.failure, failure)]
    written = (failure.moment.case.written(failure.step, ref) for ref in failure.objects[:NAMES_MAX])
    finding = found(
        INVARIANT,
        failure.moment,
        objects=failure.objects[:NAMES_MAX],
        damage=FAILS,
        message=_for_two_reasons(failure) if others else _message([breach.failure for breach in breaches]),
        details=(
            _numbers(breaches),
            *((_in_cluster(one) for one in (first.failed[0], *others)) if others else (_quoted(failure),)),
        ),
        places=[resource.place("metadata", "name") for resource in written if resource],
        evidence=_evidence(failure),
        confirm=f"kubectl describe {in_kubectl(failure.objects[0])}" if failure.hung and failure.objects else "",
        cause=failure.cause,
        way_out=_way_out(failure),
    )
    widest = max(breaches, key=lambda breach: len(breach.schedules))
    seen = tuple(dict.fromkeys((*first.schedules, *widest.schedules)))
    return replace(finding, schedules=seen, timeless=_is_timeless(failure))


def _fails_alike(one: StepFailure, other: StepFailure) -> bool:
    """Whether two rehearsals fail for the same reason, if not at once, then when the step is repeated."""
    return bool(one.reasons & other.reasons) or one.moment.ended.again == other.moment.ended.outcome


def _way_out(failure: StepFailure) -> Iterator[str]:
    """For a script that outlasts the wait; else the usual one."""
    if failure.hung and failure.objects and RUNS_AT_LEAST in failure.cause:
        yield (
            f"Give {failure.moment.act} a longer timeout than the script of {failure.objects[0]} takes. Or shorten the "
            "script, or move its work to where nothing waits for it."
        )


def _is_timeless(failure: StepFailure) -> bool:
    """Whether a slower or a faster cluster would refuse it as well: an invalid, immutable or forbidden object."""
    refusals = [event.refusal for event in failure.events if event.effect == "refused" and event.refusal]
    return bool(refusals) and all(
        refusal.denied or refusal.by or (refusal.reason == "Invalid" and not (refusal.call or refusal.terminating))
        for refusal in refusals
    )


def _message(alike: list[StepFailure]) -> str:
    """`helm install and helm upgrade fail at Job/default/migrate: Job Failed`"""
    *acts, last = dict.fromkeys(failure.moment.act for failure in alike)
    verb = ("hang" if alike[0].hung else "fail") + ("" if acts else "s")
    return fit_quote(f"{' and '.join(filter(None, (', '.join(acts), last)))} {verb}", _what(alike[0]))


def _for_two_reasons(failure: StepFailure) -> str:
    verb = "hangs" if failure.hung else "fails"
    return f"{failure.moment.act} {verb} on every cluster, for different reasons"


def _what(failure: StepFailure) -> str:
    if failure.hung and failure.cause.startswith(WAITS):
        return f" waiting for {failure.cause.removeprefix(WAITS)}"
    about = next((f" at {ref}" for ref in failure.objects[:1] if str(ref) not in failure.cause), "")
    return f"{about}: {failure.cause}"


def _in_cluster(one: FailedStep) -> str:
    rules = ", ".join(dict.fromkeys(finding.rule for finding in one.explained_by))
    verb = "hangs" if one.failure.hung else "fails"
    return f"On {CLUSTERS.get(one.schedule, SEEDED)} it {verb}{_what(one.failure)}{f' ({rules})' if rules else ''}"


def _numbers(breaches: list[UnexplainedFailure]) -> str:
    verb = "hang" if breaches[0].failure.hung else "fail"
    return steps_sentence((breach.failure.step for breach in breaches), f"{verb} for this reason")


def _quoted(failure: StepFailure) -> str:
    """The whole error, where the message does not have it already."""
    shown = len(f"{failure.moment.act} hangs{_what(failure)}") <= HEADLINE_MAX
    if shown and (failure.hung or failure.moment.ended.error.split() == failure.cause.split()):
        return ""
    return quote_of(failure.moment)


def _evidence(failure: StepFailure) -> list[Event]:
    """The events behind the error; where it repeats none, what last happened to the objects."""
    own = [event for event in failure.events if event.step == failure.step]
    about = (e for e in failure.moment.events() if e.object in failure.objects and e.effect in SHOWN)
    return (own or list(about))[-EVENTS_MAX:]


INVARIANT = Invariant("ST001", "step-fails", check)
