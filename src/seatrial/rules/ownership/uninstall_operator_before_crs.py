"""An operator is deleted before the objects that only it can let go, and they stay in `Terminating`.

## What happens
An operator that has something to clean up puts a finalizer on its objects: a deleted one stays, with a
`deletionTimestamp`, until the operator has taken the finalizer off. Helm deletes the workloads of a release first, then
its roles, bindings and accounts, and kinds that it does not know at the very end; every custom kind is one of those.
When the object is to go, its operator is gone. A pod of it may live for some seconds more, but its account may do
nothing any longer. Helm has asked for the deletion, which was granted, and reports success; `helm uninstall --wait`
waits until its timeout.

`kubectl delete -f` deletes in the order in which the files were applied, so the namespace, the definition and the
operator go before the object, and then waits, for a week. Pulumi deletes in the reverse order of dependencies, and all
that has as many of them behind it at once: an object that does not depend on its operator may go together with it, or
after it.

What is left holds up everything around it: its definition stays in `Terminating`, and so does its namespace
(`SomeFinalizersRemain`). `kubectl delete --force --grace-period=0` changes nothing, as it shortens the grace of pods
and knows nothing of finalizers. Installing the operator again helps, in its own way: it takes the finalizer off, and
the object is gone.

Flux waits for what Helm deletes, unless the HelmRelease says `uninstall.disableWait`, and says `termination timeout`;
when it tries again there is no release any more, and the HelmRelease goes. A Kustomization deletes custom kinds before
workloads, waits for nothing between them, and is gone at once. `dependsOn` orders no deletions: of Kustomizations or
HelmReleases that go together, any may be first.

Where the account and the rights of the operator are not part of the release, it is a race between its last seconds and
the deletion. Where nobody knows who takes a finalizer off, a workload of the release that also defines the kind is
taken for a likely one. Both are a `may`, and so it is where a pre-delete hook runs a program of its own.

## Example
```
templates/keda.yaml      Deployment, ServiceAccount, ClusterRoleBinding
templates/scaling.yaml   ScaledObject       # finalizer.keda.sh
```

## Instead
Operators and their objects in two releases, uninstalled in the reverse order (with Flux: the objects in one commit, the
operator in a later one); or a pre-delete hook Job that deletes the objects and waits until they are gone (`kubectl
delete scaledobjects --all`, which waits by itself). With kubectl two folders, that of the objects deleted first. With
Pulumi let the object depend on the operator and on what gives it its rights.

## Fix safety
Clearing a finalizer by hand (`kubectl patch ... -p '{"metadata":{"finalizers":null}}'`) skips what the operator would
have cleaned up: load balancers, volumes, DNS entries, users of a database.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.finalizers import Held, held_by_gone_operators, programs_before, rights_gone
from seatrial.evidence.flux.reconciliations import FLUX, failed_release, flux_says, goes_on, is_flux
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import DEFINITION
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    told: set[Ref] = set()
    for moment in moments(rehearsal, case):
        groups: dict[Ref, list[Held]] = {}
        for held in held_by_gone_operators(moment):
            if held.deletion.object not in told:
                groups.setdefault(held.operator.object, []).append(held)
        for group in groups.values():
            told |= {held.deletion.object for held in group}
            yield _finding(moment, group)


def _finding(moment: Moment, group: list[Held]) -> Finding:
    act = moment.act
    first, refs = group[0], sorted({held.deletion.object for held in group})
    operator, sample = first.operator, refs[0]
    rights = rights_gone(moment.rehearsal, first)
    unseen = next(programs_before(moment.case, moment.index), None)
    sure = first.known and unseen is None and (bool(rights) or operator.step < moment.index or _with_namespace(first))
    return found(
        RULE,
        moment,
        objects=[operator.object, *refs],
        damage="failed-deploy",
        certainty="will" if sure else "may",
        message=f"{named(refs)} stays in Terminating after {act}: {operator.object}, "
        + ("which takes off" if first.known else "which may have to take off")
        + f" its finalizer {first.finalizer}, is deleted {_before(first)}",
        details=(
            _order(moment.rehearsal, first),
            _rights(first, rights),
            _ended(moment, refs, first.finalizer),
            "" if first.known else f"Who takes off {first.finalizer} is not known here: it may be somebody else.",
            f"{unseen.ref} runs before: what its program does cannot be seen, and it may be there for this."
            if unseen
            else "",
            _later(moment, sample),
            f"To end it: install the operator again, which takes the finalizer off; or, without its cleaning up, "
            f'kubectl patch {in_kubectl(sample)} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'. '
            "--force and --grace-period=0 are about pods and do not help.",
        ),
        places=_places(moment.case, moment.index, [*refs, operator.object]),
        evidence=[operator, *(held.deletion for held in group)],
        confirm=f"kubectl get {in_kubectl(sample)} -o jsonpath='{{.metadata.finalizers}}'  # after {act}",
    )


def _before(held: Held) -> str:
    if held.operator.step < held.deletion.step:
        return "already"
    return "first" if held.operator.index < held.deletion.index else "before it has done so"


def _with_namespace(held: Held) -> bool:
    """Whether both go with their namespace: then pods go first, and all else when they have stopped."""
    alike = held.operator.object.namespace == held.deletion.object.namespace
    return alike and held.deletion.actor == held.operator.actor == "namespace-controller"


def _order(rehearsal: Rehearsal, held: Held) -> str:
    operator, deletion = held.operator, held.deletion
    if operator.step < deletion.step:
        ended = rehearsal.steps[operator.step]
        return f"{operator.object} went with the {ended.action} of {ended.release or ended.source}, a step before."
    if _with_namespace(held):
        return f"Both go with Namespace/{operator.object.namespace}: pods first, and all else when they have stopped."
    if operator.actor == "pulumi":
        return (
            f"Pulumi deletes in the reverse order of dependencies. {deletion.object} does not depend on "
            f"{operator.object}: nothing orders the two."
        )
    if operator.actor == "kubectl":
        return (
            "kubectl deletes in the order in which objects stand in the files, and waits only when it has asked for "
            f"all: {operator.object} is gone before {deletion.object} is to go."
        )
    if operator.actor == "helm":
        return (
            f"Helm deletes workloads first, then roles, bindings and accounts, and kinds that it does not know last: "
            f"DELETE {operator.object}, and later DELETE {deletion.object}."
        )
    if operator.actor == FLUX:
        return f"{_in_turn(operator, deletion)} Flux waits for nothing between, and dependsOn has no say in deletions."
    return _in_turn(operator, deletion)


def _in_turn(operator: Event, deletion: Event) -> str:
    first, then = (operator, deletion) if operator.index < deletion.index else (deletion, operator)
    return f"DELETE {first.object} came first, and DELETE {then.object} later."


def _rights(held: Held, rights: list[Ref]) -> str:
    if not rights:
        gone = held.operator.step < held.deletion.step or _with_namespace(held)
        return "" if gone else "A pod of it that lives on for some seconds may win."
    return f"A pod of it that lives on for some seconds cannot help: {named(rights)} went before as well."


def _ended(moment: Moment, refs: list[Ref], finalizer: str) -> str:
    """Who is content, and who waits."""
    ended = moment.ended
    who = moment.speaker
    if ended.outcome == "hung" and who in ("kubectl", "Pulumi"):
        return f"{who} {ended.error}."
    content = "Helm reported success; with --wait it would wait until its timeout." if who == "Helm" else ""
    content = content if ended.outcome == "ok" else ""
    if is_flux(moment.rehearsal):
        one = failed_release(ended, refs[0])
        content = f"{flux_says(one)}. {goes_on(one)}" if one else "Flux is content: a Kustomization goes at once."
    going = [ref for ref in _going(moment) if ref.kind in (DEFINITION, "Namespace")]
    waits = f"{named(going)} waits for it, too." if going else ""
    words = f"Some content in the namespace has finalizers remaining: {finalizer} in {len(refs)} resource instances"
    deleted = f'When its namespace is deleted, that stays as well: "{words}".' if refs[0].namespace else ""
    return " ".join(filter(None, (content, waits, deleted)))


def _going(moment: Moment) -> list[Ref]:
    deleting = {event.object for event in moment.events() if event.effect == "deleting"}
    return sorted(ref for ref in deleting if (live := moment.live(ref)) and is_terminating(live))


def _later(moment: Moment, ref: Ref) -> str:
    """What becomes of it when the operator comes back."""
    for event in moment.rehearsal.timeline:
        if event.step > moment.index and event.object == ref and event.effect == "deleted":
            act = moment.rehearsal.steps[event.step]
            lost = " and is missing from the release then" if ref in act.missing else ""
            return f"The {act.action} after it brings the operator back: {ref} goes at once{lost}."
    return ""


def _places(case: Case, step: int, refs: list[Ref]) -> list[Pointer]:
    return [resource.place("kind") for ref in refs if (resource := case.written(step, ref))]


RULE = Rule("ST412", "uninstall-operator-before-crs", check)
