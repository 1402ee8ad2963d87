"""A pre-install or pre-upgrade hook connects to a database of the same release, which does not exist yet.

## What happens
Helm creates the regular resources of a release after its pre-install hooks have succeeded. If a chart bundles its
database and runs its migration as a pre-install hook, the migration looks for a Service that does not exist: the name
cannot be resolved (`could not translate host name`, `bad address`). A hook that waits for the database
(`until pg_isready ...`) waits forever; one that does not wait fails as often as its Job allows. The chart can never be
installed with its own database.

At upgrades the database exists, and with an external database the install works too, so the chart's author does not see
the problem.

The finding is certain (*will*) if the hook's script calls a known client (`pg_isready`, `nc`, `curl` and others) with
the Service's name, in a loop or so that a failure ends the script. It is *may* if only the environment or the arguments
of the hook name a Service that looks like a database: what other programs do is not known.

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
Use `post-install,pre-upgrade`; or a regular Job with a different name for each revision, and pods that wait for it; or
install the database as a separate release.

## Fix safety
As a post-install hook the migration runs after the app has started, and with `--wait` only if the app becomes ready
without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import event_of, helm_act, pod_of
from seatrial.evidence.hooks.services import CalledService, asked_by, backends
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.webhooks.calls import World, state
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref, listed
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl

BEFORE = ("pre-install", "pre-upgrade")
STORES = frozenset((1433, 2379, 3306, 4222, 5432, 5672, 6379, 8123, 9042, 9092, 9200, 11211, 26257, 27017))
"""Well-known ports of databases, caches and queues."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[tuple[Ref, Ref]] = set()
    for moment in moments(rehearsal, case):
        release = moment.release
        for hook in release.resources if release else ():
            pod = pod_of(moment, hook) if event_of(moment, hook) in BEFORE else None
            if pod is None or release is None:
                continue
            world = state(rehearsal, pod)
            for asked in asked_by(hook, release):
                if not asked.command and not _is_store(asked.service, release):
                    continue
                pair = hook.ref, asked.service.ref
                if pair not in seen and _is_missing(asked.service, release, world):
                    seen.add(pair)
                    yield _finding(moment, hook, pod, asked)


def _is_store(service: Resource, release: Release) -> bool:
    ports = {port.get("port") for port in listed(service.body, "spec", "ports")}
    return bool(ports & STORES) or any(r.ref.kind == "StatefulSet" for r in backends(service, release))


def _is_missing(service: Resource, release: Release, world: World) -> bool:
    """Whether the Service, or every workload behind it, does not exist."""
    behind = backends(service, release)
    return service.ref not in world or (bool(behind) and all(r.ref not in world for r in behind))


def _finding(moment: Moment, hook: Resource, pod: Event, asked: CalledService) -> Finding:
    ref, service = hook.ref, asked.service.ref
    event = event_of(moment, hook)
    sure = bool(asked.command)
    how = "waits for" if asked.retried else "connects to"
    return found(
        RULE,
        moment,
        objects=[ref, service],
        damage="failed-deploy",
        certainty="will" if sure else "may",
        message=f"{helm_act(moment, ref)} never completes {ref}"
        f"{', which' if sure else ' if it'} {how} {service}, created after it",
        details=(
            f"It is a hook of {event}; Helm creates regular resources after its hooks.",
            f'It runs "{asked.command}".'
            if sure
            else f"It names {service.name}. Its program is not run here, so how it uses the Service is unknown.",
            f"{service} and the pods behind it are regular resources and do not exist when {pod.object} runs: the name "
            f"cannot be resolved, and Helm waits for {ref} to complete.",
            "Upgrades of an existing release work, which hides the problem."
            if hooks.runs_at(hook.body, "upgrade")
            else "",
        ),
        places=[hook.place(*asked.field), asked.service.place("metadata", "name")],
        evidence=[pod],
        confirm=f"kubectl get {in_kubectl(service)}  # while the hook runs: not found",
    )


RULE = Rule("ST207", "pre-hook-needs-release-database", check)
