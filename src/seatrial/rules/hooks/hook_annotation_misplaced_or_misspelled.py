"""A hook annotation is misspelled or in the wrong place, and Helm silently ignores it or the whole object.

## What happens
Helm reads `helm.sh/hook` only from the annotations of the object itself.

- If one of the events is unknown (a typo, or an extra comma at the end), Helm ignores the *whole object*: it creates it
  neither as a hook nor as a regular resource. It only logs `skipping unknown hooks`. `crd-install` and `test-failure`
  are events of Helm 2: Helm 3 and 4 do not know them.
- Under `labels`, or in the metadata of a pod template, the annotation has no effect: the object is a regular resource,
  created with the others and kept until it leaves the chart. An upgrade does not run a regular Job again, and fails
  when its template changes. A misspelled key has the same effect. The same holds for `argocd.argoproj.io/hook` and
  `argocd.argoproj.io/sync-wave`, of which Argo CD only reads annotations.
- `helm.sh/hook-weight` and `helm.sh/hook-delete-policy` have no effect without `helm.sh/hook`.
- A weight that is not an integer is read as 0.

- An annotation that is written twice counts once: YAML keeps the last value, and neither Helm nor the API server
  reports the other.

## Example
```yaml
metadata:
  annotations:
    helm.sh/hook: pre-instal       # Helm ignores the object
```

## Instead
Use `pre-install`, `post-install`, `pre-upgrade`, `post-upgrade`, `pre-rollback`, `post-rollback`, `pre-delete`,
`post-delete` or `test`; several separated by commas, in one annotation. Weights are quoted integers.

## Fix safety
The fix turns a regular resource into a hook: see release-to-hook-flip for what the next upgrade does to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from msgspec import Struct

from seatrial.evidence.argocd.syncs import ARGOCD, done_by_argocd, is_argocd
from seatrial.evidence.hooks.runs import done_by_helm
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import argocd_hooks, hooks
from seatrial.model import lazy_re
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl, users_beyond_hooks

KEYS = (hooks.HOOK, hooks.WEIGHT, hooks.DELETE_POLICY, hooks.OUTPUT_LOG_POLICY)
ARGOCD_KEYS = (argocd_hooks.HOOK, argocd_hooks.WAVE)
REMOVED = ("crd-install", "test-failure")
"""Events that Helm 3 removed."""
TEMPLATES = (("spec", "template"), ("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template"))
LIKE_A_HOOK = lazy_re.compile(r"helm\.sh[/.]?hooks?\b.*", re.IGNORECASE)


class AnnotationFault(Struct, frozen=True):
    """What is wrong with the annotations of one object."""

    path: tuple[str, ...]
    message: str
    then: str
    damage: Damage


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, tuple[str, ...]]] = set()
    for moment in moments(rehearsal, case):
        release = moment.release
        for resource in release.resources if release else ():
            fault = _fault(moment, resource)
            if fault is None or (resource.ref, fault.path) in seen:
                continue
            seen.add((resource.ref, fault.path))
            users = [str(edge.user.ref) for edge in users_beyond_hooks(release, resource.ref)] if release else []
            yield _finding(moment, resource, fault, users)


def _fault(moment: Moment, resource: Resource) -> AnnotationFault | None:
    if is_argocd(moment.rehearsal):
        return _of_argocd(moment.rehearsal, resource)
    done = any(done_by_helm(moment, resource.ref))
    if hooks.is_hook(resource.body):
        in_folder = moment.release is not None and any(crd.ref == resource.ref for crd in moment.release.crds)
        return _of_a_hook(resource, done=done or in_folder)
    return _of_a_regular_resource(resource) if done else None


def _of_argocd(rehearsal: Rehearsal, resource: Resource) -> AnnotationFault | None:
    """An unknown hook type, a wave that is not an integer, or a key of Argo CD that is not an annotation."""
    body, written = resource.body, annotations_of(resource.body)
    created = any(e.object == resource.ref and e.actor == ARGOCD and e.effect == "created" for e in rehearsal.timeline)
    named, wave = str(written.get(argocd_hooks.HOOK, "")), str(written.get(argocd_hooks.WAVE, "0"))
    if (
        named
        and not created
        and argocd_hooks.is_ignored(body)
        and not set(argocd_hooks.ON_DELETION) & set(named.split(","))
    ):
        close = get_close_matches(named, argocd_hooks.PHASES, 1, 0.5)
        return AnnotationFault(
            ("metadata", "annotations", argocd_hooks.HOOK),
            f'Argo CD ignores {resource.ref}: "{named}" is not a hook type{_did_you_mean(close)}',
            "Argo CD applies it neither as a hook nor as a regular resource, and the Application is Synced.",
            "failed-deploy",
        )
    if created and not hooks.is_number(wave):
        return AnnotationFault(
            ("metadata", "annotations", argocd_hooks.WAVE),
            f'Argo CD reads the sync wave "{wave}" of {resource.ref} as {argocd_hooks.wave_of(body)}',
            "It is not an integer. Argo CD does not report that.",
            "nuisance",
        )
    if created and (misplaced := next(_misplaced(body, ARGOCD_KEYS), None)) and misplaced[0][-1] not in written:
        path, where = misplaced
        return AnnotationFault(
            path,
            f"{path[-1]} of {resource.ref} has no effect: it is {where}",
            "Argo CD reads annotations of the object only, and applies it as a regular resource in wave "
            f"{argocd_hooks.wave_of(body)}.",
            "failed-deploy" if path[-1] == argocd_hooks.HOOK else "nuisance",
        )
    return None


def _of_a_hook(resource: Resource, *, done: bool) -> AnnotationFault | None:
    unknown = hooks.unknown_events(resource.body)
    if unknown and not done:
        return _dropped(resource, unknown[0])
    weight = str(annotations_of(resource.body).get(hooks.WEIGHT, "0"))
    if not unknown and not hooks.is_number(weight):
        return AnnotationFault(
            ("metadata", "annotations", hooks.WEIGHT),
            f'Helm reads the hook weight "{weight}" of {resource.ref} as 0',
            "It is not an integer. Helm does not report that.",
            "nuisance",
        )
    return _hidden(resource) or _misspelled_key(resource)


def _hidden(resource: Resource) -> AnnotationFault | None:
    """An annotation that is written twice with two values."""
    written = annotations_of(resource.body)
    for key, value in resource.overridden:
        last = str(written.get(key))
        lost = sorted(set(value.split(",")) - set(last.split(",")))
        if key in KEYS and lost:
            return AnnotationFault(
                ("metadata", "annotations", key),
                f'Helm ignores "{",".join(lost)}" of {resource.ref}: its {key} is written twice',
                f'YAML keeps the last value, "{last}", and no tool reports the other. Write one annotation: '
                f"{key}: {','.join(dict.fromkeys((*value.split(','), *last.split(','))))}.",
                "failed-deploy" if key == hooks.HOOK else "nuisance",
            )
    return None


def _dropped(resource: Resource, event: str) -> AnnotationFault:
    close = get_close_matches(event, sorted(hooks.KNOWN_EVENTS), 1, 0.6)
    since = " in Helm 3 and 4" if event in REMOVED else _did_you_mean(close)
    why = f'"{event}" is not a hook event{since}' if event else "its helm.sh/hook has an empty event (an extra comma)"
    events = ",".join(hooks.events_of(resource.body))
    return AnnotationFault(
        ("metadata", "annotations", hooks.HOOK),
        f"Helm ignores {resource.ref}: {why}",
        "One unknown event is enough: Helm creates the object neither as a hook nor as a regular resource. It reports "
        f'success and only logs "skipping unknown hooks" hookTypes={events}.',
        "failed-deploy",
    )


def _did_you_mean(close: list[str]) -> str:
    return f"; did you mean {close[0]}?" if close else ""


def _of_a_regular_resource(resource: Resource) -> AnnotationFault | None:
    body = resource.body
    for path, where in _misplaced(body):
        message = f"{resource.ref} is not a hook: its helm.sh/hook is {where}"
        return AnnotationFault(path, message, _consequence(resource), _damage(resource))
    if (misspelled := _misspelled_key(resource)) is not None:
        return misspelled
    alone = [key for key in KEYS[1:] if key in annotations_of(body)]
    if alone:
        have = "have" if len(alone) > 1 else "has"
        message = f"{resource.ref} is not a hook: {' and '.join(alone)} {have} no effect without helm.sh/hook"
        return AnnotationFault(("metadata", "annotations", alone[0]), message, _consequence(resource), "nuisance")
    return None


def _misplaced(body: Body, keys: tuple[str, ...] = (hooks.HOOK,)) -> Iterator[tuple[tuple[str, ...], str]]:
    """Keys that must be annotations of the object, and are somewhere else."""
    for key in keys:
        if key in labels_of(body):
            yield ("metadata", "labels", key), "under labels"
        for path in TEMPLATES:
            if key in (dig(body, *path, "metadata", "annotations") or {}):
                yield (*path, "metadata", "annotations", key), "in the metadata of a template"


def _misspelled_key(resource: Resource) -> AnnotationFault | None:
    """An annotation key that looks like one of Helm's but is not."""
    for key in annotations_of(resource.body):
        normalized = key.strip().lower().replace("_", "-")
        if key in KEYS or not LIKE_A_HOOK.fullmatch(normalized):
            continue
        meant = get_close_matches(normalized, KEYS, 1, 0.8)
        if meant and meant[0] not in annotations_of(resource.body):
            message = f"Helm ignores the annotation {key} of {resource.ref}; did you mean {meant[0]}?"
            then = _consequence(resource) if meant[0] == hooks.HOOK else ""
            damage = _damage(resource) if meant[0] == hooks.HOOK else "nuisance"
            return AnnotationFault(("metadata", "annotations", key), message, then, damage)
    return None


