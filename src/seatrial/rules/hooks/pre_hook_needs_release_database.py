"""A hook that runs before everything else asks a database of the same release, which is not there yet.

## What happens
Helm makes the plain objects of a release when its pre-install hooks have succeeded. A migration that is such a hook, in
a chart that brings its database along, looks for a Service that does not exist: the name cannot be resolved (`could not
translate host name`, `bad address`). A hook that waits for the database (`until pg_isready ...`) waits for ever, one
that does not fails as often as its Job allows. No install of the chart with its own database ever succeeds.

At upgrades the database is there, and with a database outside the release the install works as well: so it does for the
one who wrote it.

That a hook waits for a Service is told without doubt where its script calls a known client (`pg_isready`, `nc`, `curl`
and others) with that name, in a loop or so that its failure ends the script. Where only the environment or arguments of
the hook name the Service of what looks like a database, it *may* be so: no program is run here.

## Example
```yaml
kind: Job
metadata:
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    spec:
      initContainers:
        - command: [sh, -c, "until pg_isready -h app-postgresql; do sleep 1; done"]
```

## Instead
`post-install,pre-upgrade`; or a plain Job with a name of its own for each revision, and pods that wait for it. Or the
database in a release of its own.

## Fix safety
As a post-install hook the migration runs after the app has started; with `--wait` only if the app is ready without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import event_of, helm_act, pod_of
from seatrial.evidence.hooks.services import Asked, asked_by, backends
from seatrial.evidence.moment import Moment, found
from seatrial.evidence.webhooks.calls import World, state
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

BEFORE = ("pre-install", "pre-upgrade")
STORES = frozenset((1433, 2379, 3306, 4222, 5432, 5672, 6379, 8123, 9042, 9092, 9200, 11211, 26257, 27017))
"""Ports by which one knows a database, a cache or a queue."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, Ref]] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        for hook in release.resources if release else ():
            pod = pod_of(moment, hook) if event_of(moment, hook) in BEFORE else None
            if pod is None or release is None:
                continue
            world = state(rehearsal, pod)
            for asked in asked_by(hook, release):
                if not asked.command and not _is_store(asked.service, release):
                    continue
                pair = hook.ref, asked.service.ref
                if pair not in seen and _is_not_there(asked.service, release, world):
                    seen.add(pair)
                    yield _finding(moment, hook, pod, asked)


def _is_store(service: Resource, release: Release) -> bool:
    ports = {port.get("port") for port in listed(service.body, "spec", "ports")}
    return bool(ports & STORES) or any(r.ref.kind == "StatefulSet" for r in backends(service, release))


def _is_not_there(service: Resource, release: Release, world: World) -> bool:
    """Whether nothing can answer: no Service, or none of the workloads behind it."""
    behind = backends(service, release)
    return service.ref not in world or (bool(behind) and all(r.ref not in world for r in behind))


def _finding(moment: Moment, hook: Resource, pod: Event, asked: Asked) -> Finding:
    ref, service = hook.ref, asked.service.ref
    event = event_of(moment, hook)
    sure = bool(asked.command)
    how = "waits for" if asked.retried else "asks"
    return found(
        RULE,
        moment,
        objects=[ref, service],
        damage="failed-deploy",
        certainty="will" if sure else "may",
        message=f"{helm_act(moment, ref)} does not get past the {event} hook {ref}"
        f"{', which' if sure else ' if that'} {how} {service}: Helm makes it only after its hooks",
        details=(
            f'It runs "{asked.command}".'
            if sure
            else f"It names {service.name}. What it does with it is not run here.",
            f"{service} and what stands behind it are plain objects of the release, and not there when {pod.object} "
            f"runs: the name cannot be resolved, and Helm waits for {ref} to end.",
            "On a cluster that has the release already they are there, and upgrades work: that hides it."
            if hooks.runs_at(hook.body, "upgrade")
            else "",
        ),
        places=[hook.place(*asked.field), asked.service.place("metadata", "name")],
        evidence=[pod],
        confirm=f"kubectl get {in_kubectl(service)}  # while the hook runs: not found",
    )


RULE = Rule("ST207", "pre-hook-needs-release-database", check)
