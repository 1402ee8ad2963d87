"""A Helm command that is killed leaves the release locked: every later install or upgrade refuses to start.

## What happens
Helm writes a record before it touches the first object (`pending-install`, `pending-upgrade`, `pending-rollback`), and
updates it when it is done. If the process dies in between, nothing ends that state: a cancelled CI job, a lost
connection, a closed laptop, an evicted runner. The next command takes the dead process for a running one. An upgrade
says `another operation (install/upgrade/rollback) is in progress`, an install `cannot reuse a name that is still in
use`. Waiting does not help.

`seatrial check --interrupted` kills each step after each of its writes, runs the same command again, and then the way
out. The finding says at how many moments the release is locked, and which commands lead to the same objects as if
nothing had died. Flux unlocks a pending release by itself, and Argo CD resumes its sync.

## Example
```sh
timeout -s KILL 20 helm upgrade shop ./shop    # the CI job is cancelled
helm upgrade shop ./shop                       # another operation (install/upgrade/rollback) is in progress
```

## Instead
Let the pipeline stop Helm with SIGTERM, and give it time: Helm then marks the release as failed, and the next upgrade
goes on. Run deployments of one release one after another, and do not cancel them (`concurrency` with
`cancel-in-progress: false` in GitHub Actions, `resource_group` in GitLab). Put the way out of the finding into the
runbook.

## Fix safety
`helm rollback` applies the last good revision and does not look at the lock. `helm uninstall` after a first install
deletes what it had created. If you delete the Secret of the pending revision, Helm forgets what only that revision
lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.finding import Finding
from seatrial.model.interruption import Interrupted, Interruption, InterruptionRule
from seatrial.model.release import Case
from seatrial.phrases.interruptions import happens, interruption_finding, place_in, recovers, reports


def check(found: Sequence[Interrupted], case: Case) -> Iterator[Finding]:
    locked = [(one, moments) for one in found if (moments := _locked(one))]
    if not locked:
        return
    one, moments = max(locked, key=lambda of: (of[0].role == "replace", len(of[1])))
    everywhere = [moment for _, some in locked for moment in some]
    tried = sum(len(of.moments) for of, _ in locked)
    acts = " or ".join(dict.fromkeys(of.act for of, _ in locked))
    yield interruption_finding(
        INTERRUPTION,
        one,
        everywhere,
        case,
        damage="failed-deploy",
        message=f"if {acts} {happens(one)}, release {one.release} is locked at {len(everywhere)} of {tried} moments",
        details=(
            f"For example {place_in(one, moments[-1])}.",
            reports(moments[-1]),
            "No operation is in progress, and waiting does not help.",
            *(recovers(some[-1].way_out) for _, some in locked),
        ),
        objects=[],
    )


def _locked(one: Interrupted) -> list[Interruption]:
    return [moment for moment in one.having("locked") if not moment.blocked_by]


INTERRUPTION = InterruptionRule("ST951", "interrupted-release-is-locked", check)
