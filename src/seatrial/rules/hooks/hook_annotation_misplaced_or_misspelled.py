"""A hook annotation is misspelt or in the wrong place, and Helm silently does something else.

## What happens
Helm reads `helm.sh/hook` from the annotations of the object itself, and nowhere else.

- An event that it does not know - one is enough among several, and so is a comma at the end - makes it leave out the
  *whole object*: neither a hook nor a plain object. All that it says is a line of its log, `skipping unknown hooks`.
  `crd-install` and `test-failure` are such events since Helm 3.
- Under `labels`, or in the metadata of a pod template, the annotation means nothing: the object is a plain one, made
  with all the others and kept until it leaves the chart. A plain Job is not run again by an upgrade, and fails it when
  its template changes. The same goes for a key that is misspelt.
- `helm.sh/hook-weight` and `helm.sh/hook-delete-policy` mean nothing without `helm.sh/hook`.
- A weight that is no whole number is 0.

Keys that stand twice in one mapping cannot be seen here: YAML keeps only the last.

## Example
```yaml
metadata:
  annotations:
    helm.sh/hook: pre-instal       # the object is gone
```

## Instead
`pre-install`, `post-install`, `pre-upgrade`, `post-upgrade`, `pre-rollback`, `post-rollback`, `pre-delete`,
`post-delete`, `test`; several separated by commas, in one annotation. Weights are quoted whole numbers.

## Fix safety
An object that was plain by mistake becomes a hook: see release-to-hook-flip for what the next upgrade does to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from msgspec import Struct

from seatrial.evidence.argocd.syncs import ARGOCD, done_by_argocd, is_argocd
from seatrial.evidence.hooks.runs import done_by_helm
from seatrial.evidence.moment import Moment, found
from seatrial.helm import argocd_hooks, hooks
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig, labels_of
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl, users_beyond_hooks

KEYS = (hooks.HOOK, hooks.WEIGHT, hooks.DELETE_POLICY, hooks.OUTPUT_LOG_POLICY)
NEVER_KNOWN = {"crd-install": "Helm 3 took it away", "test-failure": "Helm 3 took it away"}
TEMPLATES = (("spec", "template"), ("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template"))
LIKE_A_HOOK = re.compile(r"helm\.sh[/.]?hooks?\b.*", re.IGNORECASE)


class Fault(Struct, frozen=True):
    """What is wrong with how one object is annotated."""

    path: tuple[str, ...]
    message: str
    then: str
    damage: Damage


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, tuple[str, ...]]] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        for resource in release.resources if release else ():
            fault = _fault(moment, resource)
            if fault is None or (resource.ref, fault.path) in seen:
                continue
            seen.add((resource.ref, fault.path))
            users = [str(edge.user.ref) for edge in users_beyond_hooks(release, resource.ref)] if release else []
            yield _finding(moment, resource, fault, users)


def _fault(moment: Moment, resource: Resource) -> Fault | None:
    if is_argocd(moment.rehearsal):
        return _of_argocd(moment.rehearsal, resource)
    done = any(done_by_helm(moment, resource.ref))
    if hooks.is_hook(resource.body):
        return _of_a_hook(resource, done=done)
    return _of_a_plain_object(resource) if done else None


def _of_argocd(rehearsal: Rehearsal, resource: Resource) -> Fault | None:
    """What Argo CD does not understand of its own annotations: an unknown hook, a wave that is no number."""
    body, written = resource.body, annotations_of(resource.body)
    made = any(e.object == resource.ref and e.actor == ARGOCD and e.effect == "created" for e in rehearsal.timeline)
    named, wave = str(written.get(argocd_hooks.HOOK, "")), str(written.get(argocd_hooks.WAVE, "0"))
    if (
        named
        and not made
        and argocd_hooks.is_ignored(body)
        and not set(argocd_hooks.ON_DELETION) & set(named.split(","))
    ):
        close = get_close_matches(named, argocd_hooks.PHASES, 1, 0.5)
        return Fault(
            ("metadata", "annotations", argocd_hooks.HOOK),
            f'Argo CD leaves {resource.ref} out, for the hook "{named}": '
            + (f"is {close[0]} meant?" if close else "it knows no such hook"),
            "It is neither applied as a hook nor as a plain object, and the Application is Synced.",
            "failed-deploy",
        )
    if made and not hooks.is_number(wave):
        return Fault(
            ("metadata", "annotations", argocd_hooks.WAVE),
            f'Argo CD takes the wave of {resource.ref}, "{wave}", for {argocd_hooks.wave_of(body)}',
            "It is no whole number, and Argo CD does not say that it reads it so.",
            "nuisance",
        )
    return None


def _of_a_hook(resource: Resource, *, done: bool) -> Fault | None:
    unknown = hooks.unknown_events(resource.body)
    if unknown and not done:
        return _dropped(resource, unknown[0])
    weight = str(annotations_of(resource.body).get(hooks.WEIGHT, "0"))
    if not unknown and not hooks.is_number(weight):
        message = f'Helm takes the weight of {resource.ref}, "{weight}", for 0'
        return Fault(
            ("metadata", "annotations", hooks.WEIGHT),
            message,
            "It is no whole number, and Helm does not say that it reads it so.",
            "nuisance",
        )
    return _misspelt_beside(resource)


def _dropped(resource: Resource, event: str) -> Fault:
    close = get_close_matches(event, sorted(hooks.KNOWN_EVENTS), 1, 0.6)
    why = NEVER_KNOWN.get(event) or (f"is {close[0]} meant?" if close else "Helm knows no such event")
    events = ",".join(hooks.events_of(resource.body))
    named = f'the event "{event}"' if event else "an empty event (a comma too many)"
    return Fault(
        ("metadata", "annotations", hooks.HOOK),
        f"Helm leaves {resource.ref} out, for {named}: {why}",
        "One event that Helm does not know is enough: the object is neither a hook nor a plain object of the release. "
        f'Helm reports success, and says in its log: "skipping unknown hooks" hookTypes={events}.',
        "failed-deploy",
    )


def _of_a_plain_object(resource: Resource) -> Fault | None:
    body = resource.body
    for path, where in _misplaced(body):
        message = f"{resource.ref} is no hook, since its helm.sh/hook stands {where}: Helm makes it as a plain object"
        return Fault(path, message, _as_plain(resource), _worth(resource))
    if (misspelt := _misspelt_beside(resource)) is not None:
        return misspelt
    alone = [key for key in KEYS[1:] if key in annotations_of(body)]
    if alone:
        message = f"{resource.ref} is no hook, and its {' and '.join(alone)} means nothing: helm.sh/hook is missing"
        return Fault(("metadata", "annotations", alone[0]), message, _as_plain(resource), "nuisance")
    return None


def _misplaced(body: Body) -> Iterator[tuple[tuple[str, ...], str]]:
    if hooks.HOOK in labels_of(body):
        yield ("metadata", "labels", hooks.HOOK), "under labels"
    for path in TEMPLATES:
        if hooks.HOOK in (dig(body, *path, "metadata", "annotations") or {}):
            yield (*path, "metadata", "annotations", hooks.HOOK), "in the metadata of a template"


def _misspelt_beside(resource: Resource) -> Fault | None:
    """A key that looks like one of Helm's and is none."""
    for key in annotations_of(resource.body):
        plain = key.strip().lower().replace("_", "-")
        if key in KEYS or not LIKE_A_HOOK.fullmatch(plain):
            continue
        meant = get_close_matches(plain, KEYS, 1, 0.8)
        if meant and meant[0] not in annotations_of(resource.body):
            message = f"Helm does not read {key} of {resource.ref}: is {meant[0]} meant?"
            then = _as_plain(resource) if meant[0] == hooks.HOOK else ""
            worth = _worth(resource) if meant[0] == hooks.HOOK else "nuisance"
            return Fault(("metadata", "annotations", key), message, then, worth)
    return None


