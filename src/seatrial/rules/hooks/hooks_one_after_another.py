"""A template creates a hook Job for each entry of a list, and Helm runs them one at a time.

## What happens
Helm runs the hooks of an event one at a time, by weight and name, and waits until a Job or Pod among them completes.
Twenty tenants with one setup Job each take twenty times as long, even if the Jobs are independent. `--timeout` does not
limit this: it applies to each hook, so the worst case is the number of hooks times `--timeout`. The pipeline's own
timeout comes first and leaves a release with the status `pending-install`. Helm does not wait for hooks of other kinds.

It is noticed late: the chart is written with one entry in the list, and each new entry makes every upgrade slower.

How long the Jobs take is unknown, so the finding is *may*. It gives the longest time: for each Job its
`activeDeadlineSeconds`, or Helm's default `--timeout` of five minutes.

## Example
```yaml
{{- range .Values.tenants }}
---
kind: Job
metadata:
  name: setup-{{ .name }}
  annotations: {helm.sh/hook: "post-install,post-upgrade"}
{{- end }}
```

## Instead
Use one hook Job for all: with the list in a ConfigMap, or with `completionMode: Indexed` and `parallelism`. Or use
regular Jobs with a different name for each revision, which run in parallel. Set `activeDeadlineSeconds`.

## Fix safety
Jobs that run in parallel must not depend on each other. If the release is installed, turning a hook into a regular
resource is a hook-to-release flip.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import event_of, helm_act, pod_of
from seatrial.evidence.moment import Moment, found, moments
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import TIMEOUT_SECONDS
from seatrial.phrases.outcome import named

HOOKS_MIN = 3
"""Fewer hooks are not reported."""
WAITED_FOR = ("Job", "Pod")
Shape = tuple[str, ...]
"""A template file and the fields of the objects it renders."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Shape] = set()
    for moment in moments(rehearsal, case):
        for shape, run in _by_template(moment).items():
            if len(run) >= HOOKS_MIN and shape not in seen:
                seen.add(shape)
                yield _finding(moment, run)


def _by_template(moment: Moment) -> dict[Shape, list[Resource]]:
    """The hooks that Helm waited for in a step, by the template that renders them."""
    found: dict[Shape, list[Resource]] = {}
    for hook in moment.release.resources if moment.release else ():
        waited = hook.ref.kind in WAITED_FOR and hooks.runs_at(hook.body, moment.ended.action)
        if waited and pod_of(moment, hook) is not None:
            found.setdefault((hook.file, *_fields(hook.body)), []).append(hook)
    return found


def _fields(value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of all fields: the same for all objects that one loop of a template renders."""
    match value:
        case dict():
            for key in sorted(value):
                yield from _fields(value[key], (*path, key))
        case [first, *_]:
            yield from _fields(first, (*path, "[]"))
        case _:
            yield ".".join(path)


def _finding(moment: Moment, run: list[Resource]) -> Finding:
    event = event_of(moment, run[0])
    seconds = [_longest_seconds(hook) for hook in run]
    return found(
        RULE,
        moment,
        objects=[run[0].ref],
        damage="nuisance",
        certainty="may",
        message=f"{helm_act(moment, run[0].ref)} runs {len(run)} {event} hooks of one template one "
        f"at a time, for up to {_in_words(sum(seconds))}",
        details=(
            f"Helm waits for each before it creates the next: {named(hook.ref for hook in run)}. Every further one "
            f"adds up to {_in_words(max(seconds))}.",
            "--timeout (default 5m0s) applies to each of them, not to all together.",
        ),
        places=[run[0].place("metadata", "name")],
        evidence=[pod for hook in run[:3] if (pod := pod_of(moment, hook)) is not None],
        confirm=f"kubectl get jobs -n {run[0].ref.namespace} --sort-by=.metadata.creationTimestamp  # while Helm waits",
    )


def _longest_seconds(hook: Resource) -> int:
    deadline = dig(hook.body, "spec", "activeDeadlineSeconds")
    return min(deadline, TIMEOUT_SECONDS) if isinstance(deadline, int) else TIMEOUT_SECONDS


def _in_words(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s"


RULE = Rule("ST228", "hooks-one-after-another", check)
