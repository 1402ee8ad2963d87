"""An upgrade changes configuration that pods read at start, and does not restart them.

## What happens
A container gets its environment, and files mounted with `subPath`, only when it starts. When an upgrade changes the
ConfigMap or Secret but not the pod template, nothing restarts: Helm reports success, and the app keeps the old values
until its pods are replaced for another reason. The kubelet updates files of other volume mounts within about a minute;
these are not reported, because seatrial cannot see whether a program reads them again.

## Example
```yaml
kind: Deployment
spec:
  template:
    spec:
      containers:
        - envFrom: [{configMapRef: {name: shop}}]    # the pod template does not depend on its content
```

## Instead
```yaml
  template:
    metadata:
      annotations:
        checksum/config: {{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}
```
so that the pod template changes with the configuration; or put a hash of the content into the name; or use a reloader.

## Fix safety
The upgrade that adds the annotation restarts the pods once. A checksum over a template with random values restarts them
on every upgrade.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import restarted
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import same_input
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.kinds.core.secret import default_secret
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, annotations_of, dig, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.hooks import how
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named

KINDS = ("ConfigMap", "Secret")
STAYS_RUNNING = ("DaemonSet", "Deployment", "StatefulSet")
READ_ONCE = ("env", "envFrom")
RELOADER = "reloader.stakater.com/"
DATA = ("data", "binaryData")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        old, new = moment.before, moment.release
        if moment.ended.action != "upgrade" or moment.ended.outcome != "ok" or new is None or same_input(old, new):
            continue
        for event in moment.events():
            keys = _changed(event)
            readers = list(_readers(moment, new, event.object)) if keys else []
            if readers:
                yield _finding(moment, new, event, keys, readers)


def _changed(event: Event) -> list[str]:
    """The keys of a ConfigMap or Secret whose values Helm changed or removed."""
    if event.actor != "helm" or event.effect != "changed" or event.object.kind not in KINDS:
        return []
    was, now = _data(event.before or {}), _data(event.after or {})
    return sorted(key for key in was if was[key] != now.get(key))


def _data(body: Body) -> dict[str, str]:
    whole = default_secret(body) if body.get("kind") == "Secret" else body
    return {key: value for field in DATA for key, value in (whole.get(field) or {}).items()}


def _readers(moment: Moment, new: Release, ref: Ref) -> Iterator[tuple[Resource, Need]]:
    """Workloads that read the object at start, existed before the step, and are not restarted by it."""
    for resource in new.resources:
        if resource.ref.kind not in STAYS_RUNNING or hooks.is_hook(resource.body) or _is_reloaded(resource.body):
            continue
        need = next((n for n in needs_of(resource) if n.object == ref and _is_read_once(resource.body, n)), None)
        was_there = moment.was(resource.ref) is not None
        if need is not None and was_there and not restarted(moment, resource.ref):
            yield resource, need


def _is_read_once(body: Body, need: Need) -> bool:
    if any(part in READ_ONCE for part in need.field):
        return True
    if "volumes" not in need.field:
        return False
    at = need.field.index("volumes") + 2
    volume = dig(body, *need.field[:at], "name")
    containers = listed(body, "spec", "template", "spec", "containers")
    mounts = [mount for container in containers for mount in listed(container, "volumeMounts")]
    used = [mount for mount in mounts if mount.get("name") == volume]
    return bool(used) and all(mount.get("subPath") for mount in used)


def _is_reloaded(body: Body) -> bool:
    """Whether a reloader watches what the pods read."""
    annotations = (*annotations_of(body), *annotations_of(dig(body, "spec", "template") or {}))
    return any(RELOADER in annotation for annotation in annotations)


def _finding(
    moment: Moment, new: Release, event: Event, keys: list[str], readers: list[tuple[Resource, Need]]
) -> Finding:
    ref, (first, need) = event.object, readers[0]
    named = ", ".join(str(reader.ref) for reader, _ in readers)
    written = new.find(ref)
    what = f"key {keys[0]}" if len(keys) == 1 else f"keys {', '.join(keys)}"
    return found(
        RULE,
        moment,
        objects=[ref, *(reader.ref for reader, _ in readers)],
        damage="nuisance",
        message=f"helm upgrade changes {ref} without restarting {first_named(reader.ref for reader, _ in readers)}, "
        f"which {'reads' if len(readers) == 1 else 'read'} it only at start",
        details=(
            f"Changed: {what}. Not restarted: {named}.",
            f"{first.ref} {how(need)} it. A container gets that only when it starts, and the pod template did not "
            "change, so no pod is replaced.",
            "Helm reports success, and the new values are in the cluster. Pods that are replaced later start with the "
            "new values, so pods with old and new values run side by side.",
        ),
        places=[first.place(*need.field), *([written.place("data")] if written else [])],
        evidence=[event],
        confirm=f"kubectl rollout history {in_kubectl(first.ref)}  # no new revision after the upgrade",
    )


RULE = Rule("ST607", "config-change-without-restart", check)