def _as_plain(resource: Resource) -> str:
    if resource.ref.kind == "Job":
        return (
            "It is made together with the app, not before it. An upgrade does not run it again, and fails as soon as "
            "its template changes: a Job's template is immutable."
        )
    return "It is made among the other objects of its kind, and stays until it leaves the chart."


def _worth(resource: Resource) -> Damage:
    return "failed-deploy" if resource.ref.kind in ("Job", "Pod") else "nuisance"


def _finding(moment: Moment, resource: Resource, fault: Fault, users: list[str]) -> Finding:
    ref = resource.ref
    done_by = done_by_argocd if is_argocd(moment.rehearsal) else done_by_helm
    done = list(done_by(moment, ref))
    needed = f"{', '.join(users)} needs it." if users and not done else ""
    refused = f'The API server refuses it: "{done[-1].message}".' if done and done[-1].effect == "refused" else ""
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
        return f"argocd app resources {release}  # and the waves: argocd app get {release} --show-operation"
    if any(done_by_helm(moment, resource.ref)):
        listed = "as it is read" if hooks.is_hook(resource.body) else "which does not list it"
        return f"helm get hooks {release}  # {listed}"
    return f"kubectl get {in_kubectl(resource.ref)}  # nor do helm get hooks {release} and helm get manifest list it"


RULE = Rule("ST213", "hook-annotation-misplaced-or-misspelled", check)
