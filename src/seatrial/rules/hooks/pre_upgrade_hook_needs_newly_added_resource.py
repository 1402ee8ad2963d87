"""A pre-upgrade hook uses what only the new revision brings, so the upgrade fails for those who have the release.

## What happens
Pre-upgrade hooks of the new revision run while the cluster still holds the objects of the old one. A Secret, ConfigMap
or account that the new revision adds is made after them; a key that it adds to a Secret that exists is not in it yet.
The hook's pod does not start, and Helm waits until `--timeout`.

A fresh install does not run pre-upgrade hooks. So it passes every test that installs the chart, and fails for everyone
who has it. Deploying again does not help: nothing of the failed upgrade was made.

## Example
```yaml
apiVersion: v1
kind: Secret
metadata:
  name: app-db              # new in this revision
---
apiVersion: batch/v1
kind: Job
metadata:
  name: app-migrate
  annotations:
    helm.sh/hook: pre-upgrade
spec:
  template:
    spec:
      containers:
        - name: migrate
          envFrom:
            - secretRef: {name: app-db}
```

## Instead
Give the hook a copy of its own under another name, a pre-upgrade hook with a lower weight. Or take two releases: one
that adds the object, and the next that uses it in the hook.

## Fix safety
A copy under another name touches nothing that is installed. Turning the object itself into a hook is a
release-to-hook flip from the next revision on.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import ends, ends_sentence, evidence_of, hook_needs, look_at
from seatrial.phrases.outcome import aftermath
from seatrial.phrases.too_early import is_too_early, only_upgrades


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        if is_too_early(lack) and only_upgrades(rehearsal, case, lack):
            yield _finding(rehearsal, case, lack)


def _finding(rehearsal: Rehearsal, case: Case, lack: Lack) -> Finding:
    moment = Moment(rehearsal, case, lack.step)
    assert lack.brought is not None
    return found(
        RULE,
        moment,
        objects=[lack.hook.ref, lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, which only this revision brings",
        details=(
            _order(lack),
            ends_sentence(rehearsal, case, lack),
            aftermath(moment, lack.hook.ref),
            "A fresh install runs no pre-upgrade hook and works: only those who have the release see this.",
            "Give the hook a copy of its own under another name, as a pre-upgrade hook with a lower weight; or release "
            f"{'the key' if lack.key else 'the object'} first and the hook that uses it in the next revision.",
        ),
        places=[lack.hook.place(*lack.need.field), lack.brought.place("metadata", "name")],
        evidence=evidence_of(rehearsal, case, lack),
        confirm=look_at(lack),
    )


def _order(lack: Lack) -> str:
    if lack.key:
        return (
            f"{lack.need.object} is there, as the revision before wrote it: without {lack.key}. Helm writes the new "
            "one when the pre-upgrade hooks have ended, and waits for this one to end first."
        )
    return (
        f"{lack.need.object} is not of the revision before. Helm makes it when the pre-upgrade hooks have ended, and "
        "waits for this one to end first."
    )


RULE = Rule("ST208", "pre-upgrade-hook-needs-newly-added-resource", check)
