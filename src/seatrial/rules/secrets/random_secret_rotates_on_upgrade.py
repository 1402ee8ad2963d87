"""A template generates a new password on every render, so every upgrade changes it while the data keeps the old one.

## What happens
`randAlphaNum` and similar functions run again on every `helm upgrade`: the Secret gets a new value although neither the
chart nor the values changed. A database stores its password in its volume at first start and never reads the Secret
again; clients that start after the upgrade use the new one and are rejected (`password authentication failed for
user`). Running pods keep the old value in their environment, so the failure often appears days later, when something
restarts. `helm rollback` restores the old value, because it applies the stored manifest without rendering; the next
upgrade generates another one.

A value that `lookup` reads back does not change under `helm upgrade`. Engines that render without a cluster
(`helm template`, Argo CD) get an empty `lookup`, and change it on every sync.

Pulumi upgrades a `helm.v3.Release` when one of its inputs changes: it happens with the next change of any value.

It **will** happen if a workload with storage reads a key that is named like a password. For other keys, and for
workloads without storage, it **may** matter: only the app knows whether the value is stored (an encryption key) or just
ends some sessions.

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
Take the value from `.Values` with `required`, or refer to an existing Secret (`existingSecret`), or read it back:
```yaml
{{- $old := (lookup "v1" "Secret" .Release.Namespace "app-db").data | default dict }}
data:
  password: {{ $old.password | default (randAlphaNum 20 | b64enc) }}
```
With `lookup`, add `helm.sh/resource-policy: keep` so that the password outlives an uninstall as the data does.

## Fix safety
Reading the value back is safe for existing releases: the next upgrade keeps what is in the Secret then, which may
already differ from what the data was set up with.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.pulumi.programs import is_pulumi
from seatrial.evidence.rotated import released_secrets
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.rotated import Rotation, rotations


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    if is_pulumi(rehearsal):
        yield from rotations(RULE, rehearsal, case, _by_release, released_secrets)
    elif not is_argocd(rehearsal):
        yield from rotations(RULE, rehearsal, case, _by_helm)


def _by_release(ref: Ref, keys: str) -> Rotation:
    return Rotation(
        f"every change of the Release gives {ref} a new {keys}",
        "Pulumi runs helm upgrade when any input of a helm.v3.Release changes. That renders the whole chart, and the "
        "template calls a random function.",
        ("While the program does not change, the value stays.",),
        "an up that changes another value of the Release",
    )


def _by_helm(ref: Ref, keys: str) -> Rotation:
    return Rotation(
        f"every helm upgrade gives {ref} a new {keys}",
        "Neither the chart nor the values changed; the template calls a random function on every render.",
        (
            "helm rollback restores the old value, because it applies the stored manifest without rendering. The next "
            "upgrade generates another one.",
        ),
        "an upgrade to the same chart",
    )


RULE = Rule("ST601", "random-secret-rotates-on-upgrade", check)
