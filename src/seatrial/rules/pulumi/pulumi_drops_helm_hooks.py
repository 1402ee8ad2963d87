"""A program deploys a chart with a resource that knows no hooks: they never run, or run together with all else.

## What happens
`helm.v4.Chart` registers the plain objects of a chart and drops its hooks, all of them. A migration that is a
`pre-upgrade` hook never runs, a Secret that is a `pre-install` hook is never made, and Pulumi says nothing: the `up`
succeeds, or waits for pods that lack what a hook would have made.

`helm.v3.Chart` registers hooks, tests left aside, as resources like all others. They are made at the same moment as the
rest of the chart: their event, weight and delete policy count for nothing. A Job runs when it is made, and once more
only when something in it changes, as it is replaced then: an upgrade of the app whose migration Job is written as
before does not migrate. It is waited for, so that the `up` fails where the Job does.

Only a `helm.v3.Release` runs hooks, as it is Helm that deploys it.

Where a plain object of the chart needs what a hook would make, it **will** fail. Else it **may**: whether the work of a
hook matters is known to its chart alone. A Job or a Pod that runs at an install or an upgrade is taken to be part of
what is deployed. Tests are not told of.

## Example
```yaml
resources:
  shop:
    type: kubernetes:helm.sh/v4:Chart
    properties: {chart: ./shop}          # its migration has helm.sh/hook: pre-install,pre-upgrade
```

## Instead
`kubernetes:helm.sh/v3:Release` with the same chart. Or the hook's work as a resource of the program, on which what
needs it depends.

## Fix safety
A Release is another resource to Pulumi: objects of the same names are made before the old ones are deleted, which
fails. Take the Chart away first where that may be, or import what is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.moment import Moment, found
from seatrial.graph import needs_of
from seatrial.helm import hooks
from seatrial.model.finding import Certainty, Damage, Finding, Rule
from seatrial.model.program import CHART_V3
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import named

DEPLOYS = (*hooks.EVENTS_OF["install"], *hooks.EVENTS_OF["upgrade"])
RUNS = ("Job", "Pod")
TESTS = hooks.EVENTS_OF["test"]


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    step, release = next(_programs(rehearsal, case), (0, None))
    moment = Moment(rehearsal, case, step)
    if release is None:
        return
    if release.left_out:
        yield _dropped(moment, release)
    if plain := [hook for hook in _made_like_all_else(release) if _is_work(hook)]:
        yield _unordered(moment, plain)


def _programs(rehearsal: Rehearsal, case: Case) -> Iterator[tuple[int, Release]]:
    """What is brought up, the newest first."""
    for step in reversed(range(len(rehearsal.steps))):
        release = case.releases[step]
        if rehearsal.steps[step].action == "up" and release is not None and release.program is not None:
            yield step, release


def _made_like_all_else(release: Release) -> Iterator[Resource]:
    """Hooks that the program registers for a `v3.Chart`."""
    assert release.program is not None
    charts = {one.urn for one in release.program.registrations if one.type == CHART_V3}
    of_charts = {one.ref for one in release.program.registrations if one.parent in charts}
    return (r for r in release.resources if r.ref in of_charts and hooks.is_hook(r.body))


def _is_work(hook: Resource) -> bool:
    """Whether a hook does something that the deployment is to wait for."""
    return hook.ref.kind in RUNS and any(event in DEPLOYS for event in hooks.events_of(hook.body))


def _dropped(moment: Moment, release: Release) -> Finding:
    dropped = list(release.left_out)
    work, missed = [hook for hook in dropped if _is_work(hook)], next(_missed(release), None)
    first, ended = (work or dropped)[0], moment.ended
    refs = [hook.ref for hook in (*work, *(hook for hook in dropped if hook not in work))]
    damage: Damage = "failed-deploy" if work or missed else "nuisance"
    certainty: Certainty = "will" if missed else "may"
    return found(
        RULE,
        moment,
        objects=refs,
        damage=damage,
        certainty=certainty,
        message=f"{named(refs)} {_never(work, refs)}: helm.v4.Chart drops the hooks of its chart",
        details=(
            f"{first.ref} is a hook of {_events(first)}. Only what is no hook is registered, and nobody is told.",
            f"{missed[0].ref} needs {missed[1]}, which is one of them." if missed else "",
            f"Pulumi {ended.error}." if missed and ended.outcome == "hung" else "",
            "A helm.v3.Release runs hooks: it is Helm that deploys it. A v3.Chart makes them together with all else.",
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK) for hook in dropped],
        confirm="pulumi stack --show-urns  # does not list it",
    )


def _never(work: list[Resource], refs: list[Ref]) -> str:
    if len(refs) > 1:
        return "never run" if len(work) == len(refs) else "never come"
    return "never runs" if work else "never comes"


def _missed(release: Release) -> Iterator[tuple[Resource, Ref]]:
    """Who of the release needs a hook that is dropped."""
    dropped = {hook.ref for hook in release.left_out}
    for user in release.resources:
        for need in needs_of(user):
            if need.object in dropped and not need.optional and not need.guess:
                yield user, need.object


def _unordered(moment: Moment, plain: list[Resource]) -> Finding:
    refs = [hook.ref for hook in plain]
    made = [event for event in moment.rehearsal.timeline if event.object == refs[0] and event.effect == "created"]
    runs, again = ("run", "They run") if len(refs) > 1 else ("runs", "It runs")
    return found(
        RULE,
        moment,
        objects=refs,
        damage="failed-deploy",
        certainty="may",
        message=f"{named(refs)} of {_events(plain[0])} {runs} together with all else: to helm.v3.Chart a hook is an "
        "object like any other",
        details=(
            "All objects of the chart are made at once: its event, its weight and its delete policy count for nothing. "
            "What the others do meanwhile decides whether that does harm.",
            f"{again} again only when something in the object itself changes: Pulumi replaces it then. An up that "
            "changes the rest alone does not run it.",
            "A helm.v3.Release runs hooks: it is Helm that deploys it.",
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK) for hook in plain],
        evidence=made[:1],
        confirm=f"kubectl get {in_kubectl(refs[0])} -w  # during pulumi up",
    )


def _events(hook: Resource) -> str:
    return ", ".join(event for event in hooks.events_of(hook.body) if event not in TESTS)


RULE = Rule("ST909", "pulumi-drops-helm-hooks", check)
