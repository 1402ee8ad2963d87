"""A pre-delete hook needs an object of the release that does not exist, so the release cannot be uninstalled.

## What happens
A pre-delete hook runs while the release still exists, so it may use the release's ServiceAccount or Secrets, if those
were created. After an install that failed early (for example in a pre-install hook) they never were, and the user runs
`helm uninstall`. The API server rejects the hook's pod, Helm waits until `--timeout` and gives up, and the release
keeps the status `uninstalling`. Retrying fails the same way.

This is reported if the install fails in a rehearsal, not if it merely could fail. If the trial goes on with an upgrade
that creates the objects, it is still reported for the release as the failed install leaves it.

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

from msgspec.structs import replace

from seatrial.evidence.hooks.runs import Lack, lacks
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.records import last_record
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import absent, ends_sentence, hook_lacks, how

PRE_DELETE = "pre-delete"
STARTS = ("admit", "schedule", "start")
"""Stages of needs without which a pod of the hook does not start."""
IN_RELEASE = ("regular", "later", "never")
"""Why the hook does not find an object that is part of the release."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    reported: set[Ref] = set()
    for lack in lacks(rehearsal, case):
        if lack.event == PRE_DELETE and lack.why in IN_RELEASE:
            reported.add(lack.hook.ref)
            yield _finding(Moment(rehearsal, case, lack.step), lack)
    for moment in moments(rehearsal, case):
        for hook, need, brought in _left_without(moment) if _is_left_failed(moment) else ():
            if hook.ref not in reported:
                reported.add(hook.ref)
                yield _after_failed_install(moment, hook, need, brought)


def _is_left_failed(moment: Moment) -> bool:
    """Whether a failed install leaves a release that only an uninstall or an upgrade ends."""
    ended = moment.ended
    if moment.engine.name != "helm" or ended.action != "install" or ended.outcome == "ok":
        return False
    return last_record(moment.rehearsal, ended.release, ended.namespace, before_step=moment.index + 1) is not None


def _left_without(moment: Moment) -> Iterator[tuple[Resource, Need, Resource]]:
    """The pre-delete hooks that cannot start, each with a regular resource that the step did not create."""
    regular = {r.ref: r for r in (moment.release.resources if moment.release else ()) if not hooks.is_hook(r.body)}
    for hook in moment.release.resources if moment.release else ():
        for need in needs_of(hook) if PRE_DELETE in hooks.events_of(hook.body) else ():
            certain = need.stage in STARTS and not (need.optional or need.guess)
            if certain and need.object in regular and moment.live(need.object) is None:
                yield hook, need, regular[need.object]


def _after_failed_install(moment: Moment, hook: Resource, need: Need, brought: Resource) -> Finding:
    name = moment.ended.release
    finding = found(
        RULE,
        moment,
        objects=[hook.ref, need.object],
        damage="failed-deploy",
        message=f"helm uninstall after this failed install hangs: hook {hook.ref} {how(need)} {need.object}",
        details=(
            f"The install failed before it created {need.object}. Helm has recorded the release, so the way back is "
            "helm uninstall, which runs the hook first. Helm waits for it until its --timeout.",
            f"Nothing is deleted then, and the release keeps the status uninstalling. helm uninstall {name} --no-hooks "
            "removes it.",
        ),
        places=[hook.place(*need.field), brought.place("metadata", "name")],
        confirm=f"helm uninstall {name} -n {moment.ended.namespace}  # after the failed install",
    )
    return replace(finding, action="uninstall")


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
