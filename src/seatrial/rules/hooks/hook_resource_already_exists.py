"""A hook of an earlier run is still there, and its delete policy does not take it away before the next run.

## What happens
`before-hook-creation` is what Helm does when `helm.sh/hook-delete-policy` is absent. Any value that is given replaces
it: with `hook-succeeded` or `hook-failed` alone, an object that the last run left behind stays.

Helm 3 creates hooks, and fails: `jobs.batch "x" already exists`. Helm 4 applies them on the server, which looks better
and is worse for Jobs. If nothing has changed, the finished Job of the last run counts as the hook's result: one that
succeeded is taken for a run that never was, one that failed fails the upgrade at once. If its template has changed, the
API server refuses: `field is immutable`. Helm 4 updates objects of other kinds in place. Releases that Helm 3 has made
are still written the old way by Helm 4.

With `hook-succeeded` alone all goes well until a run fails or is aborted: then nothing but `kubectl delete` helps.
CustomResourceDefinitions are never deleted by a hook policy; on Helm 3 one that is a hook fails on its second run.

## Example
```yaml
metadata:
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: hook-succeeded
```

## Instead
`helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded` on every object that belongs to the hook. To keep a
Job for its logs, `before-hook-creation` alone.

## Fix safety
Before each run Helm deletes what has the hook's kind and name: right for Jobs and what only they use. An object that
the app uses must not be a hook at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.evidence.hooks.runs import acted_on, event_of, helm_act, left_over
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.helm.hooks import ERROR_PREFIX
from seatrial.model.finding import Certainty, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_api, in_kubectl
from seatrial.phrases.outcome import aftermath, helm_says

RUN = ("Job", "Pod")
POLICIES = (hooks.BEFORE_CREATION, hooks.SUCCEEDED, hooks.FAILED)
IMMUTABLE = re.compile(r"Invalid value: \{.*\}: field is immutable", re.DOTALL)
DELETES = ("pre-delete", "post-delete")
"""Told by pre-delete-hook-blocks-uninstall."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for hook in release.resources if release else ():
            collision = left_over(moment, hook)
            if collision is not None and hook.ref not in seen and event_of(moment, hook) not in DELETES:
                seen.add(hook.ref)
                yield _finding(moment, hook, collision)


def _finding(moment: Moment, hook: Resource, met: Event) -> Finding:
    ref, action = hook.ref, moment.ended.action
    sure: Certainty = "will" if ref.kind in RUN or met.effect == "refused" else "may"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        certainty=sure,
        message=_outcome(moment, hook, met),
        details=(
            _policy(hook),
            _what_helm_made_of_it(moment, hook, met),
            f'Helm 3 creates hooks and fails: "{_helm_3(moment, hook)}"',
            aftermath(moment) if sure == "will" and moment.ended.outcome != "ok" else "",
            "" if ref.kind not in RUN else f"kubectl delete {in_kubectl(ref)} lets the next {action} run it.",
        ),
        places=[hook.place("metadata", "annotations", hooks.DELETE_POLICY)],
        evidence=[met],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.creationTimestamp}}'  # before the {action}",
    )


def _outcome(moment: Moment, hook: Resource, met: Event) -> str:
    act = helm_act(moment, hook.ref)
    if met.effect == "refused" or _ended(moment.was(hook.ref)) == "Failed":
        return f"{act} fails, since {hook.ref} of an earlier run is still there"
    if hook.ref.kind in RUN:
        return f"{act} succeeds and does not run {hook.ref}, since that of an earlier run is still there"
    return f"{act} fails with Helm 3, since {hook.ref} of an earlier run is still there"


def _policy(hook: Resource) -> str:
    if hook.ref.kind == "CustomResourceDefinition":
        return "Helm never deletes a CustomResourceDefinition for a hook, whatever its policy."
    policies = hooks.delete_policies(hook.body)
    known = "" if set(policies) & set(POLICIES) else ", none that Helm knows"
    named = ", ".join(policies) or "empty"
    return f"Its delete policy is {named}{known}, which replaces before-hook-creation: nothing deletes it first."


def _what_helm_made_of_it(moment: Moment, hook: Resource, met: Event) -> str:
    ended = moment.ended
    if hook.ref.kind not in RUN:
        return "Helm 4 applies it, and the object is updated in place."
    if met.effect == "refused":
        words = IMMUTABLE.sub("Invalid value: {...}: field is immutable", helm_says(ended))
        return f"Helm 4 applies it, and a {hook.ref.kind} that exists cannot be changed. {words}"
    if _ended(met.before or met.after) == "Failed":
        return f"Helm 4 applies it unchanged, and takes the failure of the earlier run for its own. {helm_says(ended)}"
    return "Helm 4 applies it, nothing changes, and that it had ended well before counts as success: nothing was run."


def _ended(job: Body | None) -> str:
    """`Complete` or `Failed`, where a Job has ended."""
    said = [c.get("type") for c in listed(job, "status", "conditions") if c.get("status") == "True"]
    return next((str(word) for word in said if word in ("Complete", "Failed")), "")


def _helm_3(moment: Moment, hook: Resource) -> str:
    event, ref = event_of(moment, hook), hook.ref
    return f'{ERROR_PREFIX.get(event, "")}warning: Hook {event} ... failed: {in_api(ref)} "{ref.name}" already exists'


RULE = Rule("ST211", "hook-resource-already-exists", check)
