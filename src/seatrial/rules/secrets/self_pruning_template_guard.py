"""A template leaves an object out of upgrades, and leaving it out means that Helm deletes it.

## What happens
`{{ if .Release.IsInstall }}` and `{{ if not (lookup ...) }}` are meant to say "make it once and leave it alone". Helm
reads them otherwise: what the old manifest lists and the new one does not is deleted. So the first upgrade takes the
object away, and reports success. A `lookup` of the object itself makes it flap: the upgrade after that finds nothing,
renders it, and makes it anew, with other random content; the one after that deletes it again.

`helm.sh/resource-policy: keep` saves it, if it is on the live object by then. Under engines that render without a
cluster (`helm template`, Argo CD), `lookup` finds nothing and `IsInstall` is always true: there the object stays, and
is overwritten.

Jobs and Pods that are left out are not reported: they have run, and nothing needs them.

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
Always write the object, and read its content back with `lookup` where it must not change:
```yaml
data:
  key: {{ ((lookup "v1" "Secret" .Release.Namespace "app-keys").data).key | default (randAlphaNum 20 | b64enc) }}
```

## Fix safety
Always writing it is safe: releases from which it is gone already get it back. Adding `keep` helps from the next upgrade
on, since Helm asks the live object.
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
"""Kinds that do nothing unless someone uses them."""
DATA = ("PersistentVolume", "PersistentVolumeClaim", "Namespace")


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
    """Whether the template writes one under another name instead, as one that is named after the revision does."""
    release = case.releases[step]
    written = release.resources if release else ()
    return any(r.file == was.file and r.ref.kind == was.ref.kind and r.ref != was.ref for r in written)


def _finding(moment: Moment, event: Event, writes: Resource, was: Resource) -> Finding:
    ref, release = event.object, moment.release
    assert release is not None
    asks = release.find(ref) is not None
    why = "leaves it out for what it finds in the cluster" if asks else "writes it only when the release is installed"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage=_damage(release, ref),
        message=f"the upgrade deletes {ref}, because its template {why}",
        details=(
            "The old manifest lists it and the new one does not: to Helm it was removed from the chart."
            + (" It reported success." if moment.ended.outcome == "ok" else ""),
            "Its template asks with lookup or .Capabilities." if asks else "",
            consumers_sentence(release, ref, said=pods_say(moment, ref)),
            _afterwards(moment, ref, asks=asks),
        ),
        places=[writes.place("metadata", "name"), was.place("metadata", "name")],
        evidence=[event],
        confirm=f"kubectl get {in_kubectl(ref)}  # before and after an upgrade to the same chart",
    )


def _damage(release: Release, ref: Ref) -> Damage:
    if ref.kind in DATA:
        return "data-loss"
    return "outage" if ref.kind not in PASSIVE or users_beyond_hooks(release, ref) else "nuisance"


def _afterwards(moment: Moment, ref: Ref, *, asks: bool) -> str:
    """What the steps after it did; where there are none, what the template will."""
    if seen := next_time_sentence(moment, ref):
        return seen
    if asks:
        return (
            "Where it looks for itself, the next upgrade finds none and writes it anew, the one after deletes it again."
        )
    return "No later upgrade brings it back."


RULE = Rule("ST603", "self-pruning-template-guard", check)
