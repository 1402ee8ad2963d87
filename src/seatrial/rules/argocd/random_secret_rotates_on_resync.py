"""A template generates a new password on every render, and Argo CD and Pulumi render repeatedly.

## What happens
Argo CD runs `helm template`: `randAlphaNum` and similar functions return a new value on every render, and `lookup`
finds nothing, so a template that reads the old value back also generates a new one. The next sync writes it into the
Secret, while the data keeps the old one. A database rejects clients with the new password; sessions and tokens that
were signed with an old key become invalid; with a checksum of the Secret in their template all pods restart.

It is often said that the value changes on every refresh. Argo CD caches what it rendered for a commit, for a day by
default. It renders again for another commit, whatever that changes; on a hard refresh; when the cache expires; and when
the cluster gains or loses an API. Then the Application is `OutOfSync` although nothing was changed, and automated sync
applies the new value at once.

Pulumi renders a `helm.v3.Chart` and a `helm.v4.Chart` whenever the program runs, once for the preview and once for the
`up`, with or without changes. It never changes the data of a Secret in place: every `up` deletes and recreates the
Secret. In a `v3.Chart` `lookup` finds nothing, as with Argo CD; in a `v4.Chart` it asks the cluster, and a template
that reads the old value back is not reported. Helm renders a `helm.v3.Release`, only when its chart or values change.

It **will** do damage if a workload with storage reads a key that is named like a password. Otherwise it **may**: only
the app knows whether the value is stored.

## Example
```yaml
{{- $old := (lookup "v1" "Secret" .Release.Namespace "app-db").data | default dict }}
data:
  password: {{ $old.password | default (randAlphaNum 20 | b64enc) }}    # Argo CD: always a new one
```

## Instead
Take the value from `.Values` with `required`, or refer to an existing Secret (`existingSecret`), created by hand, by
an operator or from an `ExternalSecret`. If the chart cannot be changed: `ignoreDifferences` for the Secret's `/data`
with the sync option `RespectIgnoreDifferences=true`; without that option the field is not compared, but still written
on every sync. It does not help a template that writes `stringData`: that stays in what is applied, and wins over
`data`. With Pulumi: a `helm.v3.Release`, or `ignoreChanges: ["data", "stringData"]` on the Secret with a
transformation.

## Fix safety
Taking the value from elsewhere is safe if it is the one that the data was set up with.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.pulumi.programs import is_pulumi
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.rotated import Rotation, rotations

BY_ARGOCD = (
    "Argo CD renders without a cluster: lookup finds nothing, so a template that reads the old value back also "
    "generates a new one. It renders again for each commit, on a hard refresh, and when its cache expires."
)
BY_PULUMI = (
    "A Chart is rendered whenever the program runs, also without changes, and once for the preview: the up does not "
    "create what the preview showed. Pulumi never changes the data of a Secret in place: it deletes and recreates it, "
    "and a pod that starts in between does not find it."
)
RELEASED = "Helm renders a helm.v3.Release only when its chart or values change, and its lookup asks the cluster."
OLDER_COMMIT = "Going back to an older commit does not restore the old value: it is rendered again as well."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if is_argocd(rehearsal):
        yield from rotations(RULE, rehearsal, case, _by_argocd)
    elif is_pulumi(rehearsal):
        yield from rotations(RULE, rehearsal, case, _by_pulumi)


def _by_argocd(ref: Ref, keys: str) -> Rotation:
    what = f"every Argo CD render gives {ref} a new {keys}"
    return Rotation(what, BY_ARGOCD, (OLDER_COMMIT,), "a hard refresh and a sync")


def _by_pulumi(ref: Ref, keys: str) -> Rotation:
    what = f"every pulumi up recreates {ref} with a new {keys}"
    return Rotation(what, BY_PULUMI, (OLDER_COMMIT, RELEASED), "another pulumi up")


RULE = Rule("ST803", "random-secret-rotates-on-resync", check)
