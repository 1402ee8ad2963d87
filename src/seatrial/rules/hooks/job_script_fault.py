"""The script of a Job fails, or never ends, whatever the cluster does.

## What happens
A Job that waits for something is a few lines of shell, and nobody tests them where the thing is already there.

A counter that is compared before it is set makes `[ $ELAPSED -lt $TIMEOUT ]` an error: the shell prints
`[: -lt: unary operator expected` and takes that for *no*, so that the loop ends before its first turn. What stands
behind it runs, mostly `exit 1`: the Job fails at once, in every sync, and looks as if its time were over. Arithmetic
hides the fault, since `$((ELAPSED + 30))` takes what is not set for 0. Without an `exit 1` it is worse: the Job is
complete and has waited for nothing. With `set -u` the script ends with `ELAPSED: unbound variable`.

A loop that nothing leaves never ends. As a hook it holds up Helm until its timeout, and a sync of Argo CD for ever.

Scripts are read, not run, and only as far as they can be understood: what calls other programs to decide, reads input
or has functions is not judged. That a loop waits for something that does not come is no fault of the script, and told
elsewhere. Other shells than bash put the same into other words.

## Example
```sh
TIMEOUT=3600
while [ $ELAPSED -lt $TIMEOUT ]; do          # ELAPSED is nothing yet
  oc get imagestreamtag app:latest && exit 0
  sleep 30
  ELAPSED=$((ELAPSED + 30))
done
exit 1
```

## Instead
Set counters before the loop (`ELAPSED=0`), and begin scripts with `set -eu`: what is not set is then named. Let
`activeDeadlineSeconds` of the Job be the timeout.

## Fix safety
A Job that was done at once begins to wait: what it waits for should come.
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
        # A Job without end that nobody waits for may be meant to be one.
        if one.course.code is not None or one.owner.ref in rehearsal.steps[one.step].waits_for:
            yield _finding(rehearsal, case, one)


def _finding(rehearsal: Rehearsal, case: Case, one: ScriptFault) -> Finding:
    moment = Moment(rehearsal, case, one.step)
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
            f'Argo CD says: "{says}".' if says else "",
            "What the script looks for may be there and allowed: it does not come to look." if one.course.unset else "",
        ),
        places=[one.owner.place(*one.field)],
        evidence=[one.ran],
        confirm=f"kubectl logs {in_kubectl(one.owner.ref).replace(' ', '/', 1)}",
    )


def _does(one: ScriptFault) -> str:
    variable = one.course.unset
    if not variable:
        return "never ends: nothing leaves the loop that its script runs into"
    if one.course.code:
        return f"fails whatever the cluster does: its script compares ${variable} before anything is put into it"
    return f"waits for nothing: its script compares ${variable} before anything is put into it"


RULE = Rule("ST225", "job-script-fault", check)
