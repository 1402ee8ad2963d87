"""A hook object of an earlier run still exists, and its delete policy does not delete it before the next run.

## What happens
If `helm.sh/hook-delete-policy` is absent, the policy is `before-hook-creation`. Any other value replaces it: with only
`hook-succeeded` or `hook-failed`, an object that the last run left behind stays.

Helm 3 creates hooks and fails: `jobs.batch "x" already exists`. Helm 4 uses server-side apply, which is worse for Jobs:

- The Job is unchanged: the finished Job of the last run counts as the hook's result. If it succeeded, the hook does not
  run and the upgrade succeeds. If it failed, the upgrade fails at once.
- The pod template has changed: the API server refuses the update, `field is immutable`.

Helm 4 updates objects of other kinds in place. For releases that Helm 3 installed, Helm 4 does what Helm 3 does.

With only `hook-succeeded` everything works until a run fails or is aborted. Then only `kubectl delete` helps. If the
Job succeeds in the rehearsal, that is a `may`. Helm never deletes a CustomResourceDefinition for a hook policy; on Helm
3, a CRD that is a hook fails on its second run.

## Example
```yaml
metadata:
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: hook-succeeded
```

## Instead
Use `helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded` on every object that belongs to the hook. To keep
a Job for its logs, use `before-hook-creation` alone.

## Fix safety
Before each run Helm deletes the object with the hook's kind and name. That is right for Jobs and for objects that only
the Jobs use. An object that the app uses must not be a hook.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import GOING
from seatrial.evidence.hooks.runs import acted_on, done_by_helm, event_of, helm_act, left_over
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.helm.hooks import ERROR_PREFIX
from seatrial.model.finding import Certainty, Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Body, Ref, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.immutable import without_values
from seatrial.phrases.objects import in_api, in_kubectl
from seatrial.phrases.outcome import after_failure, helm_says

RUN = ("Job", "Pod")
POLICIES = (hooks.BEFORE_CREATION, hooks.SUCCEEDED, hooks.FAILED)
DELETES = ("pre-delete", "post-delete")
"""Reported by pre-delete-hook-blocks-uninstall."""
RUN_AGAIN = ("pre-install", "post-install", "pre-upgrade", "post-upgrade")


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for hook in release.resources if release else ():
            collision = left_over(moment, hook)
            is_new = hook.ref not in seen or moment.ended.outcome != "ok"
            if collision is not None and is_new and event_of(moment, hook) not in DELETES:
                seen.add(hook.ref)
                yield _finding(moment, hook, collision)
    for moment in moments(rehearsal, case):
        release = acted_on(case, moment.index)
        for hook in release.resources if release else ():
            deletion = _deleted_after_success(moment, hook) if hook.ref not in seen else None
            if deletion is not None:
                seen.add(hook.ref)
                yield _after_a_failure(moment, hook, deletion)


def _deleted_after_success(moment: Moment, hook: Resource) -> Event | None:
    """The deletion of a Job or Pod that only success deletes, by the policy of its hook."""
    policies = hooks.delete_policies(hook.body)
    stays = hooks.SUCCEEDED in policies and hooks.BEFORE_CREATION not in policies and hooks.FAILED not in policies
    if not stays or hook.ref.kind not in RUN or event_of(moment, hook) not in RUN_AGAIN:
        return None
    return next((event for event in done_by_helm(moment, hook.ref) if event.effect in GOING), None)


def _after_a_failure(moment: Moment, hook: Resource, deletion: Event) -> Finding:
    ref = hook.ref
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        certainty="may",
        message=f"if {ref} fails once, every later {moment.ended.action} fails: the {ref.kind} stays",
        details=(
            _policy(hook),
            "It succeeds here and is deleted. After a failure or an abort it stays: Helm 4 then applies it, and treats "
            "the old failure as the result, or the API server refuses the change.",
            f'Helm 3 creates hooks instead, and fails: "{_helm_3(moment, hook)}"',
            f"After kubectl delete {in_kubectl(ref)} the next {moment.ended.action} runs it.",
        ),
        places=[hook.place("metadata", "annotations", hooks.DELETE_POLICY)],
        evidence=[deletion],
        confirm=f"kubectl get {in_kubectl(ref)}  # after a failed {moment.ended.action}",
    )


def _finding(moment: Moment, hook: Resource, write: Event) -> Finding:
    ref, action = hook.ref, moment.ended.action
    sure: Certainty = "will" if ref.kind in RUN or write.effect == "refused" else "may"
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        certainty=sure,
        message=_outcome(moment, hook, write),
        details=(
            _policy(hook),
            _what_helm_4_does(moment, hook, write),
            f'Helm 3 creates hooks instead, and fails: "{_helm_3(moment, hook)}"',
            after_failure(moment) if sure == "will" and moment.ended.outcome != "ok" else "",
            "" if ref.kind not in RUN else f"After kubectl delete {in_kubectl(ref)} the next {action} runs it.",
        ),
        places=[hook.place("metadata", "annotations", hooks.DELETE_POLICY)],
        evidence=[write],
        confirm=f"kubectl get {in_kubectl(ref)} -o jsonpath='{{.metadata.creationTimestamp}}'  # before the {action}",
    )


def _outcome(moment: Moment, hook: Resource, write: Event) -> str:
    act = helm_act(moment, hook.ref)
    if write.effect == "refused" or _ended(moment.was(hook.ref)) == "Failed":
        return f"{act} fails: {hook.ref} of an earlier run still exists"
    if hook.ref.kind in RUN:
        return f"{act} succeeds without running {hook.ref}: the {hook.ref.kind} of an earlier run still exists"
    return f"{act} fails with Helm 3: {hook.ref} of an earlier run still exists"


def _policy(hook: Resource) -> str:
    if hook.ref.kind == "CustomResourceDefinition":
        return "Helm never deletes a CustomResourceDefinition for a hook, regardless of its delete policy."
    policies = hooks.delete_policies(hook.body)
    known = "" if set(policies) & set(POLICIES) else " (unknown to Helm)"
    named = ", ".join(policies) or "empty"
    return (
        f"Its delete policy is {named}{known}, which replaces the default, before-hook-creation: nothing deletes the "
        "object before the next run."
    )


def _what_helm_4_does(moment: Moment, hook: Resource, write: Event) -> str:
    result = moment.ended
    if hook.ref.kind not in RUN:
        return "Helm 4 applies the object and updates it in place."
    if write.effect == "refused":
        error = without_values(helm_says(result), write.refusal)
        return f"Helm 4 applies the object, but an existing {hook.ref.kind} cannot be changed. {error}"
    if _ended(write.before or write.after) == "Failed":
        return (
            "Helm 4 applies the object unchanged and treats the failure of the earlier run as the result. "
            f"{helm_says(result)}"
        )
    return "Helm 4 applies the object, nothing changes, and the earlier run counts as success: nothing runs."


def _ended(job: Body | None) -> str:
    """`Complete` or `Failed`; empty while the Job runs."""
    types = [c.get("type") for c in listed(job, "status", "conditions") if c.get("status") == "True"]
    return next((str(word) for word in types if word in ("Complete", "Failed")), "")


def _helm_3(moment: Moment, hook: Resource) -> str:
    event, ref = event_of(moment, hook), hook.ref
    return f'{ERROR_PREFIX.get(event, "")}warning: Hook {event} ... failed: {in_api(ref)} "{ref.name}" already exists'


RULE = Rule("ST211", "hook-resource-already-exists", check)
