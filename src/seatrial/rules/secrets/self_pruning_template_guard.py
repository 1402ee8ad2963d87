"""A template renders an object only at install, so the first upgrade deletes it.

## What happens
`{{ if .Release.IsInstall }}` and `{{ if not (lookup ...) }}` are meant to say "create it once and leave it alone". But
Helm deletes what the old manifest lists and the new one does not. So the first upgrade deletes the object and reports
success. With a `lookup` of the object itself it flaps: the next upgrade finds nothing, renders it and recreates it,
with new random content; the one after that deletes it again.

`helm.sh/resource-policy: keep` prevents the deletion if it is on the live object by then. Under engines that render
without a cluster (`helm template`, Argo CD), `lookup` finds nothing and `IsInstall` is always true: there the object
stays and is overwritten.

Jobs and Pods are not reported: they have run, and nothing needs them.

## Example
```yaml
{{- if .Release.IsInstall }}
apiVersion: v1
kind: Secret
metadata:
  name: app-keys
{{- end }}
```

## Instead
Always render the object, and read its content back with `lookup` if it must not change:
```yaml
data:
  key: {{ ((lookup "v1" "Secret" .Release.Namespace "app-keys").data).key | default (randAlphaNum 20 | b64enc) }}
```

## Fix safety
Always rendering it is safe: releases that have lost it get it back. Adding `keep` helps from the next upgrade on,
because Helm reads it from the live object.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import pruned
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.rotated import written_otherwise
from seatrial.model.finding import Damage, Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import consumers_sentence, in_kubectl, next_time_sentence, pods_say, users_beyond_hooks

HAVE_RUN = ("Job", "Pod")
PASSIVE = ("ConfigMap", "Secret", "ServiceAccount")
"""Kinds that have an effect only if another object uses them."""
DATA = ("PersistentVolume", "PersistentVolumeClaim", "Namespace")

HOME = (
    "Remove {object} from the chart and install with --create-namespace. In an installed release add "
    "helm.sh/resource-policy: keep to it one release before."
)
"""The way out for the namespace of the release, which Helm cannot install always either."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        for event, was in pruned(moment) if moment.ended.action == "upgrade" else ():
            writes = written_otherwise(case, moment.index, event.object)
            if (
                writes is None
                or event.object in seen
                or event.object.kind in HAVE_RUN
                or _replaced(case, moment.index, was)
            ):
                continue
            seen.add(event.object)
            yield _finding(moment, event, writes, was)


def _replaced(case: Case, step: int, was: Resource) -> bool:
    """Whether the template renders it under another name instead, such as one with the revision number."""
    release = case.releases[step]
    written = release.resources if release else ()
    return any(r.file == was.file and r.ref.kind == was.ref.kind and r.ref != was.ref for r in written)


def _finding(moment: Moment, event: Event, writes: Resource, was: Resource) -> Finding:
    ref, release = event.object, moment.release
    assert release is not None
    asks = release.find(ref) is not None
    why = "omits it depending on the cluster" if asks else "renders it only at install"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=_damage(release, ref),
        message=f"the upgrade deletes {ref}, because its template {why}",
        details=(
            "The old manifest lists it and the new one does not, so Helm treats it as removed from the chart."
            + (" Helm reports success." if moment.ended.outcome == "ok" else ""),
            "Its template uses lookup or .Capabilities." if asks else "",
            consumers_sentence(release, ref, said=pods_say(moment, ref)),
            _afterwards(moment, ref, asks=asks),
        ),
        places=[writes.place("metadata", "name"), was.place("metadata", "name")],
        way_out=(HOME.replace("{object}", str(ref)),) if ref == Ref("Namespace", "", release.namespace) else (),
        evidence=[event],
        confirm=f"kubectl get {in_kubectl(ref)}  # before and after an upgrade to the same chart",
    )


def _damage(release: Release, ref: Ref) -> Damage:
    if ref.kind in DATA:
        return "data-loss"
    return "outage" if ref.kind not in PASSIVE or users_beyond_hooks(release, ref) else "nuisance"


def _afterwards(moment: Moment, ref: Ref, *, asks: bool) -> str:
    """What the next steps do to it; if there are none, what the template leads to."""
    if seen := next_time_sentence(moment, ref):
        return seen
    if asks:
        return "If it looks up itself, the next upgrade recreates it and the one after that deletes it again."
    return "No later upgrade recreates it."


RULE = Rule("ST603", "self-pruning-template-guard", check)
