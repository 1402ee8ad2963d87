"""What an earlier life of the release left behind stands in the way of the next one.

## What happens
`helm uninstall` does not take everything along. It leaves hooks, objects with `helm.sh/resource-policy: keep`, CRDs
of `crds/`, and whatever a finalizer holds. An install under the same name in the same namespace takes kept objects
over, since their marks still fit. It is refused where they do not: under another name or in another namespace, or
where the object was a hook and carries no marks at all (`invalid ownership metadata`).

A namespace that is still Terminating takes nothing in: `unable to create new content in namespace x because it is
being terminated`.

An install that failed leaves its record as well, and all that it had made. The next `helm install` says `cannot reuse
a name that is still in use`, although nothing runs.

## Example
```sh
helm install shop ./shop        # fails halfway
helm install shop ./shop        # cannot reuse a name that is still in use
```

## Instead
Install with `helm upgrade --install`, which goes on from a failed install, or with `--rollback-on-failure` (Helm 3:
`--atomic`), which clears it away. Put the name of the release into names, so that a kept object of one is not in the
way of another. Delete what is left, or deploy once with `--take-ownership`.

## Fix safety
`--take-ownership` takes any object of that name, whosever it is.
"""

from __future__ import annotations

from collections.abc import Iterator

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

NAME_IN_USE = ("cannot reuse a name that is still in use", "cannot re-use a name that is still in use")
"""As Helm 4 says it, and as Helm 3 does."""
TERMINATING = "because it is being terminated"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    met_before: set[Ref] = set()
    for moment in moments(rehearsal, case):
        met = conflict(moment)
        if met is not None:
            # What was in the way of an upgrade already is told by another rule.
            if met.resource.ref not in met_before and is_left_over(moment, met):
                yield _kept(moment, met)
            met_before.add(met.resource.ref)
        elif any(words in moment.ended.error for words in NAME_IN_USE):
            yield from _name_in_use(moment)
        elif moment.ended.action == "install" and moment.ended.outcome != "ok":
            yield from _terminating(moment)


def _kept(moment: Moment, met: Conflict) -> Finding:
    ref, ended = met.resource.ref, moment.ended
    assert met.made is not None
    maker = moment.rehearsal.steps[met.made.step]
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"{ref} was left behind when {maker.release} was uninstalled: helm {ended.action} refuses to begin",
        details=(
            helm_says(ended),
            _why_it_stayed(met),
            "Nothing was changed and no revision was recorded; every further try fails alike.",
            adoption(ref, ended),
        ),
        places=[met.resource.place("metadata", "name")],
        evidence=[met.made],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.annotations}}'",
    )


def _why_it_stayed(met: Conflict) -> str:
    name, namespace = met.owner
    if not name:
        return "It was a hook: Helm neither deletes hooks with the release nor marks them as its own."
    kept = annotations_of(met.live).get(hooks.RESOURCE_POLICY, "")
    why = f"Its {hooks.RESOURCE_POLICY} is {kept}" if kept else "It was not deleted"
    return f"{why}, and its marks still name the release {name} in {namespace}."


def _name_in_use(moment: Moment) -> Iterator[Finding]:
    """An install of a name whose last install failed, and was not cleared away."""
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
        message=f"the first install of {ended.release} failed and is still there: helm install refuses to begin again",
        details=(
            helm_says(ended),
            f"The first one left its record, of status failed, and {named(e.object for e in made) or 'nothing'}.",
            "helm upgrade --install goes on from there; helm uninstall clears it away; --rollback-on-failure (Helm 3: "
            "--atomic) would have.",
        ),
        places=[first.resources[0].place("metadata", "name")] if first and first.resources else [],
        evidence=made,
        confirm=f"helm history {ended.release} -n {ended.namespace}",
    )


def _terminating(moment: Moment) -> Iterator[Finding]:
    """An install into a namespace that an earlier uninstall has not got rid of yet."""
    refused = [e for e in moment.events() if e.effect == "refused" and TERMINATING in e.message]
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
            message=f"{deletion.object} is still going since the uninstall: helm install can make nothing in it",
            details=(
                f'The API server says of {first.object}: "{first.message}"',
                "It stays Terminating until every finalizer of what is in it was removed.",
            ),
            places=[written.place("metadata")] if written else [],
            evidence=[deletion, *refused[:3]],
            confirm=f"kubectl get namespace {namespace} -o jsonpath='{{.status.conditions}}'",
        )


def _deletion(moment: Moment, ref: Ref) -> Event | None:
    """Its deletion, where that began with an uninstall."""
    found = [e for e in moment.rehearsal.of_object(ref) if 0 <= e.step < moment.index and e.effect in GOING]
    return found[-1] if found and moment.rehearsal.steps[found[-1].step].action == "uninstall" else None


def _is_object_of(case: Case, step: int, event: Event) -> bool:
    release = case.releases[step]
    return event.effect == "created" and release is not None and release.find(event.object) is not None


RULE = Rule("ST407", "reinstall-collides-with-leftovers", check)
