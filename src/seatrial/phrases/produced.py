"""Findings about objects that operators produce, and that a step waits for although they cannot come yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from seatrial.evidence import described
from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.hooks.runs import Lack, acted_on, done_by_helm, event_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.kinds.operators.table import role_for, workload_of
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal, StepResult
from seatrial.phrases.hooks import ends, ends_sentence, hook_timeout, how, said_of, wait_timeout
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import after_failure

IMAGE = "ImageStreamTag"
IN_A_CYCLE = "Give {} its credentials in a Secret that does not come from itself: nothing else ends this cycle."
Why = Literal["producer", "operator", "cycle", "trouble"]


class Awaited(Struct, frozen=True):
    """A need of an object that Helm waits for, which no operator produces meanwhile."""

    step: int
    user: Resource
    need: Need
    producer: Resource
    why: Why
    """What is missing: the source object, the operator, or something that one of them needs."""
    operator: Resource | None = None
    store: Resource | None = None
    """For a cycle: what the source object waits for, which waits for the product."""


def awaited(rehearsal: Rehearsal, case: Case) -> Iterator[Awaited]:
    """Under Helm and Flux; for Argo CD wave-blocked-by-never-healthy reports the wave that blocks."""
    if is_argocd(rehearsal):
        return
    seen: set[tuple[Ref, Ref]] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        if moment.ended.outcome == "ok" or release is None:
            continue
        for user in (r for r in release.resources if r.ref in moment.ended.waits_for):
            for need in needs_of(user):
                lacking = need.object in moment.ended.lacking and not need.optional and not need.guess
                if not lacking or release.find(need.object) is not None:
                    continue
                producer = _producer(case, need.object)
                if producer is None:
                    continue
                if not _is_deleted(moment, producer) and (user.ref, need.object) not in seen:
                    seen.add((user.ref, need.object))  # Later steps wait for the same reason.
                    yield _explained(moment, user, need, producer)


def finding_about(rule: Rule, rehearsal: Rehearsal, case: Case, one: Awaited, instead: str) -> Finding:
    """The finding of a rule about one waiting object."""
    moment = Moment(rehearsal, case, one.step)
    event = event_of(moment, one.user)
    hook = f"the {event} hook " if event else ""
    said = _said(rehearsal, case, one)
    made = next((e for e in done_by_helm(moment, one.user.ref) if e.verb != "delete"), None)
    return found(
        rule,
        moment,
        objects=[one.user.ref, one.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, one.user.ref)}: {one.store.ref} and {one.producer.ref} wait for each other"
        if one.store
        else f"{ends(moment, one.user.ref)}: {hook}{one.user.ref} {how(one.need)} {one.need.object}, "
        "which does not exist",
        details=(
            f"{one.need.object} is {_made(case, one)}, {_when(one)}.",
            _order(rehearsal, one, event),
            _sees(rehearsal, case, one, event),
            after_failure(moment, one.user.ref),
            _elsewhere(one, event, rehearsal.steps[one.step]),
        ),
        way_out=(IN_A_CYCLE.format(one.store.ref) if one.store else instead,),
        places=[
            one.user.place(*one.need.field),
            one.producer.place("metadata", "name"),
            *([one.operator.place("kind")] if one.operator else []),
        ],
        evidence=[e for e in (made, said) if e is not None],
        confirm=f"kubectl get {in_kubectl(one.producer.ref)}  # while Helm waits: does it exist, and is it ready?",
    )


def _is_deleted(moment: Moment, producer: Resource) -> bool:
    """Whether the step itself deleted the source object: it is not late, and other rules report the deletion."""
    gone = (event for event in moment.events() if event.object == producer.ref and event.effect == "deleted")
    return moment.live(producer.ref) is None and any(gone)


def _producer(case: Case, ref: Ref) -> Resource | None:
    """The object from which `ref` is produced, in any release of the trial."""
    return next((resource for resource in case.all_resources() if ref in described.products(case, resource)), None)


def _explained(moment: Moment, user: Resource, need: Need, producer: Resource) -> Awaited:
    if moment.live(producer.ref) is None:
        return Awaited(moment.index, user, need, producer, "producer")
    operator = _operator(moment.case, producer)
    if operator is not None and moment.live(operator.ref) is None:
        return Awaited(moment.index, user, need, producer, "operator", operator)
    store = store_of(moment.case, producer, need.object)
    if store is not None:
        return Awaited(moment.index, user, need, producer, "cycle", store=store)
    return Awaited(moment.index, user, need, producer, "trouble")


def store_of(case: Case, producer: Resource, product: Ref) -> Resource | None:
    """What the source object needs and what itself needs the product: a store whose token it is to fetch."""
    needed = {need.object for need in needs_of(producer)}
    for release in (case.before, *case.releases):
        named = [one for ref in needed for one in release.named(ref)] if release else []
        found = [one for one in named if any(need.object == product for need in needs_of(one))]
        if release and found:
            return min(found, key=release.resources.index)
    return None


def _operator(case: Case, producer: Resource) -> Resource | None:
    """The operator's workload, if a release of the trial has it."""
    name, deployments = described.maker(case, producer.ref), described.deployments(case)
    for resource in case.all_resources():
        if resource.ref in deployments and deployments[resource.ref].name == name:
            return resource
        owner = workload_of(resource.body)
        if owner is not None and (owner[0].name, owner[1].role) == (name, role_for(owner[0], producer.ref.group)):
            return resource
    return None


