"""A post-delete hook needs an object of the release, which is gone by the time it runs.

## What happens
Post-delete hooks run when every plain object of the release has been deleted: the account, its roles, the Secrets, the
Service of the database. A hook's pod that names one of them is refused or does not start. Helm waits until `--timeout`,
then says `uninstallation completed with 1 error(s)`, and the release is gone. What the hook was to clean up stays, and
so does its Job.

The install and all upgrades are fine: nobody meets this before the last day. `helm uninstall` once more does not help,
as there is no release any more.

## Example
```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: app-cleanup
  annotations: {helm.sh/hook: post-delete}
spec:
  template:
    spec:
      serviceAccountName: app      # deleted with the release
```

## Instead
Run it as `pre-delete`, while everything is there; or give it an account, roles and Secrets of its own as post-delete
hooks of a lower weight, with `before-hook-creation,hook-succeeded,hook-failed`.

## Fix safety
A pre-delete hook that fails keeps the release from being uninstalled; a post-delete hook does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial import hooks
from seatrial.case import Case
from seatrial.findings import Finding, Rule, found
from seatrial.rules.hookruns import Lack, lacks
from seatrial.rules.hookwords import absent, ends, ends_sentence, evidence_of, hook_needs, look_at
from seatrial.timeline import Event, Rehearsal

NOT_BROUGHT = ("plain", "later", "never")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for lack in lacks(rehearsal, case):
        if lack.event == "post-delete" and lack.why in NOT_BROUGHT:
            yield _finding(rehearsal, lack)


def _finding(rehearsal: Rehearsal, lack: Lack) -> Finding:
    assert lack.brought is not None
    gone = _deletion(rehearsal, lack)
    return found(
        RULE,
        rehearsal,
        lack.step,
        objects=[lack.hook.ref, lack.need.object],
        damage="failed-deploy",
        message=f"{ends(rehearsal, lack.step)}: {hook_needs(lack)}, {absent(lack)}",
        details=(
            "Post-delete hooks run when Helm has deleted every plain object of the release." if gone else "",
            ends_sentence(rehearsal, lack),
            f"The release is gone then{_stays(lack)}: uninstalling once more does not run it.",
        ),
        places=[lack.hook.place(*lack.need.field), lack.brought.place("metadata", "name")],
        evidence=[*([gone] if gone else []), *evidence_of(rehearsal, lack)],
        confirm=look_at(lack),
    )


def _deletion(rehearsal: Rehearsal, lack: Lack) -> Event | None:
    gone = (e for e in rehearsal.of_step(lack.step) if e.object == lack.need.object and e.effect == "deleted")
    return next(gone, None)


def _stays(lack: Lack) -> str:
    return "" if hooks.FAILED in hooks.delete_policies(lack.hook.body) else f", and {lack.hook.ref} stays"


RULE = Rule("ST222", "post-delete-hook-cannot-run", check)
