"""A pre-delete hook needs an object of the release that does not exist, so the release cannot be uninstalled.

## What happens
A pre-delete hook runs while the release still exists, so it may use the release's ServiceAccount or Secrets, if those
were created. After an install that failed early (for example in a pre-install hook) they never were, and the user runs
`helm uninstall`. The API server rejects the hook's pod, Helm waits until `--timeout` and gives up, and the release
keeps the status `uninstalling`. Retrying fails the same way.

This is reported if the install fails in a rehearsal, not if it merely could fail.

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
      serviceAccountName: app      # a regular resource, created after the pre-install hooks
```

## Instead
Give the hook what it needs as pre-delete hooks of a lower weight, under their own names. Use only the release's
namespace.

`helm uninstall --no-hooks` removes a release that is stuck.

## Fix safety
Only the uninstall creates pre-delete hooks. Installed objects do not change.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import absent, ends_sentence, hook_lacks

IN_RELEASE = ("regular", "later", "never")
"""Why the hook does not find an object that is part of the release."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        if lack.event == "pre-delete" and lack.why in IN_RELEASE:
            yield _finding(Moment(rehearsal, case, lack.step), lack)


def _finding(moment: Moment, lack: Lack) -> Finding:
    details = (
        _why_missing(moment, lack),
        ends_sentence(moment, lack),
        f"Nothing was deleted, and the release keeps the status uninstalling. helm uninstall {moment.ended.release} "
        "--no-hooks removes it.",
    )
    return hook_lacks(RULE, moment, lack, absent(moment, lack), details)


def _why_missing(moment: Moment, lack: Lack) -> str:
    """The earlier step that failed before it created a regular resource."""
    earlier = reversed(moment.rehearsal.steps[: lack.step])
    before = next((result for result in earlier if result.release and result.action != "uninstall"), None)
    if lack.why != "regular" or before is None or before.outcome == "ok":
        return ""
    return f"The {before.action} failed before it created it: {before.error.strip()}"


RULE = Rule("ST220", "pre-delete-hook-needs-release-resource", check)
