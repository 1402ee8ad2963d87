"""The release contains a Namespace, so dropping it or uninstalling deletes everything in that namespace.

## What happens
Deleting a Namespace deletes everything in it: objects of other releases, objects that users created, PVCs of
StatefulSets, and objects with `helm.sh/resource-policy: keep`. Helm deletes a Namespace of its manifest on `helm
uninstall`, and on a `helm upgrade` whose new manifest no longer lists it: the template was removed, or a value such as
`createNamespace` became false. Helm does not ask and reports success; the namespace is deleted moments later.

It **will** delete objects of others that the rehearsal has seen in the namespace. If it has seen none, it **may**: only
the cluster knows.

Pulumi programs and kubectl folders usually contain their namespaces. That `destroy` and `delete -f` delete them is only
reported if they delete something that the program or the folder does not contain. A namespace that an `up` or `apply
--prune` drops is always reported. Of the cluster-scoped kinds, `kubectl apply --prune` deletes only Namespaces and
PersistentVolumes.

A Namespace that is a hook is reported by `before-hook-creation-deletes-live-resource`.

## Example
```yaml
{{- if .Values.createNamespace }}
apiVersion: v1
kind: Namespace
metadata:
  name: shared-tools
{{- end }}
```

## Instead
Leave namespaces to their owners, or to `--create-namespace`. If the chart must contain one, give it
`helm.sh/resource-policy: keep`, in a release before the one that drops it.

## Fix safety
`keep` is safe. It must be on the live Namespace when an upgrade drops it, and in the stored manifest for an uninstall.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import FLUX
from seatrial.evidence.history import GOING, cascade, pruned, release_with
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import written_otherwise
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, annotations_of
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import named

EVIDENCE_MAX = 6
ENDS = ("uninstall", "delete", "destroy")
MADE_BY_THE_CLUSTER = ("Endpoints", "EndpointSlice", "PersistentVolume")
KEPT = "helm.sh/resource-policy: keep on an object does not protect it when its namespace is deleted."
KEPT_BY = {
    "Pulumi": "retainOnDelete on an object in it does not protect the object; on the Namespace itself it does.",
    "kubectl": "kubectl delete -f deletes every Namespace in the folder: keep it in a separate file.",
}
LISTS = {"Pulumi": "The program no longer registers it", "kubectl": "The files no longer contain it"}
OTHERS = "with everything that others created in it"


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        for deletion, namespace in _deletions(moment):
            ends = moment.ended.action in ENDS
            # Objects that others applied into the namespace are not part of the release that contains it.
            old, new = release_with(case, moment.index, namespace.ref), None if ends else moment.release
            went = (e for e in cascade(rehearsal, deletion) if moment.live(e.object) is None)
            named_too = _named_by_kubectl(moment)
            lost = [event for event in went if _should_stay(event, old, new) and event.object not in named_too]
            lost = [event for event in lost if not ends or not _was_produced(moment, event.object)]
            if lost or not ends or not moment.ended.explicit:
                yield _finding(moment, namespace, deletion, lost)


def _deletions(moment: Moment) -> Iterator[tuple[Event, Resource]]:
    """The engine's deletions of Namespaces of the release."""
    if moment.ended.action not in ENDS:
        for event, was in pruned(moment):
            if was.ref.kind == "Namespace" and written_otherwise(moment.case, moment.index, was.ref) is None:
                yield event, was
        return
    release = moment.before
    named_itself = moment.ended.source.split("/")[0] == "Namespace"
    for event in moment.events() if release and not named_itself else ():
        was_there = release.find(event.object) if release else None
        # What a Kustomization deletes is listed in its path.
        own = event.actor in moment.rehearsal.actors and event.actor != FLUX and event.effect in GOING
        is_namespace = event.object.kind == "Namespace"
        if own and is_namespace and was_there is not None and not hooks.is_hook(was_there.body):
            yield event, was_there


def _named_by_kubectl(moment: Moment) -> set[Ref]:
    """The objects that `kubectl delete` names, which may be an older revision than the one applied last."""
    ended = moment.ended
    if moment.speaker != "kubectl" or ended.action != "delete":
        return set()
    steps = zip(moment.rehearsal.steps[: moment.index], moment.case.releases, strict=False)
    given = (release for before, release in steps if release and before.source == ended.source)
    return {resource.ref for release in given for resource in release.resources}


def _should_stay(event: Event, old: Release | None, new: Release | None) -> bool:
    """Whether an object deleted with the namespace belongs to others, is to be kept, or is still in the release."""
    if event.object.kind in MADE_BY_THE_CLUSTER:
        return False
    own = old.find(event.object) if old else None
    kept = annotations_of(event.before or {}).get(hooks.RESOURCE_POLICY) == "keep"
    listed = new is not None and new.find(event.object) is not None
    return own is None or hooks.is_hook(own.body) or kept or listed


def _was_produced(moment: Moment, ref: Ref) -> bool:
    """Whether an operator created it for an object of the trial: without that it is not needed. Data are needed."""
    created = [event for event in moment.rehearsal.of_object(ref) if event.effect == "created"]
    by_operator = bool(created) and all(event.step >= 0 and event.cause is not None for event in created)
    return by_operator and ref.kind != "PersistentVolumeClaim" and not moment.case.is_assumed(ref)


def _is_of_the_trial(moment: Moment, ref: Ref) -> bool:
    """Whether it was created during the trial and is not only assumed."""
    made = any(event.effect == "created" and event.step >= 0 for event in moment.rehearsal.of_object(ref))
    return made and not moment.case.is_assumed(ref)


def _finding(moment: Moment, namespace: Resource, deletion: Event, lost: list[Event]) -> Finding:
    ref, ended, who = namespace.ref, moment.ended, moment.speaker
    what = f"with {len(lost)} object{'s' if len(lost) > 1 else ''} in it that should stay"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="data-loss",
        certainty="will" if any(_is_of_the_trial(moment, event.object) for event in lost) else "may",
        message=f"{moment.act} deletes {ref} {what if lost else OTHERS}",
        details=(
            f"{LISTS.get(who, 'The new manifest no longer lists it')}, so {who} treats it as removed."
            if ended.action not in ENDS
            else "",
            f"Deleted with it: {named(event.object for event in lost)}." if lost else "",
            KEPT_BY.get(who, KEPT),
            f"{who} reports success." if ended.outcome == "ok" else "",
        ),
        places=[namespace.place("metadata", "name")],
        evidence=[deletion, *lost[:EVIDENCE_MAX]],
        confirm=f"kubectl get all,configmap,secret,pvc -n {ref.name}  # all of this is deleted",
        removal=ended.role == "remove" and not lost,
    )


RULE = Rule("ST404", "chart-owned-namespace-deleted", check)
