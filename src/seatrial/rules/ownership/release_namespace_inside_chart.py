"""The chart contains the namespace it is installed into, which must exist before Helm can start.

## What happens
Helm stores the release record in the release namespace before it creates anything else, including hooks. So the
namespace must exist first, and a chart that also contains it conflicts:

- the namespace exists: `Namespace "x" in namespace "" exists and cannot be imported into the current release: invalid
  ownership metadata`;
- it does not exist: `create: failed to create: namespaces "x" not found`;
- `--create-namespace` creates it: Helm 3 then stops at `namespaces "x" already exists`. Helm 4 continues, and the
  namespace is part of the release: `helm uninstall` deletes it with everything in it, its own record first
  (`uninstallation completed with 1 error(s): uninstall: Failed to purge the release: release: not found`).

As a hook it is worse. Before Helm creates a hook it deletes the existing object, with or without
`helm.sh/resource-policy: keep`: the namespace is deleted with all its content, including the release record. The
install reports success; `helm list` shows nothing, and the next upgrade fails with `"x" has no deployed releases`.

## Example
```yaml
apiVersion: v1
kind: Namespace
metadata:
  name: {{ .Release.Namespace }}
```

## Instead
Remove it from the chart and install with `--create-namespace`. Let the owner of the namespace set labels that it needs,
such as those for Pod Security.

## Fix safety
Removing it from an installed chart makes the next upgrade delete the namespace: add `helm.sh/resource-policy: keep` in
an earlier release.
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
        message=f"helm {ended.action} deletes {ref}, its own release namespace, because it is a hook of the chart",
        details=(
            "The release record is deleted with it." if records else "",
            "Before Helm creates a hook it deletes the existing object, unless a delete policy says otherwise; it "
            "ignores helm.sh/resource-policy: keep.",
            f"Deleted with it: {named(event.object for event in lost)}." if lost else "",
            f"The {ended.action} reports success." if ended.outcome == "ok" else helm_says(ended),
            f'The next step fails with "{later}"' if later else "",
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
        message=f"the chart contains {ref}, its own release namespace: helm {ended.action} refuses to start",
        details=(
            helm_says(ended),
            "The namespace must exist before Helm can store the release record, and Helm does not adopt an existing "
            f'object. If it does not exist: "create: failed to create: namespaces "{ref.name}" not found".',
            f'--create-namespace does not help: Helm 3 then fails with "namespaces "{ref.name}" already exists"; with '
            "Helm 4 the namespace becomes part of the release, and helm uninstall deletes all its content.",
        ),
        places=[met.resource.place("metadata", "name")],
        evidence=[met.made] if met.made else [],
        confirm=f"kubectl get namespace {ref.name} -o jsonpath='{{.metadata.annotations}}'",
    )


RULE = Rule("ST405", "release-namespace-inside-chart", check, before=("ownership-metadata-conflict",))
