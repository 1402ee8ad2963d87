"""A step dies after one of its writes, and neither repeating it nor the usual way out works.

## What happens
`seatrial check --interrupted` kills each step after each of its writes, and repeats it. Most writes can be repeated.
The finding names the moments after which that fails or hangs, and what is in the way:

- a hook with `hook-succeeded` as its only delete policy. It is deleted when it has ended, by the process that died. The
  next run creates it again: `jobs.batch "migrate" already exists`. With `before-hook-creation` this cannot happen.
- a `pre-delete` hook that needs objects of the release. The first `helm uninstall` had deleted them when it died.
- a hook that Argo CD deletes at the end of a sync (`HookSucceeded`), before it notes that the hook is done. A
  controller that restarts in between resumes the sync, which fails because the hook is missing. Retries help.
- an object that Pulumi was creating. The cluster has it, and the state of the stack does not: the next `pulumi up`
  creates it again, and fails because it exists. The finding has the command that imports it.

With Helm, the usual way out is that of `interrupted-release-is-locked`. If it does not work, the finding says why, and
which other commands do.

## Example
```yaml
metadata:
  name: migrate
  annotations:
    helm.sh/hook: pre-upgrade
    helm.sh/hook-delete-policy: hook-succeeded   # a Job that is left over blocks every later upgrade
```

## Instead
Make each step repeatable from every moment: `helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded`, delete
hooks with their own ServiceAccount and roles, Pulumi programs that are not cancelled while they create.

## Fix safety
There is no automatic fix. The commands in the finding were rehearsed from the worst moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.finding import Finding
from seatrial.model.interruption import Interrupted, Interruption, InterruptionRule
from seatrial.model.release import Case
from seatrial.phrases.interruptions import happens, interruption_finding, place_in, recovers, reports


def check(found: Sequence[Interrupted], case: Case) -> Iterator[Finding]:
    for one in found:
        yield from _of_step(one, case)


def _of_step(one: Interrupted, case: Case) -> Iterator[Finding]:
    blocked = [moment for moment in one.having("locked") if moment.blocked_by]
    moments = [*one.having("fails", "hangs"), *blocked]
    if not moments:
        return
    worst = min(moments, key=_gravity)
    yield interruption_finding(
        INTERRUPTION,
        one,
        moments,
        case,
        damage="failed-deploy",
        message=f"if {one.act} {happens(one)} at {len(moments)} of {len(one.moments)} moments, it cannot be repeated",
        details=(
            f"Worst moment: {place_in(one, worst)}.",
            reports(worst),
            f'The usual way out ends with: "{" ".join(worst.blocked_by.split())}"' if worst.blocked_by else "",
            recovers(worst.way_out),
        ),
        objects=sorted({moment.object for moment in moments}),
    )


def _gravity(moment: Interruption) -> tuple[bool, bool, int]:
    return bool(moment.way_out), moment.aftermath != "hangs", moment.write


INTERRUPTION = InterruptionRule("ST952", "interrupted-step-cannot-be-repeated", check)
