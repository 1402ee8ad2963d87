"""A Job runs a command that its ServiceAccount is not allowed to run, and the Job fails.

## What happens
A hook that runs `kubectl` talks to the API server as its pod's ServiceAccount, and may do what the roles bound to that
ServiceAccount allow. Common mistakes:

- The binding names another ServiceAccount.
- The role lacks a verb. `kubectl wait` needs `list` and `watch` besides `get`, and without them fails with
  `timed out waiting for the condition`; `kubectl apply` needs `get` and `patch`; `scale` needs `patch` on
  `deployments/scale`.
- A Role is bound in one namespace, and the command uses another.
- Binding and role are regular resources, which do not exist yet when a pre-install hook runs and no longer exist when a
  post-delete hook runs.

Helm reports only that the Job failed. The reason is in the pod's log, and `hook-failed` deletes the pod. For an
administrator who tries the command by hand it works.

A Job that does not fail is worse:

- `until kubectl get ...; do sleep 5; done` is refused each time and retries forever. An Argo CD sync has no timeout and
  waits just as long.
- `kubectl create ... || true`, or a refused command that is not the last one in a script without `set -e`, succeeds:
  the Job completes, but nothing was done.

Known are `kubectl` and `oc` on a command line, in `sh -c`, or in a script that is mounted from a ConfigMap. Requests of
other programs are not seen. A command is reported if it runs and its refusal ends the container, keeps it from ending,
or hides a change that was not made. A command in a branch that the rehearsal did not take is reported as *may*. The
ServiceAccount `default` may get permissions from elsewhere, so that finding is *may*. ServiceAccounts that are not part
of the release are not checked. Init containers and Jobs that are not hooks are checked too, in every wave and phase of
Argo CD.

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
      serviceAccountName: app-hooks                  # not the one that is bound
      containers:
        - command: [kubectl, wait, --for=condition=Ready, pod, -l, app=app]
```

## Instead
Give the hook its own ServiceAccount, role and binding, as hooks of the same event with a lower weight, and every verb
that the command needs.

## Fix safety
Grant only what the command needs: a ServiceAccount that stays behind keeps its permissions.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.argocd.blocked import never_run
from seatrial.evidence.argocd.syncs import is_argocd
from seatrial.evidence.hooks.refused_commands import RefusedCommand, refused_commands, refused_in_branches
from seatrial.evidence.hooks.script_faults import SPECS
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Pointer, Ref, listed
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.jobs import End, brings_down, end_of, operation_on
from seatrial.phrases.outcome import after_failure, helm_says

FIRST: dict[str, tuple[str, ...]] = {
    "later": ("metadata", "name"),
    "gone": ("metadata", "name"),
    "role": ("rules",),
    "unbound": ("subjects",),
    "elsewhere": ("metadata", "namespace"),
}
"""The field to change in the binding or role."""
DOES: dict[End, str] = {
    "fails": "fails",
    "goes on": "retries forever",
    "completes": "completes without doing its work",
}


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for refused in refused_commands(rehearsal, case):
        if refused.owner.ref not in seen:
            seen.add(refused.owner.ref)
            yield _finding(Moment(rehearsal, case, refused.step), refused)
    for refused in refused_in_branches(rehearsal, case):
        yield _in_branch(Moment(rehearsal, case, refused.step), refused)


def _in_branch(moment: Moment, refused: RefusedCommand) -> Finding:
    owner, account = refused.owner, refused.account
    return found(
        RULE,
        moment,
        objects=[owner.ref],
        damage="failed-deploy",
        certainty="may",
        message=f'{owner.ref} fails if it runs "{refused.command}": it cannot '
        f"{' and '.join(refused.verbs)} {refused.resource.partition('.')[0]}",
        details=(f"It runs as {account}. The rehearsal did not take this branch of the script.", _why(refused)),
        places=[*_places(refused)],
        evidence=[refused.said],
        confirm=_confirm(refused),
    )


def _finding(moment: Moment, refused: RefusedCommand) -> Finding:
    owner, account = refused.owner, refused.account
    hidden = owner.ref.kind in SPECS and end_of(moment, refused.said.object) == "completes"
    return found(
        RULE,
        moment,
        objects=[owner.ref],
        damage="nuisance" if hidden else "failed-deploy",
        message=f"{_who_fails(moment, refused)} cannot {' and '.join(refused.verbs)} {refused.resource}",
        details=(
            f'It runs as {account}. {refused.said.object} prints: "{refused.said.message}"',
            _why(refused),
            *_what_follows(moment, refused),
        ),
        places=[*_places(refused)],
        evidence=[refused.said],
        confirm=_confirm(refused),
    )


def _confirm(refused: RefusedCommand) -> str:
    account = refused.account
    where = f" -n {refused.namespace}" if refused.namespace else " -A"
    plural, _, group = refused.resource.partition(".")
    plural, _, below = plural.partition("/")
    resource = f"{plural}.{group}" if group else plural
    below = f" --subresource={below}" if below else ""
    user = f"--as=system:serviceaccount:{account.namespace}:{account.name}"
    return f"kubectl auth can-i {refused.verbs[-1]} {resource}{below}{where} {user}"


def _who_fails(moment: Moment, refused: RefusedCommand) -> str:
    """The beginning of the headline, up to `cannot`."""
    ref = refused.owner.ref
    if ref.kind not in SPECS:
        return f"the pods of {ref} do not start: they"
    end, stops = end_of(moment, refused.said.object), brings_down(moment, refused.owner)
    return stops if stops != str(ref) and end != "completes" else f"{stops} {DOES[end]}: it"


def _what_follows(moment: Moment, refused: RefusedCommand) -> Iterator[str]:
    result, operation = moment.ended, operation_on(moment, refused.owner.ref)
    if operation is not None and operation.phase != "Succeeded":
        yield f'Argo CD reports: "{operation.message.rstrip(".")}".'
        yield never_run(operation)
    elif result.outcome == "failed" and not is_argocd(moment.rehearsal):
        yield helm_says(result)
        yield after_failure(moment) if result.action != "uninstall" else ""


def _why(refused: RefusedCommand) -> str:
    about, account = refused.about, refused.account
    match refused.cause:
        case "gone":
            return f"{about.ref if about else account} has been deleted with the release by then."
        case "later":
            assert about is not None
            kind = "a hook" if hooks.is_hook(about.body) else "a regular resource"
            return f"{about.ref} is {kind} and does not exist yet when this runs."
        case "role":
            assert about is not None
            return f"{about.ref}, which is bound to it, does not allow that."
        case "elsewhere":
            assert about is not None
            where = f"namespace {refused.namespace}" if refused.namespace else "the whole cluster"
            return f"{about.ref} grants rights in namespace {about.ref.namespace} only, and this needs {where}."
        case "unbound":
            instead = f" {about.ref} names {_bound(about)}, which is not part of the release." if about else ""
            others = " It may have that permission from elsewhere." if account.name == "default" else ""
            return f"No binding of the release names {account}.{instead}{others}"


def _bound(binding: Resource) -> str:
    named = ((s.get("namespace") or binding.ref.namespace, s.get("name")) for s in listed(binding.body, "subjects"))
    return ", ".join(str(Ref("ServiceAccount", str(namespace), str(name))) for namespace, name in named)


def _places(refused: RefusedCommand) -> Iterator[Pointer]:
    """What to change first (rules, subjects, or the missing object), then the pod's ServiceAccount."""
    owner, about = refused.owner, refused.about
    path = ("spec",) if owner.ref.kind == "Pod" else ("spec", "template", "spec")
    if about is not None and refused.cause in FIRST:
        yield about.place(*FIRST[refused.cause])
    yield owner.place(*path, "serviceAccountName")


RULE = Rule("ST224", "hook-job-missing-rbac", check, timeless=True, before=("workload-crash-loops",))
