"""An operator is deleted before its custom resources, whose finalizer only it can remove: they stay Terminating.

## What happens
An operator that must clean up puts a finalizer on its custom resources: a deleted one keeps a `deletionTimestamp` and
stays until the operator removes the finalizer. Helm deletes the workloads of a release first, then its roles, bindings
and ServiceAccounts, and unknown kinds last; that includes every custom kind. When the custom resource is deleted, its
operator is already gone. Its pod may run for a few more seconds, but its ServiceAccount has no rights any more. The
deletion request succeeds, so Helm reports success; `helm uninstall --wait` waits until its timeout.

`kubectl delete -f` deletes in file order, so the namespace, the CRD and the operator are deleted before the custom
resource; then kubectl waits, for up to a week. Pulumi deletes in reverse dependency order, and concurrently where there
is no dependency: a custom resource that does not depend on its operator may be deleted together with it, or after it.

The leftover blocks everything around it: its CRD stays Terminating, and so does its namespace (`SomeFinalizersRemain`).
`kubectl delete --force --grace-period=0` does not help: it only affects pods. Reinstalling the operator helps: it
removes the finalizer, and the object is deleted.

Flux waits for what Helm deletes, unless the HelmRelease sets `uninstall.disableWait`, and reports `termination
timeout`; on retry the release no longer exists, and the HelmRelease is deleted. A Kustomization deletes custom
resources before workloads, does not wait in between, and is gone at once. `dependsOn` does not order deletions:
Kustomizations or HelmReleases that are deleted together are deleted in any order.

If the operator's ServiceAccount and roles are not part of the release, its pod may still remove the finalizer before it
stops: the finding is a `may`. It is a `may` as well if a pre-delete hook of the release runs a program that
seatrial cannot read, unless the step hangs.

A finalizer may be part of the manifest. If it is named after the group of the custom resource, and a workload of the
release has rights to that group, that workload probably removes it, and the finding is `likely`. If the release has the
CRD and a workload, but no such rights, it is a `may`. If no known or described operator removes the finalizer, the
object stays Terminating whenever it is deleted, also when an upgrade removes it.

## Example
```
templates/keda.yaml      Deployment, ServiceAccount, ClusterRoleBinding
templates/scaling.yaml   ScaledObject       # finalizer.keda.sh
```

## Instead
Put the operator and its custom resources into two releases, and uninstall them in reverse order (with Flux: remove the
custom resources in one commit and the operator in a later one). Or add a pre-delete hook Job that deletes the custom
resources and waits until they are gone (`kubectl delete scaledobjects --all` waits by itself). With kubectl use two
folders, and delete the custom resources first. With Pulumi let the custom resource depend on the operator and
its role bindings.

## Fix safety
Removing a finalizer by hand (`kubectl patch ... -p '{"metadata":{"finalizers":null}}'`) skips the operator's cleanup:
load balancers, volumes, DNS entries, database users.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.finalizers import (
    Held,
    Unremoved,
    held_by_gone_operators,
    held_by_nothing,
    programs_before,
    rights_gone,
)
from seatrial.evidence.flux.reconciliations import FLUX, failed_release, flux_says, goes_on, is_flux
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.unserved import DEFINITION
from seatrial.kinds.core.objectmeta import is_terminating
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Pointer, Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named, named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for moment in moments(rehearsal, case):
        groups: dict[Ref, list[Held]] = {}
        for held in held_by_gone_operators(moment):
            if held.deletion.object not in reported:
                groups.setdefault(held.operator.object, []).append(held)
        for group in groups.values():
            reported |= {held.deletion.object for held in group}
            yield _finding(moment, group)
        unremoved = [held for held in held_by_nothing(moment) if held.deletion.object not in reported]
        reported |= {held.deletion.object for held in unremoved}
        yield from (_unremoved(moment, held) for held in unremoved)


def _finding(moment: Moment, group: list[Held]) -> Finding:
    act = moment.act
    first, refs = group[0], sorted({held.deletion.object for held in group})
    operator, sample = first.operator, refs[0]
    rights = rights_gone(moment.rehearsal, first)
    unseen = next(programs_before(moment.case, moment.index), None)
    gone = bool(rights) or operator.step < moment.index or _with_namespace(first)
    sure = _stops(moment, sample) or (first.known and unseen is None and gone)
    return found(
        RULE,
        moment,
        objects=[operator.object, *refs],
        damage="failed-deploy",
        certainty="will" if sure else "likely" if first.probable and unseen is None and gone else "may",
        message=f"{first_named(refs)} {'stays' if len(refs) == 1 else 'stay'} Terminating after {act}: "
        f"{operator.object} is deleted {_before(first)}",
        details=(
            f"{operator.object} {'removes' if first.known else 'probably removes'} the finalizer {first.finalizer}.",
            _order(moment.rehearsal, first),
            _rights(first, rights),
            _ended(moment, refs, first.finalizer),
            ""
            if first.known
            else f"It is not known which controller removes {first.finalizer}; it may be another one.",
            f"{unseen.ref} runs first and may delete it: its program cannot be read from here." if unseen else "",
            _later(moment, sample),
            "--force and --grace-period=0 only affect pods and do not help.",
        ),
        recover="reinstall the operator, which removes the finalizer; or skip its cleanup: "
        f'kubectl patch {in_kubectl(sample)} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'',
        places=_places(moment.case, moment.index, [*refs, operator.object]),
        evidence=[operator, *(held.deletion for held in group)],
        confirm=f"kubectl get {in_kubectl(sample)} -o jsonpath='{{.metadata.finalizers}}'  # after {act}",
    )


def _unremoved(moment: Moment, held: Unremoved) -> Finding:
    """A finalizer of the manifest, and no controller of the release that removes it."""
    ref, act = held.deletion.object, moment.act
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        certainty="will" if _stops(moment, ref) else "likely",
        message=f"{ref} stays Terminating after {act}: nothing removes its finalizer",
        details=(
            f"The manifest sets the finalizer {held.finalizer}. No modelled or described controller removes it. "
            "If one does, describe it in a trial file (`removes`).",
            _ended(moment, [ref], held.finalizer),
            "The next deployment finds the old object, and what it applies to it is deleted with it.",
        ),
        recover=f'kubectl patch {in_kubectl(ref)} --type=merge -p \'{{"metadata":{{"finalizers":null}}}}\'',
        places=[held.written.place("metadata", "finalizers")],
        evidence=[held.deletion],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.finalizers}}'  # after {act}",
    )


def _stops(moment: Moment, ref: Ref) -> bool:
    """Whether the step waits for the deletion until it hangs or fails."""
    return moment.ended.outcome == "hung" or (moment.ended.outcome == "failed" and str(ref) in moment.ended.error)


def _before(held: Held) -> str:
    if held.operator.step < held.deletion.step:
        return "already"
    return "first" if held.operator.index < held.deletion.index else "early"


def _with_namespace(held: Held) -> bool:
    """Whether both are deleted with their namespace: pods first, everything else after they have stopped."""
    alike = held.operator.object.namespace == held.deletion.object.namespace
    return alike and held.deletion.actor == held.operator.actor == "namespace-controller"


def _order(rehearsal: Rehearsal, held: Held) -> str:
    operator, deletion = held.operator, held.deletion
    if operator.step < deletion.step:
        ended = rehearsal.steps[operator.step]
        return f"The {ended.action} of {ended.release or ended.source}, an earlier step, deleted {operator.object}."
    if _with_namespace(held):
        return (
            f"Both are deleted with Namespace/{operator.object.namespace}: pods first, everything else after they have "
            "stopped."
        )
    if operator.actor == "pulumi":
        return (
            f"Pulumi deletes in reverse dependency order. {deletion.object} does not depend on {operator.object}, so "
            "nothing orders the two."
        )
    if operator.actor == "kubectl":
        return (
            f"kubectl deletes in file order, and waits only at the end: {operator.object} is gone before it deletes "
            f"{deletion.object}."
        )
    if operator.actor == "helm":
        return (
            f"Helm deletes workloads first, then roles, bindings and ServiceAccounts, and custom resources last: "
            f"{operator.object} before {deletion.object}."
        )
    if operator.actor == FLUX:
        return f"{_in_turn(operator, deletion)} Flux does not wait in between, and dependsOn does not order deletions."
    return _in_turn(operator, deletion)


def _in_turn(operator: Event, deletion: Event) -> str:
    first, then = (operator, deletion) if operator.index < deletion.index else (deletion, operator)
    return f"{first.object} is deleted first, {then.object} later."


def _rights(held: Held, rights: list[Ref]) -> str:
    if not rights:
        gone = held.operator.step < held.deletion.step or _with_namespace(held)
        return "" if gone else "An operator pod that runs a few seconds longer may still remove the finalizer."
    return f"An operator pod that still runs cannot remove it: {named(rights)} {_is(rights)} already deleted."


def _is(refs: list[Ref]) -> str:
    return "is" if len(refs) == 1 else "are"


def _ended(moment: Moment, refs: list[Ref], finalizer: str) -> str:
    """What the engine reports, and what else waits."""
    ended = moment.ended
    who = moment.speaker
    if ended.outcome == "hung" and ended.explicit:
        return f"{who} {ended.error}."
    content = "Helm reports success; with --wait it waits until its timeout." if who == "Helm" else ""
    content = content if ended.outcome == "ok" else ""
    if is_flux(moment.rehearsal):
        one = failed_release(ended, refs[0])
        content = (
            f"{flux_says(one)}. {goes_on(one)}" if one else "Flux reports success: it does not wait for the deletion."
        )
    going = [ref for ref in _going(moment) if ref.kind in (DEFINITION, "Namespace")]
    waits = f"Also Terminating because of it: {named(going)}." if going else ""
    words = f"Some content in the namespace has finalizers remaining: {finalizer} in {len(refs)} resource instances"
    deleted = (
        f'If its namespace is deleted, the namespace stays Terminating too: "{words}".' if refs[0].namespace else ""
    )
    return " ".join(filter(None, (content, waits, deleted)))


def _going(moment: Moment) -> list[Ref]:
    deleting = {event.object for event in moment.events() if event.effect == "deleting"}
    return sorted(ref for ref in deleting if (live := moment.live(ref)) and is_terminating(live))


def _later(moment: Moment, ref: Ref) -> str:
    """What happens to it when the operator is reinstalled."""
    for event in moment.rehearsal.timeline:
        if event.step > moment.index and event.object == ref and event.effect == "deleted":
            act = moment.rehearsal.steps[event.step]
            lost = " and is then missing from the release" if ref in act.missing else ""
            return f"The next {act.action} reinstalls the operator: {ref} is deleted at once{lost}."
    return ""


def _places(case: Case, step: int, refs: list[Ref]) -> list[Pointer]:
    return [resource.place("kind") for ref in refs if (resource := case.written(step, ref))]


RULE = Rule("ST412", "uninstall-operator-before-crs", check)
