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

from seatrial.case import Case, Resource
from seatrial.findings import Certainty, Damage, Finding, Rule, found
from seatrial.graph import Edge
from seatrial.resource import Place, dig
from seatrial.rules.again import Renewed, renewed_secrets
from seatrial.rules.deeds import restarted
from seatrial.rules.secretdata import PASSWORD, PEM
from seatrial.rules.volumes import keeps_data
from seatrial.rules.words import confirm_twice, users_beyond_hooks
from seatrial.timeline import Rehearsal

TURNED_AWAY = (
    "A database takes its password from the Secret when its volume is empty, and never again. Who comes with the new "
    'one is turned away, by PostgreSQL with "password authentication failed for user".'
)


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for renewed in renewed_secrets(rehearsal, case):
        keys = tuple(key for key in renewed.keys if PEM not in renewed.content(key))
        readers = list(_readers(case, renewed, keys))
        if readers:
            yield _finding(rehearsal, renewed, keys, readers)


def _readers(case: Case, renewed: Renewed, keys: tuple[str, ...]) -> Iterator[Edge]:
    """Who reads one of these keys, or the whole Secret."""
    release = case.releases[renewed.step]
    for edge in users_beyond_hooks(release, renewed.secret.ref) if release and keys else ():
        if not edge.need.key or edge.need.key in keys:
            yield edge


def _finding(rehearsal: Rehearsal, renewed: Renewed, keys: tuple[str, ...], readers: list[Edge]) -> Finding:
    ref = renewed.secret.ref
    keeper = next((edge.user for edge in readers if keeps_data(edge.user)), None)
    certainty, damage = _severity(keeper, keys, readers)
    outcome = f"while {keeper.ref} keeps the data that it stored under the old one" if keeper else _others(readers)
    return found(
        RULE,
        rehearsal,
        renewed.step,
        objects=[ref],
        damage=damage,
        certainty=certainty,
        message=f"every helm upgrade makes up {_named(keys)} of {ref} anew, {outcome}",
        details=(
            "Neither the chart nor the values changed; the template calls a random function each time it is rendered.",
            *_what_pods_do(rehearsal, renewed, readers),
            TURNED_AWAY if (certainty, damage) == ("will", "outage") else "",
            "helm rollback puts the old value back, as it applies the stored text and renders nothing. The upgrade "
            "after it makes another one.",
        ),
        places=[_place(renewed.secret, key) for key in keys],
        evidence=[renewed.event],
        confirm=confirm_twice(ref, "{.data}", "an upgrade to the same chart"),
    )


def _severity(keeper: Resource | None, keys: tuple[str, ...], readers: list[Edge]) -> tuple[Certainty, Damage]:
    if keeper is None:
        return "may", "nuisance"
    read = {edge.need.key for edge in readers if edge.user.ref == keeper.ref}
    sure = any(PASSWORD.search(key) for key in keys if key in read or "" in read)
    return "will" if sure else "may", "outage"


def _others(readers: list[Edge]) -> str:
    return f"and what {', '.join(str(edge.user.ref) for edge in readers)} made with the old one no longer fits"


def _named(keys: tuple[str, ...]) -> str:
    return ", ".join(f"'{key}'" for key in keys)


def _what_pods_do(rehearsal: Rehearsal, renewed: Renewed, readers: list[Edge]) -> Iterator[str]:
    """Whether the upgrade itself starts the readers anew, and what that means."""
    for edge in readers:
        user = edge.user.ref
        if restarted(rehearsal, renewed.step, user):
            yield f"The upgrade restarts the pods of {user}: they start with the new value."
        elif "env" in edge.need.field or "envFrom" in edge.need.field:
            yield (
                f"The pods of {user} are not restarted and keep the old value in their environment; one that starts "
                "later, for whatever reason, gets the new one."
            )
        else:
            yield f"The pods of {user} are not restarted; the kubelet writes the new value into their volume meanwhile."


def _place(secret: Resource, key: str) -> Place:
    field = "stringData" if dig(secret.body, "stringData", key) is not None else "data"
    return secret.place(field, key)


RULE = Rule("ST601", "random-secret-rotates-on-upgrade", check)