def _consequence(resource: Resource) -> str:
    """What it means that the object is a regular resource."""
    if resource.ref.kind == "Job":
        return (
            "Helm creates it as a regular resource, together with the app, not before it. An upgrade does not run "
            "it again, and fails when "
            "its template changes: a Job's template is immutable."
        )
    return "Helm creates it as a regular resource, with the others of its kind, and keeps it until it leaves the chart."


def _damage(resource: Resource) -> Damage:
    return "failed-deploy" if resource.ref.kind in ("Job", "Pod") else "nuisance"


def _finding(moment: Moment, resource: Resource, fault: AnnotationFault, users: list[str]) -> Finding:
    ref = resource.ref
    done_by = done_by_argocd if is_argocd(moment.rehearsal) else done_by_helm
    done = list(done_by(moment, ref))
    needed = f"{', '.join(users)} {'needs' if len(users) == 1 else 'need'} it." if users and not done else ""
    refused = f'The API server rejects it: "{done[-1].message}".' if done and done[-1].effect == "refused" else ""
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="outage" if needed else fault.damage,
        message=fault.message,
        details=(fault.then, needed, refused),
        places=[resource.place(*fault.path)],
        evidence=done[-1:],
        confirm=_confirm(moment, resource),
    )


def _confirm(moment: Moment, resource: Resource) -> str:
    release = moment.ended.release
    if is_argocd(moment.rehearsal):
        listed = "lists it" if any(done_by_argocd(moment, resource.ref)) else "does not list it"
        return f"argocd app resources {release}  # {listed}"
    if any(done_by_helm(moment, resource.ref)) or resource.overridden:
        listed = "shows it as Helm reads it" if hooks.is_hook(resource.body) else "does not list it"
        return f"helm get hooks {release}  # {listed}"
    return f"kubectl get {in_kubectl(resource.ref)}  # not found; helm get all {release} does not list it either"


RULE = Rule("ST213", "hook-annotation-misplaced-or-misspelled", check)
