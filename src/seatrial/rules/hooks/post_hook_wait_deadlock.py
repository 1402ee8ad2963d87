"""Pods need what a post-install hook does, and Helm waits for the pods before it runs the hook.

## What happens
With `--wait` Helm waits for the workloads between the main phase and the post-install (post-upgrade) hooks. What a pod
needs to start or to be ready - a Secret that such a hook brings, a migration that it runs - can then never come. Helm
waits until `--timeout`; the hook is not even created, which is why nobody suspects it.

Without `--wait` the same chart installs: the pods stay unready for a while, the hook runs, they recover. Pipelines
(`--wait`, `--atomic`, `--rollback-on-failure`), Flux and Terraform wait by default: a HelmRelease waits unless it says
`install.disableWait: true` (or `upgrade.disableWait: true`).

That a pod crashes until a migration has run cannot be seen from manifests. What is told without doubt is what a pod
names and only a post hook brings. What *may* be is an init container that waits for the hook's Job by its name.

## Example
```yaml
apiVersion: v1
kind: Secret
metadata:
  name: app-cert              # mounted by the Deployment of the same chart
  annotations:
    helm.sh/hook: post-install
```

## Instead
Make it a plain object. For a migration: a plain Job with a name of its own for each revision, and init containers that
wait for it; or a pre-upgrade hook where the database is outside the release. A volume that may come later can be
`optional: true`.

## Fix safety
A hook that becomes plain is a hook-to-release flip where the release is installed already.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import failed_act, failed_release
from seatrial.evidence.hooks.runs import act_at, acts_of, done_by_helm
from seatrial.evidence.hooks.waiters import awaited_jobs
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.model.trial import waits
from seatrial.phrases.hooks import ends, how, said_of, says, waited_in_vain
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import aftermath


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    for moment in moments(rehearsal, case):
        release = moment.release
        if release is None:
            continue
        for workload in (resource for resource in release.resources if _waits(moment.ended, resource.ref)):
            if workload.ref in moment.ended.waits_for:
                yield from _of_needs(moment, release, workload)
            elif not hooks.is_hook(workload.body):
                yield from _of_init_containers(moment, release, workload)


def _waits(ended: StepResult, ref: Ref) -> bool:
    """Whether an object is waited for: Helm says so by a flag, and Flux for each HelmRelease."""
    return waits(ended.flags) or any(one.waits and one.acts and ref in one.objects for one in ended.reconciled)


def _of_needs(moment: Moment, release: Release, workload: Resource) -> Iterator[Finding]:
    """What a workload that is waited for names, and only a post hook brings."""
    ended = moment.ended
    for need in needs_of(workload):
        brought = release.find(need.object) if need.object in ended.lacking and not need.optional else None
        event = _post_event(brought.body, acts_of(moment)) if brought else ""
        if brought is not None and event:
            yield _deadlock(moment, workload, need, brought, event)


def _post_event(body: Body, acts: tuple[str, ...]) -> str:
    """The post event at which an act runs a hook; empty where it also runs it before, or not at all."""
    events = hooks.events_of(body)
    for before, *after in (hooks.EVENTS_OF.get(act, ("",)) for act in acts):
        if before not in events and (event := next((event for event in after if event in events), "")):
            return event
    return ""


def _deadlock(moment: Moment, workload: Resource, need: Need, brought: Resource, event: str) -> Finding:
    ref, said = need.object, said_of(moment, need.object)
    fluxs = failed_release(moment.ended, workload.ref)
    return found(
        RULE,
        moment,
        objects=[workload.ref, ref],
        damage="failed-deploy",
        message=f"{ends(moment, workload.ref)}: {workload.ref} {how(need)} {ref}, a {event} hook that Helm "
        f"runs only after {workload.ref.name} is ready",
        details=(
            f"{'Unless it is told not to, Flux' if fluxs else 'With --wait Helm'} waits for all workloads between the "
            f"main phase and the {event} hooks: each of the two waits for the other.",
            says(moment, ref),
            waited_in_vain(workload, moment.ended),
            aftermath(moment, workload.ref),
            f"With {failed_act(fluxs)}.disableWait: true it goes through: the pods stay unready until the {event} hook "
            "has run."
            if fluxs
            else f"Without --wait it installs: the pods stay unready until the {event} hook has run. Flux, Terraform "
            "and --atomic wait.",
        ),
        places=[brought.place("metadata", "annotations", hooks.HOOK), workload.place(*need.field)],
        evidence=filter(None, [said]),
        confirm=f"kubectl get {in_kubectl(ref)}  # while Helm waits: it does not exist",
    )


def _of_init_containers(moment: Moment, release: Release, workload: Resource) -> Iterator[Finding]:
    """An init container that waits for a Job which only a post hook brings."""
    spec = dig(workload.body, "spec", "template", "spec")
    made = any(e.effect in ("created", "changed") for e in done_by_helm(moment, workload.ref))
    for name, at in awaited_jobs(spec, workload.ref.namespace) if isinstance(spec, dict) and made else ():
        job = release.find(Ref("Job", workload.ref.namespace, name, "batch"))
        event = _post_event(job.body, acts_of(moment)) if job else ""
        if job is not None and event:
            waits = "Flux waits in vain" if moment.ended.reconciled else f"helm {act_at(event)} --wait hangs"
            without = "With disableWait: true" if moment.ended.reconciled else "Without --wait"
            yield found(
                RULE,
                moment,
                objects=[workload.ref, job.ref],
                damage="failed-deploy",
                certainty="may",
                message=f"{waits} if an init container of {workload.ref} waits for {job.ref}, a {event} hook that "
                "Helm runs only after the pods are ready",
                details=(
                    "The init container names that Job. Whether it waits for it is up to its program, which is not "
                    "run here.",
                    f"{without} it installs, the pods being unready until the Job has run.",
                ),
                places=[job.place("metadata", "annotations", hooks.HOOK), workload.place(*at)],
                confirm=f"kubectl get {in_kubectl(job.ref)}  # while Helm waits: it does not exist",
            )


RULE = Rule("ST219", "post-hook-wait-deadlock", check)
