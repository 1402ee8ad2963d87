"""Pods need what a post-install hook provides, but Helm waits for the pods before it runs the hook.

## What happens
With `--wait`, Helm waits for the workloads after it has created them and before it runs the post-install (post-upgrade)
hooks. What a pod needs to start or to become ready, such as a Secret that the hook creates or a migration that it runs,
can then never happen. Helm waits until `--timeout`. The hook is not even created, so it is easy to overlook.

Without `--wait` the same chart installs: the pods are unready for a while, the hook runs, and they recover. Pipelines
(`--wait`, `--atomic`, `--rollback-on-failure`), Flux and Terraform wait by default. A HelmRelease waits unless it sets
`install.disableWait: true` (or `upgrade.disableWait: true`).

A pod that crashes until a migration has run cannot be seen in manifests. The finding is certain (*will*) if a pod uses
an object that only a post hook creates. It is *may* if an init container waits for the hook's Job by name.

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
Make it a regular resource. For a migration: use a regular Job with a different name for each revision, and init
containers that wait for it; or a pre-upgrade hook if the database is outside the release. A volume that may come later
can be `optional: true`.

## Fix safety
If the release is installed, turning a hook into a regular resource is a hook-to-release flip.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.flux.reconciliations import failed_act, failed_release
from seatrial.evidence.hooks.runs import act_at, acts_of, done_by_helm
from seatrial.evidence.hooks.waiters import awaited_jobs
from seatrial.evidence.moment import Moment, found, moments
from seatrial.graph import config_maps, needs_of, products_of
from seatrial.helm import hooks
from seatrial.kinds import Need
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Body, Ref, dig
from seatrial.model.timeline import Rehearsal, StepResult
from seatrial.model.trial import waits
from seatrial.phrases.hooks import ends, how, said_of, says, wait_timeout
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import after_failure


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


def _waits(result: StepResult, ref: Ref) -> bool:
    """Whether the engine waits for an object: Helm with a flag, Flux for each HelmRelease."""
    return waits(result.flags) or any(one.waits and one.acts and ref in one.objects for one in result.reconciled)


def _of_needs(moment: Moment, release: Release, workload: Resource) -> Iterator[Finding]:
    """What a workload that Helm waits for uses, and only a post hook creates."""
    for need in needs_of(workload):
        lacking = need.object in moment.ended.lacking and not need.optional
        brought = _source_of(release, need.object) if lacking else None
        event = _post_event(brought.body, acts_of(moment)) if brought else ""
        if brought is not None and event:
            yield _deadlock(moment, workload, need, brought, event)


def _source_of(release: Release, ref: Ref) -> Resource | None:
    """The object in the release, or the Job of the release whose script creates it."""
    beside = config_maps(release.resources)
    makes = (r for r in release.resources if r.ref.kind in ("Job", "Pod") and ref in products_of(r, beside=beside))
    return release.find(ref) or next(makes, None)


def _post_event(body: Body, acts: tuple[str, ...]) -> str:
    """The post event at which a hook runs; empty if it also runs before, or not at all."""
    events = hooks.events_of(body)
    for before, *after in (hooks.EVENTS_OF.get(act, ("",)) for act in acts):
        if before not in events and (event := next((event for event in after if event in events), "")):
            return event
    return ""


def _deadlock(moment: Moment, workload: Resource, need: Need, brought: Resource, event: str) -> Finding:
    ref, said = need.object, said_of(moment, need.object)
    later = ", a later hook" if brought.ref == ref else f" of the later hook {brought.ref}"
    fluxs = failed_release(moment.ended, workload.ref)
    return found(
        RULE,
        moment,
        objects=[workload.ref, ref],
        damage="failed-deploy",
        message=f"{ends(moment, workload.ref)}: {workload.ref} {how(need)} {ref}{later}",
        details=(
            f"{'By default Flux' if fluxs else 'With --wait Helm'} waits for all workloads before it runs the {event} "
            "hooks, so each of the two waits for the other.",
            says(moment, ref),
            wait_timeout(workload, moment.ended),
            after_failure(moment, workload.ref),
            f"With {failed_act(fluxs)}.disableWait: true it succeeds: the pods stay unready until the {event} hook has "
            "run."
            if fluxs
            else f"Without --wait it succeeds: the pods stay unready until the {event} hook has run. Flux, Terraform "
            "and --atomic wait.",
        ),
        places=[brought.place("metadata", "annotations", hooks.HOOK), workload.place(*need.field)],
        evidence=filter(None, [said]),
        confirm=f"kubectl get {in_kubectl(ref)}  # while Helm waits: it does not exist",
        way_out=[_make_it_earlier(ref, brought.ref)] if brought.ref != ref else (),
    )


def _make_it_earlier(ref: Ref, job: Ref) -> str:
    return (
        f"Let {job} create {ref} before Helm waits: as a regular Job with another name for each revision, or as a pre "
        "hook with its own ServiceAccount and roles."
    )


def _of_init_containers(moment: Moment, release: Release, workload: Resource) -> Iterator[Finding]:
    """An init container that waits for a Job that is a post hook."""
    spec = dig(workload.body, "spec", "template", "spec")
    applied = any(e.effect in ("created", "changed") for e in done_by_helm(moment, workload.ref))
    for name, at in awaited_jobs(spec, workload.ref.namespace) if isinstance(spec, dict) and applied else ():
        job = release.find(Ref("Job", workload.ref.namespace, name, "batch"))
        event = _post_event(job.body, acts_of(moment)) if job else ""
        if job is not None and event:
            outcome = "Flux times out" if moment.ended.reconciled else f"helm {act_at(event)} --wait hangs"
            without = "With disableWait: true" if moment.ended.reconciled else "Without --wait"
            yield found(
                RULE,
                moment,
                objects=[workload.ref, job.ref],
                damage="failed-deploy",
                certainty="may",
                message=f"{outcome} if {workload.ref} waits for {event} hook {job.ref}",
                details=(
                    "Helm runs the hook only after the pods are ready.",
                    "An init container names that Job. Its program is not run here, so whether it waits is unknown.",
                    f"{without} it succeeds: the pods stay unready until the Job has run.",
                ),
                places=[job.place("metadata", "annotations", hooks.HOOK), workload.place(*at)],
                confirm=f"kubectl get {in_kubectl(job.ref)}  # while Helm waits: it does not exist",
            )


RULE = Rule(
    "ST219", "post-hook-wait-deadlock", check, before=("secret-produced-asynchronously", "workload-crash-loops")
)
