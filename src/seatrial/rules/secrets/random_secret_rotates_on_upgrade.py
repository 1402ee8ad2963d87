"""A template makes up a password each time it is rendered, so every upgrade changes it under data that keeps the old.

## What happens
`randAlphaNum` and its kin are called again at each `helm upgrade`: the Secret gets a new value though neither the chart
nor the values changed. A database writes its password into its volume when it first starts and never reads it from the
Secret again; clients that start after the upgrade read the new one and are turned away (`password authentication failed
for user`). Pods that keep running have the old value in their environment, so the fault often shows days later, when
something restarts. `helm rollback` puts the old value back, since it applies the stored text and renders nothing; the
next upgrade makes another one.

A value that is kept by `lookup` does not change under `helm upgrade`. Engines that render without a cluster
(`helm template`, Argo CD) see an empty `lookup`, and change it at each sync.

It **will** happen where a workload with storage reads a key that is called a password. For other keys, and for
workloads without storage, it **may** matter: whether the value is stored anywhere (an encryption key) or merely ends
some sessions is known only to the app.

## Example
```yaml
apiVersion: v1
kind: Secret
metadata:
  name: app-db
stringData:
  password: {{ randAlphaNum 20 }}
```

## Instead
Take the value from `.Values` with `required`, or name a Secret that exists (`existingSecret`), or read it back:
```yaml
{{- $old := (lookup "v1" "Secret" .Release.Namespace "app-db").data | default dict }}
data:
  password: {{ $old.password | default (randAlphaNum 20 | b64enc) }}
```
With `lookup`, add `helm.sh/resource-policy: keep` so that the password outlives an uninstall as the data does.

## Fix safety
Reading the value back is safe for releases that are installed: the next upgrade keeps what is in the Secret then, which
may already be another than the data was set up with.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.pulumi.programs import is_pulumi
from seatrial.evidence.rotated import Renewed
from seatrial.graph import Edge
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import confirm_twice
from seatrial.phrases.rotated import (
    TURNED_AWAY,
    keeper_of,
    made_up,
    named,
    outcome_of,
    place_of,
    severity,
    what_pods_do,
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if not is_argocd(rehearsal) and not is_pulumi(rehearsal):
        yield from (_finding(rehearsal, case, *found_one) for found_one in made_up(rehearsal, case))


def _finding(rehearsal: Rehearsal, case: Case, renewed: Renewed, keys: tuple[str, ...], readers: list[Edge]) -> Finding:
    ref = renewed.secret.ref
    keeper = keeper_of(readers)
    certainty, damage = severity(keeper, keys, readers)
    return found(
        RULE,
        Moment(rehearsal, case, renewed.step),
        objects=[ref],
        damage=damage,
        certainty=certainty,
        message=f"every helm upgrade makes up {named(keys)} of {ref} anew, {outcome_of(keeper, readers)}",
        details=(
            "Neither the chart nor the values changed; the template calls a random function each time it is rendered.",
            *what_pods_do(rehearsal, case, renewed, readers),
            TURNED_AWAY if (certainty, damage) == ("will", "outage") else "",
            "helm rollback puts the old value back, as it applies the stored text and renders nothing. The upgrade "
            "after it makes another one.",
        ),
        places=[place_of(renewed.secret, key) for key in keys],
        evidence=[renewed.event],
        confirm=confirm_twice(ref, "{.data}", "an upgrade to the same chart"),
    )


RULE = Rule("ST601", "random-secret-rotates-on-upgrade", check)
