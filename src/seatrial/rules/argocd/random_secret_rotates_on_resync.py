"""A template makes up a password each time it is rendered, and Argo CD and Pulumi render it again and again.

## What happens
Argo CD runs `helm template`: `randAlphaNum` and its kin give another value with each rendering, and `lookup` finds
nothing, so that a template which means to keep the value that is there makes up a new one as well. The next sync
writes it into the Secret, under data that was set up with the old one. A database turns away whoever comes with the new
password; sessions and tokens that were signed with an old key end; with a checksum of the Secret in their template all
pods restart.

It is often said that the value changes with every refresh. Argo CD keeps what it rendered for a commit, for a day as it
comes. It renders anew for another commit, whatever that changes; with a hard refresh; when the keeping ends; and when
the cluster gains or loses an API. Then the Application is `OutOfSync` although nobody changed anything, and automated
syncs apply the new value at once.

Pulumi renders a `helm.v3.Chart` and a `helm.v4.Chart` whenever the program runs, once for the preview and once more for
the `up`, be there a change or none. The data of a Secret it never changes in place: every `up` deletes the Secret and
makes another one. In a `v3.Chart` `lookup` finds nothing, as with Argo CD; in a `v4.Chart` it asks the cluster, and a
template that keeps what it finds there is left alone. A `helm.v3.Release` is rendered by Helm, and only when its chart
or values change.

It **will** do harm where a workload with storage reads a key that is called a password. Elsewhere it **may**: whether
the value is stored anywhere is known only to the app.

## Example
```yaml
{{- $old := (lookup "v1" "Secret" .Release.Namespace "app-db").data | default dict }}
data:
  password: {{ $old.password | default (randAlphaNum 20 | b64enc) }}    # Argo CD: always a new one
```

## Instead
Take the value from `.Values` with `required`, or name a Secret that exists (`existingSecret`), made by hand, by an
operator or out of an `ExternalSecret`. If the chart cannot be changed: `ignoreDifferences` for the Secret's `/data`
together with the sync option `RespectIgnoreDifferences=true`; without that option the field is not compared, and still
written with each sync. With Pulumi: a `helm.v3.Release`, or `ignoreChanges: ["data", "stringData"]` on the Secret by
a transformation.

## Fix safety
Taking the value from elsewhere is safe if it is the one that the data was set up with.
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

BY_ARGOCD = (
    "Argo CD renders without a cluster: lookup finds nothing there, so a template that reads the old value back makes "
    "up another one too. It renders anew for each commit, at a hard refresh, and when what it kept of the last time "
    "has expired."
)
BY_PULUMI = (
    "A Chart is rendered whenever the program runs, also where nothing changes, and once for the preview: what up "
    "makes is not what the preview showed. The data of a Secret is never changed in place: it is deleted and made "
    "anew, and a pod that starts in between does not find it."
)
RELEASED = "A helm.v3.Release is rendered only when its chart or values change, by Helm, whose lookup asks the cluster."


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if is_argocd(rehearsal) or is_pulumi(rehearsal):
        yield from (_finding(rehearsal, case, *found_one) for found_one in made_up(rehearsal, case))


def _finding(rehearsal: Rehearsal, case: Case, renewed: Renewed, keys: tuple[str, ...], readers: list[Edge]) -> Finding:
    ref, by_pulumi = renewed.secret.ref, not is_argocd(rehearsal)
    what = f"every pulumi up deletes {ref} and makes up its {named(keys)} anew"
    if not by_pulumi:
        what = f"a sync makes up {named(keys)} of {ref} anew whenever Argo CD has rendered again"
    why = BY_PULUMI if by_pulumi else BY_ARGOCD
    keeper = keeper_of(readers)
    certainty, damage = severity(keeper, keys, readers)
    return found(
        RULE,
        Moment(rehearsal, case, renewed.step),
        objects=[ref],
        damage=damage,
        certainty=certainty,
        message=f"{what}, {outcome_of(keeper, readers)}",
        details=(
            why,
            *what_pods_do(rehearsal, case, renewed, readers),
            TURNED_AWAY if (certainty, damage) == ("will", "outage") else "",
            "Going back to an older commit does not bring the old value back: that is rendered again as well.",
            RELEASED if by_pulumi else "",
        ),
        places=[place_of(renewed.secret, key) for key in keys],
        evidence=[renewed.event],
        confirm=confirm_twice(ref, "{.data}", "another pulumi up" if by_pulumi else "a hard refresh and a sync"),
    )


RULE = Rule("ST803", "random-secret-rotates-on-resync", check)
