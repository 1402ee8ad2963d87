"""The chart brings the namespace that it is installed into, which Helm needs before it and takes for someone else's.

## What happens
Helm stores the record of a release in its namespace before it makes anything else, hooks included. So the namespace
must be there first, and a chart that also lists it collides with it:

- the namespace is there: `Namespace "x" in namespace "" exists and cannot be imported into the current release: invalid
  ownership metadata`;
- it is not: `create: failed to create: namespaces "x" not found`;
- `--create-namespace` makes it: Helm 3 then stops at `namespaces "x" already exists`. Helm 4 goes on, and the namespace
  is part of the release: `helm uninstall` deletes it with everything in it, its own record first
  (`uninstallation completed with 1 error(s): uninstall: Failed to purge the release: release: not found`).

As a hook it is worse. Before Helm makes a hook it deletes what has its name, `helm.sh/resource-policy: keep` or not:
the namespace goes with all that is in it, and the record of the release as well. The install reports success;
`helm list` shows nothing, and the next upgrade says `"x" has no deployed releases`.

## Example
```yaml
apiVersion: v1
kind: Namespace
metadata:
  name: {{ .Release.Namespace }}
```

## Instead
Leave it out and install with `--create-namespace`. Labels that it needs, for Pod Security say, are set by whoever
owns the namespace.

## Fix safety
Taking it out of a chart that is installed makes the next upgrade delete the namespace: add `helm.sh/resource-policy:
keep` to it in a release before.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.evidence.history import DEPLOYS, GOING, cascade
from seatrial.evidence.moment import Moment, found, moments
from seatrial.evidence.ownership import Conflict, conflict
from seatrial.helm import hooks
from seatrial.helm.records import NAME as RECORD
from seatrial.model.finding import Finding, Rule
from seatrial.model.release import Case, Resource
from seatrial.model.resource import Ref
from seatrial.model.timeline import Event, Rehearsal
from seatrial.phrases.outcome import helm_says, named


def check(rehearsal: Rehearsal, case: Case) -> Iterator[Finding]:
    seen: set[Ref] = set()
    for moment in moments(rehearsal, case):
        met = conflict(moment)
        if met is None or met.resource.ref in seen or met.resource.ref != Ref("Namespace", "", moment.ended.namespace):
            continue
        seen.add(met.resource.ref)
        yield _finding(moment, met)
    for moment in moments(rehearsal, case):
        ref = Ref("Namespace", "", moment.ended.namespace)
        written = case.written(moment.index, ref)
        deletion = next((e for e in moment.events() if _goes(e, ref)), None)
        if deletion and moment.ended.action in DEPLOYS and written and hooks.is_hook(written.body) and ref not in seen:
            seen.add(ref)
            yield _deleted(moment, written, deletion)


def _goes(event: Event, ref: Ref) -> bool:
    return event.object == ref and event.actor == "helm" and event.effect in GOING


def _deleted(moment: Moment, written: Resource, deletion: Event) -> Finding:
    ended, ref = moment.ended, written.ref
    lost = cascade(moment.rehearsal, deletion)
    records = [event for event in lost if RECORD.fullmatch(event.object.name)]
    later = (
        moment.rehearsal.steps[moment.index + 1].error.strip() if moment.index + 1 < len(moment.rehearsal.steps) else ""
    )
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="data-loss",
        message=f"helm {ended.action} deletes {ref}, into which it deploys, because it is a hook of the chart"
        + (": the record of the release goes with it" if records else ""),
        details=(
            "Before Helm makes a hook it deletes what has its name, unless a delete policy says otherwise; "
            "helm.sh/resource-policy: keep is not looked at.",
            f"Gone with it: {named(event.object for event in lost)}." if lost else "",
            f"The {ended.action} reports success." if ended.outcome == "ok" else helm_says(ended),
            f'The next step says: "{later}"' if later else "",
        ),
        places=[written.place("metadata", "annotations", hooks.HOOK)],
        evidence=[deletion, *records],
        confirm=f"helm list -n {ref.name}  # empty after an {ended.action} that succeeded",
    )


def _finding(moment: Moment, met: Conflict) -> Finding:
    ref, ended = met.resource.ref, moment.ended
    return found(
        RULE,
        moment,
        objects=[ref],
        damage="failed-deploy",
        message=f"the chart brings {ref}, into which it is to be deployed: helm {ended.action} refuses",
        details=(
            helm_says(ended),
            "The namespace must be there before Helm can store the record of the release, and what is there already is "
            f'someone else\'s. Were it not there: "create: failed to create: namespaces "{ref.name}" not found".',
            f'--create-namespace does not help: Helm 3 then stops at "namespaces "{ref.name}" already exists"; with '
            "Helm 4 the namespace belongs to the release, so that helm uninstall deletes all that is in it.",
        ),
        places=[met.resource.place("metadata", "name")],
        evidence=[met.made] if met.made else [],
        confirm=f"kubectl get namespace {ref.name} -o jsonpath='{{.metadata.annotations}}'",
    )


RULE = Rule("ST405", "release-namespace-inside-chart", check)
