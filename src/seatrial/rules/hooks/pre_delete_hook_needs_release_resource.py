"""A pre-delete hook needs an object of the release that is not there, so the release cannot be uninstalled.

## What happens
A pre-delete hook runs while the release is still in place, so it may use the release's account or Secrets - as long as
those were made. After an install that failed early (in a pre-install hook, say) they never were, and the user does what
one does: `helm uninstall`. The hook's pod is refused, Helm waits until `--timeout`, gives up, and the release stays in
the state `uninstalling`. Every further try ends alike.

A rehearsal shows this where the install fails. That it would, if it failed, is not told.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-leave
  annotations: {helm.sh/hook: pre-delete}
spec:
  template:
    spec:
      serviceAccountName: app      # a plain object: made after the pre-install hooks
```

## Instead
Give the hook what it needs as pre-delete hooks of a lower weight, under names of their own. Use no namespace but that
of the release.

`helm uninstall --no-hooks` takes away a release that is stuck.

## Fix safety
Hooks of pre-delete are made by the uninstall only; nothing that is installed changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import absent, ends, ends_sentence, evidence_of, hook_needs, look_at

NOT_BROUGHT = ("plain", "later", "never")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        if lack.event == "pre-delete" and lack.why in NOT_BROUGHT:
            yield _finding(rehearsal, case, lack)


def _finding(rehearsal: Rehearsal, case: Case, lack: Lack) -> Finding:
    moment = Moment(rehearsal, case, lack.step)
    assert lack.brought is not None
    ended = rehearsal.steps[lack.step]
    return found(
        RULE,
        moment,
        objects=[lack.hook.ref, lack.need.object],
        damage="failed-deploy",
        message=f"{ends(moment, lack.hook.ref)}: {hook_needs(lack)}, {absent(rehearsal, lack)}",
        details=(
            _earlier(rehearsal, lack),
            ends_sentence(rehearsal, case, lack),
            f"Nothing was deleted, and the release is left uninstalling. helm uninstall {ended.release} --no-hooks "
            "takes it away.",
        ),
        places=[lack.hook.place(*lack.need.field), lack.brought.place("metadata", "name")],
        evidence=evidence_of(rehearsal, case, lack),
        confirm=look_at(lack),
    )


def _earlier(rehearsal: Rehearsal, lack: Lack) -> str:
    """Why a plain object is not there."""
    before = next((s for s in reversed(rehearsal.steps[: lack.step]) if s.release and s.action != "uninstall"), None)
    if lack.why != "plain" or before is None or before.outcome == "ok":
        return ""
    return f"The {before.action} before did not get so far: {before.error.strip()}"


RULE = Rule("ST220", "pre-delete-hook-needs-release-resource", check)
