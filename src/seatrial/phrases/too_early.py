"""Findings of hooks that run before the object they need exists. Three rules share them, one for each kind."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import ends_sentence, hook_lacks
from seatrial.phrases.outcome import after_failure

BEFORE = ("pre-install", "pre-upgrade", "pre-rollback")


def too_early(rule: Rule, rehearsal: Rehearsal, case: Case, *, kinds: tuple[str, ...]) -> Iterator[Finding]:
    """A finding for each hook that needs an object of one of these kinds before Helm creates it."""
    for lack in lacks(rehearsal, case):
        moment = Moment(rehearsal, case, lack.step)
        if lack.need.object.kind in kinds and is_too_early(lack) and not only_upgrades(moment, lack):
            details = (
                _order(lack),
                ends_sentence(moment, lack),
                after_failure(moment, lack.hook.ref),
                _upgrades_work(lack),
            )
            yield hook_lacks(rule, moment, lack, _when(lack), details)


def is_too_early(lack: Lack) -> bool:
    """Whether the same step creates the missing object after the hook."""
    return lack.event in BEFORE and (
        lack.why in ("regular", "later") or (lack.why == "never" and lack.action == "install")
    )


def only_upgrades(moment: Moment, lack: Lack) -> bool:
    """Whether a fresh install is not affected; pre-upgrade-hook-needs-newly-added-resource reports those."""
    runs_at_install = hooks.runs_at(lack.hook.body, "install")
    return lack.event == "pre-upgrade" and not runs_at_install and moment.before is not None


def _when(lack: Lack) -> str:
    match lack.why:
        case "regular":
            return "which comes later"
        case "never":
            return f"a hook not run on {lack.action}"
        case _:
            return "a hook that Helm runs later"


def _order(lack: Lack) -> str:
    assert lack.brought is not None
    if lack.why == "regular":
        return (
            f"{lack.need.object} is a regular resource. Helm creates regular resources after all {lack.event} hooks "
            "have completed."
        )
    if lack.why == "never":
        events = ", ".join(hooks.events_of(lack.brought.body))
        return f"{lack.need.object} is a hook for {events} only, but {lack.hook.ref} also runs at {lack.event}."
    weights = hooks.weight_of(lack.hook.body), hooks.weight_of(lack.brought.body)
    if lack.event in hooks.events_of(lack.brought.body):
        return (
            f"Helm runs hooks one at a time, by weight, and waits for each: {lack.hook.ref} has weight {weights[0]}, "
            f"{lack.need.object} has weight {weights[1]}."
        )
    events = ", ".join(hooks.events_of(lack.brought.body))
    return f"{lack.need.object} is a hook for {events}. Helm runs it after the {lack.event} hooks."


def _upgrades_work(lack: Lack) -> str:
    if lack.why != "regular" or not hooks.runs_at(lack.hook.body, "upgrade"):
        return ""
    return "Upgrades of an existing release work, which hides the problem."
