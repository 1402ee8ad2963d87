"""A Job's script fails or never ends, regardless of the state of the cluster.

## What happens
A Job that waits for something is a few lines of shell, and they are rarely tested while the thing is still missing.

A counter that is compared before it is set makes `[ $ELAPSED -lt $TIMEOUT ]` an error: the shell prints
`[: -lt: unary operator expected` and treats that as *false*, so the loop ends before its first iteration. The next
command runs, usually `exit 1`: the Job fails at once, in every sync, and looks as if it had timed out. Arithmetic hides
the mistake, because `$((ELAPSED + 30))` treats an unset variable as 0. Without `exit 1` it is worse: the Job completes
without having waited. With `set -u` the script fails with `ELAPSED: unbound variable`.

A loop without an exit never ends. As a hook it blocks Helm until `--timeout`, and an Argo CD sync forever.

Scripts that call unknown programs to decide, or read input, are not checked. A loop that waits for something that never
comes is not a fault of the script; other rules report it. Shells other than bash word the error differently.

## Example
```sh
TIMEOUT=3600
while [ $ELAPSED -lt $TIMEOUT ]; do          # ELAPSED is not set yet
  oc get imagestreamtag app:latest && exit 0
  sleep 30
  ELAPSED=$((ELAPSED + 30))
done
exit 1
```

## Instead
Set counters before the loop (`ELAPSED=0`), and begin scripts with `set -eu`, which reports unset variables. Use the
Job's `activeDeadlineSeconds` as the timeout.

## Fix safety
A Job that ended at once now waits: make sure that what it waits for does come.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.script_faults import ScriptFault, script_faults
from seatrial.evidence.moment import Moment, found
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.jobs import brings_down, operation_on
from seatrial.phrases.objects import in_kubectl


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for one in script_faults(rehearsal, case):
        # An endless Job that the engine does not wait for may be intended.
        if one.course.code is not None or one.owner.ref in rehearsal.steps[one.step].waits_for:
            yield _finding(Moment(rehearsal, case, one.step), one)


def _finding(moment: Moment, one: ScriptFault) -> Finding:
    operation = operation_on(moment, one.owner.ref)
    says = operation.message.rstrip(".") if operation is not None and operation.phase != "Succeeded" else ""
    return found(
        RULE,
        moment,
        objects=[one.owner.ref],
        damage="failed-deploy",
        message=f"{brings_down(moment, one.owner)} {_does(one)}",
        details=(
            f'{one.ran.object} prints: "{one.course.says}"' if one.course.says else "",
            f'Argo CD reports: "{says}".' if says else "",
            "The script ends before it checks what it waits for." if one.course.unset else "",
        ),
        places=[one.owner.place(*one.field)],
        evidence=[one.ran],
        confirm=f"kubectl logs {in_kubectl(one.owner.ref).replace(' ', '/', 1)}",
    )


def _does(one: ScriptFault) -> str:
    variable = one.course.unset
    if not variable:
        return "never ends: its script runs into a loop without an exit"
    if one.course.code:
        return f"always fails: it compares ${variable} before it is set"
    return f"does not wait: it compares ${variable} before it is set"


RULE = Rule("ST225", "job-script-fault", check, timeless=True)
