"""Hooks that run before what they need is made. Three rules share this; they differ in the kind that is lacking."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import ends, ends_sentence, evidence_of, hook_needs, look_at
from seatrial.phrases.outcome import aftermath

BEFORE = ("pre-install", "pre-upgrade", "pre-rollback")


class Told(Struct, frozen=True):
    """What a rule of these tells beside what happened."""

    kinds: tuple[str, ...]
    """Of what is lacking."""
    instead: str


def too_early(rule: Rule, rehearsal: Rehearsal, case: Case, told: Told) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        if lack.need.object.kind in told.kinds and is_too_early(lack) and not only_upgrades(rehearsal, case, lack):
            yield _finding(rule, rehearsal, case, lack, told)


def is_too_early(lack: Lack) -> bool:
    """Whether what is lacking is made by the same act, after the hook."""
    return lack.event in BEFORE and (
        lack.why in ("plain", "later") or (lack.why == "never" and lack.action == "install")
    )


def only_upgrades(rehearsal: Rehearsal, case: Case, lack: Lack) -> bool:
    """Whether a fresh install is not concerned: pre-upgrade-hook-needs-newly-added-resource tells that better."""
    runs_first = hooks.runs_at(lack.hook.body, "install")
    return lack.event == "pre-upgrade" and not runs_first and Moment(rehearsal, case, lack.step).before is not None


def _finding(rule: Rule, rehearsal: Rehearsal, case: Case, lack: Lack, told: Told) -> Finding:
    moment = Moment(rehearsal, case, lack.step)
    assert lack.brought is not None
    return found(
        rule,
        moment,
        objects=[lack.hook.ref, lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, {_when(lack)}",
        details=(
            _order(lack),
            ends_sentence(rehearsal, case, lack),
            aftermath(moment, lack.hook.ref),
            _elsewhere(lack),
            told.instead,
        ),
        places=[lack.hook.place(*lack.need.field), lack.brought.place("metadata", "name")],
        evidence=evidence_of(rehearsal, case, lack),
        confirm=look_at(lack),
    )


def _when(lack: Lack) -> str:
    match lack.why:
        case "plain":
            return "which Helm makes only after its hooks"
        case "never":
            return f"which is a hook that no {lack.action} runs"
        case _:
            return "which is a hook that Helm runs later"


def _order(lack: Lack) -> str:
    assert lack.brought is not None
    if lack.why == "plain":
        return (
            f"{lack.need.object} is a plain object of the release. Helm makes those when all {lack.event} hooks have "
            "ended, and waits for this one to end first."
        )
    if lack.why == "never":
        events = ", ".join(hooks.events_of(lack.brought.body))
        return f"{lack.need.object} is a hook of {events} only, and {lack.hook.ref} one of {lack.event} as well."
    weights = hooks.weight_of(lack.hook.body), hooks.weight_of(lack.brought.body)
    if lack.event in hooks.events_of(lack.brought.body):
        return (
            f"Helm runs hooks one after the other, by weight, and waits for each: {lack.hook.ref} has weight "
            f"{weights[0]}, {lack.need.object} has {weights[1]}."
        )
    events = ", ".join(hooks.events_of(lack.brought.body))
    return f"{lack.need.object} is a hook of {events}, and comes when the {lack.event} hooks have ended."


def _elsewhere(lack: Lack) -> str:
    """Why nobody noticed so far."""
    if lack.why != "plain" or not hooks.runs_at(lack.hook.body, "upgrade"):
        return ""
    return "On a cluster that has the release already it is there, and upgrades work: that hides it."
