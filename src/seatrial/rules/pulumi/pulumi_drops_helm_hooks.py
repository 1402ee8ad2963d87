"""A program deploys a chart with a resource that does not support hooks: they never run, or run with everything else.

## What happens
`helm.v4.Chart` registers the regular resources of a chart and drops all its hooks. A migration that is a `pre-upgrade`
hook never runs, a Secret that is a `pre-install` hook is never created, and Pulumi reports nothing: the `up` succeeds,
or waits for pods that lack what a hook would have created.

`helm.v3.Chart` registers hooks, except tests, as regular resources. They are created at the same time as the rest of
the chart: their event, weight and delete policy are ignored. A Job runs when it is created, and again only when it
changes, because it is then replaced: an upgrade of the app with an unchanged migration Job does not migrate. Pulumi
waits for it, so the `up` fails if the Job fails.

Only a `helm.v3.Release` runs hooks, because Helm deploys it.

If a regular resource of the chart needs what a hook creates, it **will** fail. Otherwise it **may**: only the chart
knows whether the hook matters. The rule assumes that a Job or Pod that runs at install or upgrade does. Tests are not
reported.

## Example
```yaml
resources:
  shop:
    type: kubernetes:helm.sh/v4:Chart
    properties: {chart: ./shop}          # its migration has helm.sh/hook: pre-install,pre-upgrade
```

## Instead
Use `kubernetes:helm.sh/v3:Release` with the same chart. Or do the hook's work in a resource of the program, and let
what needs it depend on that.

## Fix safety
For Pulumi a Release is a new resource: objects with the same names are created before the old ones are deleted, which
fails. Remove the Chart first if that is possible, or import the existing objects.
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
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.objects import in_kubectl
from seatrial.phrases.outcome import first_named, named

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
    """The steps that bring up a program, newest first."""
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
    """Whether a hook runs something at install or upgrade."""
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
        message=f"{first_named(refs)} {_never(work, refs)}: helm.v4.Chart drops the hooks of its chart",
        details=(
            f"Dropped: {named(refs)}." if len(refs) > 1 else "",
            f"{first.ref} is a hook of {_events(first)}. Only regular resources are registered, without a warning.",
            f"{missed[0].ref} needs {missed[1]}, which is one of the hooks." if missed else "",
            f"Pulumi {ended.error}." if missed and ended.outcome == "hung" else "",
            "A helm.v3.Release runs hooks, because Helm deploys it. A v3.Chart creates them with everything else.",
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK) for hook in dropped],
        evidence=_complaints(moment, missed[1]) if missed else [],
        confirm="pulumi stack --show-urns  # does not list it",
    )


def _never(work: list[Resource], refs: list[Ref]) -> str:
    if len(refs) > 1:
        return "never run" if len(work) == len(refs) else "are never created"
    return "never runs" if work else "is never created"


def _missed(release: Release) -> Iterator[tuple[Resource, Ref]]:
    """The resources that need a dropped hook."""
    dropped = {hook.ref for hook in release.left_out}
    for user in release.resources:
        for need in needs_of(user):
            if need.object in dropped and not need.optional and not need.guess:
                yield user, need.object


def _complaints(moment: Moment, ref: Ref) -> list[Event]:
    """The first message of a pod that does not find the hook."""
    said = (event for event in moment.rehearsal.timeline if event.effect == "said")
    return [event for event in said if f'"{ref.name}" not found' in event.message][:1]


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
        message=f"{first_named(refs)} {runs} with everything else: helm.v3.Chart treats hooks as regular resources",
        details=(
            f"Hooks of {_events(plain[0])}: {named(refs)}.",
            "All objects of the chart are created concurrently: the hook's event, weight and delete policy are "
            "ignored. Whether that does harm depends on the other objects.",
            f"{again} again only when the object itself changes, because Pulumi then replaces it. An up that changes "
            "only other objects does not run it.",
            "A helm.v3.Release runs hooks, because Helm deploys it.",
        ),
        places=[hook.place("metadata", "annotations", hooks.HOOK) for hook in plain],
        evidence=made[:1],
        confirm=f"kubectl get {in_kubectl(refs[0])} -w  # during pulumi up",
    )


def _events(hook: Resource) -> str:
    return ", ".join(event for event in hooks.events_of(hook.body) if event not in TESTS)


RULE = Rule("ST909", "pulumi-drops-helm-hooks", check)