def _made(case: Case, one: Awaited) -> str:
    if one.need.object.kind == IMAGE:
        return f"built by {one.producer.ref}"
    return f"created by {described.maker(case, one.producer.ref) or 'its operator'} from {one.producer.ref}"


def _when(one: Awaited) -> str:
    match one.why:
        case "producer" if hooks.is_hook(one.producer.body):
            return "a hook that runs only later"
        case "producer":
            return "which does not exist yet" if hooks.is_hook(one.user.body) else "which does not exist"
        case "operator":
            assert one.operator is not None
            return f"once {one.operator.ref} runs, which does not exist yet"
        case "cycle":
            assert one.store is not None
            return f"which reads it through {one.store.ref}, and that needs the same Secret first"
        case "trouble":
            return "which exists but produces nothing"


def _order(rehearsal: Rehearsal, one: Awaited, event: str) -> str:
    late = one.operator or one.producer
    if one.why in ("trouble", "cycle"):
        return _troubles(rehearsal, one)
    events = ", ".join(hooks.events_of(late.body))
    if not event:
        return (
            f"Helm waits for {one.user.ref}, and runs the {events} hook {late.ref} only after that." if events else ""
        )
    if not events:
        return (
            f"{late.ref} is a regular resource. Helm creates regular resources after all {event} hooks have completed, "
            "and it is still waiting for this one."
        )
    weights = hooks.weight_of(one.user.body), hooks.weight_of(late.body)
    return f"{one.user.ref} has weight {weights[0]}; {late.ref} is a hook of {events} with weight {weights[1]}."


def _troubles(rehearsal: Rehearsal, one: Awaited) -> str:
    said = [e for e in rehearsal.of_step(one.step) if e.effect == "said" and e.object == one.producer.ref]
    return f'{one.producer.ref} reports: "{said[-1].message}".' if said else ""


def _sees(rehearsal: Rehearsal, case: Case, one: Awaited, event: str) -> str:
    ended, said = rehearsal.steps[one.step], _said(rehearsal, case, one)
    if event and one.need.object.kind != IMAGE:
        lack = Lack(one.step, ended.action, event, one.user, one.need, "", "missing", one.producer, hung=True)
        return ends_sentence(Moment(rehearsal, case, lack.step), lack)
    pod = f'While Helm waits, {said.object} reports: "{said.message}". ' if said else ""
    return f"{pod}{hook_timeout(one.user, event, ended) if event else wait_timeout(one.user, ended)}"


def _said(rehearsal: Rehearsal, case: Case, one: Awaited) -> Event | None:
    """A pod's message about what it lacks; for an image, the container runtime's message."""
    return said_of(Moment(rehearsal, case, one.step), one.need.object)


def _elsewhere(one: Awaited, event: str, ended: StepResult) -> str:
    """Why the problem goes unnoticed."""
    if event == "pre-install" and hooks.runs_at(one.user.body, "upgrade"):
        return "Upgrades of an existing release work, which hides the problem."
    if not event and one.why not in ("trouble", "cycle"):
        without = "With disableWait: true" if ended.reconciled else "Without --wait"
        return f"{without} the install succeeds: Kubernetes retries until {one.need.object} exists."
    return ""
