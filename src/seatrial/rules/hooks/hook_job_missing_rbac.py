"""A Job runs a command that its account may not: the API server refuses it, and the Job fails.

## What happens
A hook that runs `kubectl` speaks to the API server as the account of its pod, and may do what roles that are bound to
that account allow. Common faults: the binding names another account; the role lacks a verb (`kubectl wait` needs `list`
and `watch` beside `get`, and says `timed out waiting for the condition` without them; `kubectl apply` needs `get` and
`patch`; `scale` needs `patch` on `deployments/scale`); a Role is bound in one namespace and the command looks into
another; binding and role are plain objects, which do not exist yet when a pre-install hook runs and no longer when a
post-delete hook does.

Helm reports only that the Job failed. The reason is in the log of a pod, and `hook-failed` deletes that. Whoever tries
the command by hand is an administrator, and it works.

Worse than a Job that fails is one that does not. `until kubectl get ...; do sleep 5; done` is refused each time, and
asks again for ever; a sync of Argo CD has no timeout, and waits as long. `kubectl create ... || true`, or a refused
command that is not the last one where `set -e` is missing, ends well: the Job is complete, and nothing was done.

Commands are read, not run: `kubectl` and `oc` on a command line, in `sh -c`, or in a script that is mounted from a
ConfigMap. What another program asks for cannot be seen. What is told is what surely runs and surely ends the container,
keeps it from ending, or was to change something and is hidden. The account `default` may have been given rights by
others, hence *may*; of an account that the release does not bring nothing is told. The same is told of init containers
and of Jobs that are no hooks, in every wave and phase of Argo CD.

## Example
```yaml
kind: RoleBinding
subjects: [{kind: ServiceAccount, name: app}]
---
kind: Job
metadata:
  annotations: {helm.sh/hook: post-install}
spec:
  template:
    spec:
      serviceAccountName: app-hooks                  # another one
      containers:
        - command: [kubectl, wait, --for=condition=Ready, pod, -l, app=app]
```

## Instead
An account, a role and a binding for the hook, as hooks of the same event with a lower weight, and every verb that the
command needs.

## Fix safety
Give no more than the command needs: an account that stays behind keeps its rights.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.blocked import never_run
from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.hooks.refused_commands import Refused, refused_commands
from seatrial.evidence.hooks.script_faults import SPECS
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Pointer, Ref, listed
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.jobs import End, brings_down, end_of, operation_on
from seatrial.phrases.outcome import aftermath, helm_says

FIRST: dict[str, tuple[str, ...]] = {
    "later": ("metadata", "name"),
    "gone": ("metadata", "name"),
    "role": ("rules",),
    "unbound": ("subjects",),
}
"""Where the fault is, in the binding or role that it is about."""
DOES: dict[End, str] = {
    "fails": "fails",
    "goes on": "asks again and again in vain",
    "completes": "completes without having done its work",
}


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for refused in refused_commands(rehearsal, case):
        if refused.owner.ref not in seen:
            seen.add(refused.owner.ref)
            yield _finding(rehearsal, case, refused)


def _finding(rehearsal: Rehearsal, case: Case, refused: Refused) -> Finding:
    moment = Moment(rehearsal, case, refused.step)
    owner, account = refused.owner, refused.account
    hidden = owner.ref.kind in SPECS and end_of(moment, refused.said.object) == "completes"
    return found(
        RULE,
        moment,
        objects=[owner.ref],
        damage="nuisance" if hidden else "failed-deploy",
        message=f"{_who_fails(rehearsal, case, refused)}, since {account} may not {' and '.join(refused.verbs)} "
        f"{refused.resource}",
        details=(
            f'{refused.said.object} prints: "{refused.said.message}"',
            _why(refused),
            *_what_follows(rehearsal, case, refused),
        ),
        places=[*_places(refused)],
        evidence=[refused.said],
        confirm=f"kubectl auth can-i {refused.verbs[-1]} {refused.resource} -n {account.namespace} "
        f"--as=system:serviceaccount:{account.namespace}:{account.name}",
    )


def _who_fails(rehearsal: Rehearsal, case: Case, refused: Refused) -> str:
    moment = Moment(rehearsal, case, refused.step)
    ref = refused.owner.ref
    if ref.kind not in SPECS:
        return f"the pods of {ref} do not start"
    does = DOES[end_of(moment, refused.said.object)]
    return f"{brings_down(moment, refused.owner)} {does}"


def _what_follows(rehearsal: Rehearsal, case: Case, refused: Refused) -> Iterator[str]:
    moment = Moment(rehearsal, case, refused.step)
    ended, operation = (
        rehearsal.steps[refused.step],
        operation_on(moment, refused.owner.ref),
    )
    if operation is not None and operation.phase != "Succeeded":
        yield f'Argo CD says: "{operation.message.rstrip(".")}".'
        yield never_run(operation)
    elif ended.outcome == "failed" and not is_argocd(rehearsal):
        yield helm_says(ended)
        yield aftermath(moment) if ended.action != "uninstall" else ""


def _why(refused: Refused) -> str:
    about, account = refused.about, refused.account
    match refused.cause:
        case "gone":
            return f"{about.ref if about else account} is gone with the release by then."
        case "later":
            assert about is not None
            kind = "a hook" if hooks.is_hook(about.body) else "a plain object"
            return f"{about.ref} is {kind}, and not there when this runs."
        case "role":
            assert about is not None
            return f"{about.ref}, to which it is bound, does not allow it."
        case "unbound":
            instead = f" {about.ref} binds {_bound(about)} instead, which it does not bring." if about else ""
            others = " Others may have given it that right." if account.name == "default" else ""
            return f"No binding of the release is for {account}.{instead}{others}"


def _bound(binding: Resource) -> str:
    return ", ".join(f"ServiceAccount {subject.get('name')}" for subject in listed(binding.body, "subjects"))


def _places(refused: Refused) -> Iterator[Pointer]:
    """What to change first: rules, subjects, or when the one that is missing comes; then who asks."""
    owner, about = refused.owner, refused.about
    path = ("spec",) if owner.ref.kind == "Pod" else ("spec", "template", "spec")
    if about is not None and refused.cause in FIRST:
        yield about.place(*FIRST[refused.cause])
    yield owner.place(*path, "serviceAccountName")


RULE = Rule("ST224", "hook-job-missing-rbac", check)
