"""Leftovers of an earlier install or uninstall make the next install fail.

## What happens
`helm uninstall` does not delete everything. It leaves hooks, objects with `helm.sh/resource-policy: keep`, CRDs of
`crds/`, and objects that a finalizer holds. An install with the same name in the same namespace adopts kept objects,
because their ownership annotations still match. It fails if they do not: with another name or namespace, or if the
object was a hook and has no annotations (`invalid ownership metadata`).

A namespace that is still Terminating rejects new objects: `unable to create new content in namespace x because it is
being terminated`.

What the script of a hook Job created stays as well. `kubectl create` of the same object fails when the release is
installed again.

A failed install leaves its record and everything it created. The next `helm install` fails with `cannot reuse a name
that is still in use`, although nothing runs.

## Example
```sh
helm install shop ./shop        # fails halfway
helm install shop ./shop        # cannot reuse a name that is still in use
```

## Instead
Install with `helm upgrade --install`, which continues from a failed install, or with `--rollback-on-failure` (Helm 3:
`--atomic`), which cleans it up. Use the release name in object names, so that kept objects of two releases do not
conflict. Delete the leftovers, or deploy once with `--take-ownership`.

## Fix safety
`--take-ownership` adopts any object of that name, whatever its owner.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.faults import has_fault
from seatrial.evidence.history import GOING
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.ownership import Conflict, conflict, is_left_over
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import adoption, in_kubectl
from seatrial.phrases.outcome import helm_says, named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    met_before: set[Ref] = set()
    for moment in moments(rehearsal, case):
        met = conflict(moment)
        if met is not None:
            # An object that already made an upgrade fail is reported by another rule.
            if met.resource.ref not in met_before and is_left_over(moment, met):
                yield _kept(moment, met)
            met_before.add(met.resource.ref)
        elif has_fault(moment.ended.failure, "name-in-use"):
            yield from _name_in_use(moment)
        elif moment.ended.action == "install" and moment.ended.outcome != "ok":
            yield from _terminating(moment)
            yield from _left_by_scripts(moment)


def _is_terminating(event: Event) -> bool:
    """Whether the namespace is being deleted."""
    return bool(event.refusal and event.refusal.terminating and event.refusal.terminating.kind == "Namespace")


def _kept(moment: Moment, met: Conflict) -> Finding:
    ref, ended = met.resource.ref, moment.ended
    assert met.made is not None
    maker = moment.rehearsal.steps[met.made.step]
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ref} was left behind when {maker.release} was uninstalled: helm {ended.action} refuses to start",
        details=(
            helm_says(ended),
            _why_it_stayed(met),
            "Nothing was changed and no revision was recorded. Retrying fails the same way.",
        ),
        way_out=(f"Delete what is left (kubectl delete {in_kubectl(ref)}), or adopt it:", *adoption(ref, ended)),
        places=[met.resource.place("metadata", "name")],
        evidence=[met.made],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations}}'",
    )


def _why_it_stayed(met: Conflict) -> str:
    name, namespace = met.owner
    if not name:
        return "It was a hook: Helm neither deletes hooks with the release nor annotates them as its own."
    kept = annotations_of(met.live).get(hooks.RESOURCE_POLICY, "")
    why = f"Its {hooks.RESOURCE_POLICY} is {kept}" if kept else "It was not deleted"
    return f"{why}, and its annotations still name release {name} in {namespace}."


def _name_in_use(moment: Moment) -> Iterator[Finding]:
    """An install whose release name has a failed install that was not cleaned up."""
    ended = moment.ended
    earlier = [
        index
        for index, other in enumerate(moment.rehearsal.steps[: moment.index])
        if (other.release, other.namespace) == (ended.release, ended.namespace)
    ]
    last = moment.rehearsal.steps[earlier[-1]] if earlier else None
    if last is None or last.action != "install" or last.outcome == "ok":
        return
    made = [e for e in moment.rehearsal.of_step(earlier[-1]) if _is_object_of(moment.case, earlier[-1], e)]
    first = moment.release
    yield found(
        RULE,
        moment,
        objects=[event.object for event in made[:1]],
        damage="failed-deploy",
        message=f"the first install of {ended.release} failed and was not cleaned up: helm install refuses to start",
        details=(
            helm_says(ended),
            f"The first one left a record with status failed, and {named(e.object for e in made) or 'no object'}.",
        ),
        way_out=(
            f"Run helm upgrade --install {ended.release} instead, which continues from there, or first helm uninstall "
            f"{ended.release} -n {ended.namespace}. --rollback-on-failure (Helm 3: --atomic) would have cleaned it up.",
        ),
        places=[first.resources[0].place("metadata", "name")] if first and first.resources else [],
        evidence=made,
        confirm=f"helm history {ended.release} -n {ended.namespace}",
    )


def _terminating(moment: Moment) -> Iterator[Finding]:
    """An install into a namespace that is still Terminating after an uninstall."""
    refused = [e for e in moment.events() if e.effect == "refused" and _is_terminating(e)]
    for namespace in sorted({event.object.namespace for event in refused}):
        deletion = _deletion(moment, Ref("Namespace", "", namespace))
        if deletion is None:
            continue
        release, first = moment.release, next(e for e in refused if e.object.namespace == namespace)
        written = release.find(first.object) if release else None
        yield found(
            RULE,
            moment,
            objects=[deletion.object],
            damage="failed-deploy",
            message=f"{deletion.object} is Terminating after the uninstall: helm install can create nothing in it",
            details=(
                f'The API server rejects {first.object}: "{first.message}"',
                "It stays Terminating until all finalizers of its content are removed.",
            ),
            way_out=(
                f"Wait until it is gone: kubectl wait --for=delete namespace/{namespace}. Then install again. If it "
                "stays, its conditions name what still has a finalizer.",
            ),
            places=[written.place("metadata")] if written else [],
            evidence=[deletion, *refused[:3]],
            confirm=f"kubectl get namespace {namespace} -o jsonpath='{{.status.conditions}}'",
        )


def _left_by_scripts(moment: Moment) -> Iterator[Finding]:
    """Objects that the script of a Job created before the uninstall, and now cannot create."""
    refused: dict[Ref, Event] = {}
    for event in moment.events():
        exists = event.effect == "refused" and event.refusal is not None and event.refusal.reason == "AlreadyExists"
        if exists and event.actor not in moment.rehearsal.actors:
            refused.setdefault(event.object, event)
    for ref, event in refused.items():
        made = next((e for e in moment.rehearsal.of_object(ref) if e.effect == "created" and e.step >= 0), None)
        if made is None or made.actor != event.actor or not _uninstalled_between(moment, made.step):
            continue
        job = (
            next((r for r in moment.release.resources if _is_script_of(r.ref, event)), None) if moment.release else None
        )
        yield found(
            RULE,
            moment,
            objects=[ref, *([job.ref] if job else [])],
            damage="failed-deploy",
            message=f"{job.ref if job else event.actor} cannot create {ref} on reinstall: the uninstall left it",
            details=(
                f'The script fails: "{event.message}"',
                "Helm does not know what scripts create, and does not delete it with the release.",
            ),
            way_out=(
                f"Create {ref} with kubectl apply (or create --dry-run=client -o yaml | kubectl apply -f -), or delete "
                "it in a pre-delete or post-delete hook.",
            ),
            places=[job.place("spec", "template", "spec", "containers")] if job else [],
            evidence=[made, event],
            confirm=f"kubectl get {in_kubectl(ref)}  # after helm uninstall",
        )


def _uninstalled_between(moment: Moment, made: int) -> bool:
    return any(ended.action == "uninstall" for ended in moment.rehearsal.steps[made + 1 : moment.index])


def _is_script_of(ref: Ref, event: Event) -> bool:
    """Whether a script ran for this object: its actor is `job/NAME`."""
    return f"{ref.kind.lower()}/{ref.name}" == event.actor


def _deletion(moment: Moment, ref: Ref) -> Event | None:
    """Its deletion, if an uninstall started it."""
    found = [e for e in moment.rehearsal.of_object(ref) if 0 <= e.step < moment.index and e.effect in GOING]
    return found[-1] if found and moment.rehearsal.steps[found[-1].step].action == "uninstall" else None


def _is_object_of(case: Case, step: int, event: Event) -> bool:
    release = case.releases[step]
    return event.effect == "created" and release is not None and release.find(event.object) is not None


RULE = Rule("ST407", "reinstall-collides-with-leftovers", check, before=("ownership-metadata-conflict",))
