"""A template makes a hook Job for each entry of a list, and Helm waits for each before it begins the next.

## What happens
Helm runs the hooks of an event one at a time, by weight and name, and waits until a Job or a Pod among them has ended.
Twenty tenants that are set up by a Job each take twenty times as long, though nothing in them depends on another.
`--timeout` is no limit for that: it counts for each hook anew, so that the worst case is as many times `--timeout`, and
the pipeline's own limit comes first. It leaves a release that is `pending-install`. Other kinds of hooks are made and
not waited for.

It is found out late: the chart is written with one entry in the list, and each new one makes every upgrade slower.

How long the Jobs take is not known here, hence *may*. Told is the longest time: `activeDeadlineSeconds` where there is
one, else Helm's own `--timeout` of five minutes, for each.

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
One hook Job for all: a list in a ConfigMap, or `completionMode: Indexed` with `parallelism`. Or plain Jobs, with a name
of their own for each revision, which all run at once. And an `activeDeadlineSeconds`.

## Fix safety
Jobs that run at the same time must not depend on each other. A hook that becomes plain is a hook-to-release flip where
the release is installed already.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.hooks.runs import event_of, helm_act, pod_of
from seatrial.evidence.moment import Moment, found
from seatrial.helm import hooks
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Release, Resource
from seatrial.model.resource import dig
from seatrial.model.timeline import Rehearsal
from seatrial.phrases.hooks import TIMEOUT_SECONDS
from seatrial.phrases.outcome import named

HOOKS_MIN = 3
"""Fewer are no list."""
WAITED_FOR = ("Job", "Pod")
Written = tuple[str, ...]
"""A template, and the fields of what it writes."""


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Written] = set()
    for step, release in enumerate(case.releases):
        moment = Moment(rehearsal, case, step)
        for written, run in _of_one_template(moment, release).items():
            if len(run) >= HOOKS_MIN and written not in seen:
                seen.add(written)
                yield _finding(moment, run)


def _of_one_template(moment: Moment, release: Release | None) -> dict[Written, list[Resource]]:
    """The hooks that Helm waited for in a step, by the template that makes them."""
    found: dict[Written, list[Resource]] = {}
    for hook in release.resources if release else ():
        waited = hook.ref.kind in WAITED_FOR and hooks.runs_at(hook.body, moment.ended.action)
        if waited and pod_of(moment, hook) is not None:
            found.setdefault((hook.file, *_fields(hook.body)), []).append(hook)
    return found


def _fields(value: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of all fields: the same for the entries of one list, which one piece of a template writes."""
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
        f"after the other, for up to {_in_words(sum(seconds))}",
        details=(
            f"{named(hook.ref for hook in run)}: Helm waits for each before it makes the next. Every further one adds "
            f"up to {_in_words(max(seconds))}.",
            "--timeout (5m0s unless said otherwise) is for each of them, and not for all.",
        ),
        places=[run[0].place("metadata", "name")],
        evidence=[pod for hook in run[:3] if (pod := pod_of(moment, hook)) is not None],
        confirm=f"kubectl get jobs -n {run[0].ref.namespace} --sort-by=.metadata.creationTimestamp  # while Helm waits",
    )


def _longest_seconds(hook: Resource) -> int:
    said = dig(hook.body, "spec", "activeDeadlineSeconds")
    return min(said, TIMEOUT_SECONDS) if isinstance(said, int) else TIMEOUT_SECONDS


def _in_words(seconds: int) -> str:
    return f"{seconds // 60}m{seconds % 60}s"


RULE = Rule("ST228", "hooks-one-after-another", check)
